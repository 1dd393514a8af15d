#include "argosy/launch/progress_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

namespace argosy::launch {
namespace {

template <class T>
bool read(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_field(std::string_view name, std::string_view value, WorkerProgress& report) {
  if (name == "worker") return read(value, report.worker) && report.worker >= 0;
  if (name == "epoch") return read(value, report.epoch);
  if (name == "epochs") return read(value, report.epochs);
  if (name == "step") return read(value, report.step);
  if (name == "steps") return read(value, report.steps.emplace());
  if (name == "samples") return read(value, report.samples);
  if (name == "seconds") return read(value, report.seconds);
  report.metrics.emplace_back(name, 0);
  return !name.empty() && read(value, report.metrics.back().second);
}

std::string grouped(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

template <class T>
std::string range(T from, T to) {
  return from == to ? fmt::format("{}", from) : fmt::format("{}..{}", from, to);
}

double mean(const std::map<int, WorkerProgress>& reports, const std::string& name) {
  double sum = 0, weights = 0;
  for (const auto& [worker, report] : reports) {
    const auto found =
        std::ranges::find(report.metrics, name, [](const auto& m) { return m.first; });
    if (found == report.metrics.end()) continue;
    const auto weight = static_cast<double>(std::max<uint64_t>(report.samples, 1));
    sum += found->second * weight;
    weights += weight;
  }
  return sum / weights;
}

}  // namespace

std::optional<WorkerProgress> parse_progress(std::string_view line) {
  WorkerProgress report;
  bool has_worker = false;
  while (!line.empty()) {
    const std::string_view field = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(line.size(), field.size() + 1));
    const size_t equals = field.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view name = field.substr(0, equals);
    if (!read_field(name, field.substr(equals + 1), report)) return std::nullopt;
    has_worker = has_worker || name == "worker";
  }
  if (!has_worker) return std::nullopt;
  return report;
}

void ProgressView::take(std::string_view line) {
  const std::optional<WorkerProgress> report = parse_progress(line);
  if (!report) return;
  for (const auto& [name, value] : report->metrics)
    if (std::ranges::find(metrics_, name) == metrics_.end()) metrics_.push_back(name);
  latest_[report->worker] = *report;
  news_ = true;
}

std::optional<std::string> ProgressView::due(Time now) {
  if (!news_ || (shown_ && now < *shown_ + period_)) return std::nullopt;
  shown_ = now;
  return last();
}

std::optional<std::string> ProgressView::last() {
  if (!news_) return std::nullopt;
  news_ = false;
  return line();
}

std::string ProgressView::line() const {
  if (latest_.empty()) return "";
  const auto place = [](const auto& entry) {
    return std::tuple(entry.second.epoch, entry.second.step);
  };
  const auto [slow, fast] = std::ranges::minmax_element(latest_, {}, place);
  const WorkerProgress &slowest = slow->second, &fastest = fast->second;
  std::string text = fmt::format("epoch {}/{}  step {}", range(slowest.epoch, fastest.epoch),
                                 slowest.epochs, range(slowest.step, fastest.step));
  if (slowest.steps && fastest.steps)
    text += "/" + range(std::min(*slowest.steps, *fastest.steps),
                        std::max(*slowest.steps, *fastest.steps));
  for (const std::string& name : metrics_)
    text += fmt::format("  {} {:.4f}", name, mean(latest_, name));
  double rate = 0;
  for (const auto& [worker, report] : latest_)
    if (report.seconds > 0) rate += static_cast<double>(report.samples) / report.seconds;
  text += fmt::format("  {} samples/s", grouped(rate));
  if (latest_.size() < workers_)
    text += fmt::format("  {} of {} workers", latest_.size(), workers_);
  return text;
}

}  // namespace argosy::launch
