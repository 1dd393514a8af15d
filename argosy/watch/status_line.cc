#include "argosy/watch/status_line.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "argosy/base/percent.h"

namespace argosy {
namespace {

constexpr size_t kMostRanges = 64, kLongestText = 300;
constexpr uint32_t kMostNumbers = 1 << 20;

template <class T>
bool read(std::string_view text, T& value) {
  const char* const end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc() && result.ptr == end;
}

/// Seconds, rates: what can be shown.
bool read_amount(std::string_view text, double& value) {
  constexpr double kMost = 1e12;
  return read(text, value) && value >= 0 && value <= kMost;
}

std::string_view take_until(std::string_view& rest, char end) {
  const std::string_view part = rest.substr(0, rest.find(end));
  rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  return part;
}

std::optional<Numbers> parse_numbers(std::string_view text) {
  Numbers numbers;
  while (!text.empty()) {
    std::string_view range = take_until(text, ',');
    if (range == "+" && text.empty()) {
      numbers.more = true;
      break;
    }
    const std::string_view begin = take_until(range, '-');
    uint32_t first = 0, last = 0;
    if (!read(begin, first) || !read(range.empty() ? begin : range, last)) return std::nullopt;
    if (last < first || last >= kMostNumbers) return std::nullopt;
    if (!numbers.listed.empty() && first <= numbers.listed.back()) return std::nullopt;
    for (uint32_t number = first; number <= last; ++number) numbers.listed.push_back(number);
  }
  return numbers;
}

std::string format_wait(const Wait& wait) {
  return fmt::format(" wait={}:{}:{:.1f}:{}:{}", wait.role, format_numbers(wait.peers),
                     wait.seconds, format_numbers(wait.held),
                     escape(std::string_view(wait.what).substr(0, kLongestText)));
}

std::optional<Wait> parse_wait(std::string_view text) {
  constexpr auto kParts = 5;
  if (std::ranges::count(text, ':') != kParts - 1) return std::nullopt;
  Wait wait;
  wait.role = take_until(text, ':');
  const auto peers = parse_numbers(take_until(text, ':'));
  const bool timed = read_amount(take_until(text, ':'), wait.seconds);
  const auto held = parse_numbers(take_until(text, ':'));
  const auto what = unescape(text);
  if (wait.role.empty() || !peers || !timed || !held || !what) return std::nullopt;
  wait.peers = *peers;
  wait.held = *held;
  wait.what = *what;
  return wait;
}

bool read_field(std::string_view name, std::string_view value, ProcessStatus& status) {
  if (name == "role") {
    status.role = value;
    return value == "worker" || value == "server";
  }
  if (name == "index") return read(value, status.index);
  if (name == "pid") return read(value, status.pid);
  if (name == "since") return read_amount(value, status.since);
  if (name == "epoch") return read(value, status.epoch);
  if (name == "step") return read(value, status.step);
  if (name == "rate") return read_amount(value, status.rate.emplace());
  if (name == "queue") return read(value, status.queue.emplace());
  if (name == "staleness") return read_amount(value, status.staleness.emplace());
  if (name == "rows") return read(value, status.rows.emplace());
  if (name == "note") {
    const auto note = unescape(value);
    status.note = note.value_or("");
    return note.has_value();
  }
  if (name == "lost") {
    const auto lost = unescape(value);
    status.lost = lost.value_or("");
    return lost.has_value();
  }
  if (name == "doing") {
    const auto doing = doing_of(value);
    status.doing = doing.value_or(Doing::starting);
    return doing.has_value();
  }
  if (name == "wait") {
    const auto wait = parse_wait(value);
    if (wait) status.waits.push_back(*wait);
    return wait.has_value();
  }
  return true;
}

}  // namespace

std::string format_numbers(const Numbers& numbers) {
  std::string text;
  size_t ranges = 0;
  for (size_t i = 0; i < numbers.listed.size();) {
    if (ranges++ == kMostRanges) return text + ",+";
    const uint32_t first = numbers.listed[i];
    uint32_t last = first;
    while (++i < numbers.listed.size() && numbers.listed[i] == last + 1) ++last;
    text += text.empty() ? "" : ",";
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  if (numbers.more) text += text.empty() ? "+" : ",+";
  return text;
}

std::string escape(std::string_view text) {
  return percent_escape(text, [](char c) { return c > ' ' && c < '\x7f' && c != '=' && c != ':'; });
}

std::optional<std::string> unescape(std::string_view word) { return percent_unescape(word); }

std::optional<Fields> split_fields(std::string_view line, std::string_view kind) {
  if (take_until(line, ' ') != kind) return std::nullopt;
  Fields fields;
  while (!line.empty()) {
    std::string_view value = take_until(line, ' ');
    const size_t equals = value.find('=');
    if (equals == std::string_view::npos || equals == 0) return std::nullopt;
    fields.emplace_back(value.substr(0, equals), value.substr(equals + 1));
  }
  return fields;
}

std::string format_status(const ProcessStatus& status) {
  std::string line =
      fmt::format("status role={} index={} pid={} doing={} since={:.1f}", status.role, status.index,
                  status.pid, word(status.doing), status.since);
  if (status.epoch > 0) line += fmt::format(" epoch={}", status.epoch);
  line += fmt::format(" step={}", status.step);
  if (status.rate) line += fmt::format(" rate={:.1f}", *status.rate);
  if (status.queue) line += fmt::format(" queue={}", *status.queue);
  if (status.staleness) line += fmt::format(" staleness={:.2f}", *status.staleness);
  if (status.rows) line += fmt::format(" rows={}", *status.rows);
  if (!status.lost.empty()) line += " lost=" + escape(status.lost);
  if (!status.note.empty())
    line += " note=" + escape(std::string_view(status.note).substr(0, kLongestText));
  std::vector<Wait> waits = status.waits;
  std::ranges::stable_sort(waits, std::ranges::greater{}, &Wait::seconds);
  for (const Wait& wait : waits) {
    const std::string text = format_wait(wait);
    if (line.size() + text.size() < kLongestStatusLine) line += text;
  }
  return line;
}

std::optional<ProcessStatus> parse_status(std::string_view line) {
  const auto fields = split_fields(line, "status");
  if (!fields) return std::nullopt;
  ProcessStatus status;
  for (const auto& [name, value] : *fields)
    if (!read_field(name, value, status)) return std::nullopt;
  if (status.role.empty()) return std::nullopt;
  return status;
}

}  // namespace argosy
