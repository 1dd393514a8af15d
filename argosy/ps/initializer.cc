#include "argosy/ps/initializer.h"

#include <cmath>
#include <vector>

#include "argosy/base/arguments.h"
#include "argosy/base/hash.h"

namespace argosy::ps {
namespace {

using Value = std::function<double(const RandomStream&, uint64_t)>;

constexpr auto kKnown = "zeros, ones, constant, uniform, normal, truncated_normal or assign";

Value constant(double value) {
  return [value](const RandomStream&, uint64_t) { return value; };
}

Value uniform(const Call& call) {
  call.expect("initializer", 2, {"low", "high"});
  const double low = argument(call, 0, "low", kFinite, -1);
  const double high = argument(call, 1, "high", kFinite, 1);
  check<ConfigError>(low <= high, "'", call.text(), "': low ", low, " is above high ", high);
  return [low, high](const RandomStream& stream, uint64_t i) {
    return low + (high - low) * stream.uniform(i);
  };
}

/// Attempts after the first draw from counters that no element below 2^48 starts with.
double truncated_normal_value(const RandomStream& stream, uint64_t i) {
  double x = stream.normal(i);
  for (uint64_t attempt = 1; std::abs(x) > 2; ++attempt) x = stream.normal(i + (attempt << 48));
  return x;
}

Value normal(const Call& call, double (*draw)(const RandomStream&, uint64_t)) {
  call.expect("initializer", 2, {"mean", "stddev"});
  const double mean = argument(call, 0, "mean", kFinite, 0);
  const double stddev = argument(call, 1, "stddev", kNotNegative, 1);
  return [mean, stddev, draw](const RandomStream& stream, uint64_t i) {
    return mean + stddev * draw(stream, i);
  };
}

Value assign(const Call& call) {
  std::vector<double> values = call.numbers();
  call.expect("initializer", values.size(), {});
  check<ConfigError>(!values.empty(), "'", call.text(), "': assign needs values");
  for (size_t i = 0; i < values.size(); ++i) argument(call, i, "a value", kFinite);
  return [values = std::move(values)](const RandomStream&, uint64_t i) {
    check<ConfigError>(i < values.size(), "assign lists ", values.size(),
                       " values, but the parameter has more");
    return values[i];
  };
}

Value parse(const Call& call) {
  if (call.name() == "zeros" || call.name() == "ones") {
    call.expect("initializer", 0, {});
    return constant(call.name() == "ones" ? 1 : 0);
  }
  if (call.name() == "constant") {
    call.expect("initializer", 1, {"value"});
    return constant(argument(call, 0, "value", kFinite));
  }
  if (call.name() == "uniform") return uniform(call);
  if (call.name() == "normal")
    return normal(call, [](const RandomStream& stream, uint64_t i) { return stream.normal(i); });
  if (call.name() == "truncated_normal") return normal(call, truncated_normal_value);
  if (call.name() == "assign") return assign(call);
  fail<ConfigError>("'", call.text(), "': no such initializer, expected ", kKnown);
}

}  // namespace

Initializer::Initializer(std::string_view text) {
  const Call call(text);
  value_ = parse(call);
  if (call.name() == "assign") size_ = call.numbers().size();
}

void Initializer::fill(std::span<float> values, const RandomStream& stream, uint64_t first) const {
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(value_(stream, first + i));
}

RandomStream parameter_stream(uint64_t seed, std::string_view name) {
  return RandomStream(seed, hash64(name));
}

}  // namespace argosy::ps
