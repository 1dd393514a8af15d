#include "argosy/train/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace argosy {
namespace {

using namespace std::chrono_literals;
constexpr auto kTerminalPeriod = 100ms;
constexpr auto kPlainPeriod = 5s;

std::string grouped(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

std::string duration(double seconds) {
  const auto total = static_cast<int64_t>(std::ceil(seconds));
  if (total < 60) return fmt::format("{}s", total);
  if (total < 3600) return fmt::format("{}m{:02}s", total / 60, total % 60);
  return fmt::format("{}h{:02}m", total / 3600, total % 3600 / 60);
}

}  // namespace

double Progress::metric(std::string_view name) const {
  const auto found = std::ranges::find(metrics, name, &Metric::name);
  return found == metrics.end() ? std::numeric_limits<double>::quiet_NaN() : found->value;
}

std::string format_progress(const Progress& p) {
  std::string line = fmt::format("epoch {}/{}  step {}", p.epoch, p.epochs, p.step);
  if (p.steps) line += fmt::format("/{}", *p.steps);
  for (const Metric& metric : p.metrics)
    line += fmt::format("  {} {:.4f}", metric.name, metric.value);
  line += fmt::format("  {} samples/s", grouped(p.samples_per_second()));
  if (p.steps && p.step > p.resumed_at) {
    const double left = static_cast<double>(*p.steps - std::min(*p.steps, p.step)) +
                        static_cast<double>(*p.steps) * (p.epochs - p.epoch);
    if (left > 0)
      line += "  eta " + duration(p.seconds / static_cast<double>(p.step - p.resumed_at) * left);
  }
  return line;
}

ProgressLine::ProgressLine(Env& env, std::FILE* out)
    : env_(env),
      out_(out),
      terminal_(::isatty(::fileno(out)) == 1),
      next_(env.now() + kTerminalPeriod) {}

void ProgressLine::show(const Progress& progress) {
  next_ = env_.now() + (terminal_ ? Env::Duration(kTerminalPeriod) : Env::Duration(kPlainPeriod));
  const std::string line = format_progress(progress);
  if (terminal_) {
    // Padded, so that a shorter line covers the one before.
    fmt::print(out_, "\r{:<{}}", line, shown_);
    shown_ = line.size();
  } else {
    fmt::print(out_, "{}\n", line);
  }
  std::fflush(out_);
}

void ProgressLine::finish_epoch(const Progress& progress, const std::string& note) {
  const std::string line = format_progress(progress) + note;
  fmt::print(out_, "{}{:<{}}\n", terminal_ ? "\r" : "", line, shown_);
  shown_ = 0;
  std::fflush(out_);
}

void ProgressReport::show(const Progress& progress) {
  constexpr auto kPeriod = std::chrono::milliseconds(200);
  next_ = env_.now() + kPeriod;
  std::string line = fmt::format("worker={} epoch={} epochs={} step={} samples={} seconds={:.3f}",
                                 worker_, progress.epoch, progress.epochs, progress.step,
                                 progress.samples, progress.seconds);
  if (progress.steps) line += fmt::format(" steps={}", *progress.steps);
  for (const Metric& metric : progress.metrics)
    if (std::isfinite(metric.value)) line += fmt::format(" {}={:.6f}", metric.name, metric.value);
  line += '\n';
  // A launcher that does not keep up misses a line.
  if (::write(fd_, line.data(), line.size()) < 0) return;
}

}  // namespace argosy
