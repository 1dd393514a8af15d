#include "argosy/ps/schedule.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/arguments.h"

namespace argosy::ps {
namespace {

using Rate = std::function<double(uint64_t)>;  // of the steps already done

constexpr auto kKnown =
    "a rate, constant, piecewise, exponential, polynomial, cosine, step or linear_warmup";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::optional<double> plain_number(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

double first_rate(const Call& call) { return argument(call, 0, "rate", kNotNegative); }
double steps(const Call& call) {
  return static_cast<double>(whole_argument(call, 1, "steps", kCount));
}
bool flag(const Call& call, size_t position, std::string_view name) {
  return whole_argument(call, position, name, kSwitch, 0) == 1;
}

Rate constant(const Call& call) {
  call.expect("schedule", 1, {"rate"});
  return [rate = first_rate(call)](uint64_t) { return rate; };
}

Rate piecewise(const Call& call) {
  const std::vector<double> numbers = call.numbers();
  call.expect("schedule", numbers.size(), {});
  check<ConfigError>(numbers.size() % 2 == 1, "'", call.text(),
                     "': expected rate, until step, rate, ..., rate");
  std::vector<double> rates, ends;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i % 2 == 0) {
      rates.push_back(argument(call, i, "rate", kNotNegative));
      continue;
    }
    const double before = ends.empty() ? 0 : ends.back();
    ends.push_back(static_cast<double>(whole_argument(call, i, "until step", kCount)));
    check<ConfigError>(before < ends.back(), "'", call.text(), "': steps must rise, but ",
                       ends.back(), " follows ", before);
  }
  return [rates, ends](uint64_t done) {
    return rates[std::ranges::upper_bound(ends, static_cast<double>(done)) - ends.begin()];
  };
}

Rate exponential(const Call& call) {
  call.expect("schedule", 4, {"rate", "steps", "factor", "staircase"});
  const double factor = argument(call, 2, "factor", kPositive);
  return [rate = first_rate(call), steps = steps(call), factor,
          staircase = flag(call, 3, "staircase")](uint64_t done) {
    const double power = static_cast<double>(done) / steps;
    return rate * std::pow(factor, staircase ? std::floor(power) : power);
  };
}

Rate step(const Call& call) {
  call.expect("schedule", 3, {"rate", "steps", "factor"});
  const double factor = argument(call, 2, "factor", kPositive, 0.1);
  return [rate = first_rate(call), steps = steps(call), factor](uint64_t done) {
    return rate * std::pow(factor, std::floor(static_cast<double>(done) / steps));
  };
}

Rate polynomial(const Call& call) {
  call.expect("schedule", 5, {"rate", "steps", "end", "power", "cycle"});
  const double end = argument(call, 2, "end", kNotNegative, 0.0001);
  const double power = argument(call, 3, "power", kPositive, 1);
  return [rate = first_rate(call), steps = steps(call), end, power,
          cycle = flag(call, 4, "cycle")](uint64_t done) {
    const auto t = static_cast<double>(done);
    const double period = cycle ? steps * std::max(1.0, std::ceil(t / steps)) : steps;
    return (rate - end) * std::pow(1 - std::min(t, period) / period, power) + end;
  };
}

Rate cosine(const Call& call) {
  call.expect("schedule", 3, {"rate", "steps", "end"});
  const double end = argument(call, 2, "end", kNotNegative, 0);
  return [rate = first_rate(call), steps = steps(call), end](uint64_t done) {
    const double part = std::min(static_cast<double>(done), steps) / steps;
    return end + (rate - end) * (1 + std::cos(std::numbers::pi * part)) / 2;
  };
}

Rate parse(std::string_view text);

Rate linear_warmup(const Call& call, std::string_view rest) {
  call.expect("schedule", 2, {"steps", "start"});
  const uint64_t steps = whole_argument(call, 0, "steps", kCount);
  const double start = argument(call, 1, "start", kNotNegative, 0);
  return [steps, start, after = parse(rest)](uint64_t done) {
    if (done >= steps) return after(done - steps);
    return start + (after(0) - start) * static_cast<double>(done) / static_cast<double>(steps);
  };
}

Rate parse(std::string_view text) {
  text = trimmed(text);
  if (const auto number = plain_number(text)) {
    check<ConfigError>(*number >= 0 && *number <= kLargest, "'", text,
                       "': a learning rate is a number of at least 0");
    return [rate = *number](uint64_t) { return rate; };
  }
  constexpr std::string_view kThen = " then ";
  if (const auto then = text.find(kThen); then != std::string_view::npos) {
    const Call warmup(text.substr(0, then));
    check<ConfigError>(warmup.name() == "linear_warmup", "'", text,
                       "': only linear_warmup may stand before 'then'");
    return linear_warmup(warmup, text.substr(then + kThen.size()));
  }
  const Call call(text);
  if (call.name() == "constant") return constant(call);
  if (call.name() == "piecewise") return piecewise(call);
  if (call.name() == "exponential") return exponential(call);
  if (call.name() == "polynomial") return polynomial(call);
  if (call.name() == "cosine") return cosine(call);
  if (call.name() == "step") return step(call);
  check<ConfigError>(call.name() != "linear_warmup", "'", text,
                     "': expected 'then' and a schedule after linear_warmup(...)");
  fail<ConfigError>("'", text, "': no such schedule, expected ", kKnown);
}

}  // namespace

Schedule::Schedule(std::string_view text) : rate_(parse(text)) {}

float Schedule::rate(uint64_t step) const {
  return static_cast<float>(rate_(std::max<uint64_t>(step, 1) - 1));
}

}  // namespace argosy::ps
