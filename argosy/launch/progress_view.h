#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::launch {

/// How far one worker is. It reports by lines like this one, where `steps` may be missing and every
/// name that is not one of these is a metric:
/// "worker=1 epoch=1 epochs=2 step=340 steps=1000 samples=174080 seconds=4.2 loss=0.47 auc=0.76"
struct WorkerProgress {
  int worker = 0;
  int epoch = 0, epochs = 0;
  uint64_t step = 0, samples = 0;  // within the epoch
  std::optional<uint64_t> steps = {};
  double seconds = 0;
  std::vector<std::pair<std::string, double>> metrics = {};
};

/// Absent if the line is no report.
std::optional<WorkerProgress> parse_progress(std::string_view line);

/// Merges all workers' reports into one line. Pure: time comes from the caller.
class ProgressView {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  /// `period`: the least time between two lines.
  ProgressView(size_t workers, Duration period) : workers_(workers), period_(period) {}

  /// A line of a worker; a line that is no report is ignored.
  void take(std::string_view line);
  /// The line to show now; absent if it is too early or nothing changed.
  std::optional<std::string> due(Time now);
  /// The last line, if it has not been shown yet.
  std::optional<std::string> last();

  /// "epoch 1/2  step 320..340/1000  loss 0.4700  auc 0.7600  82,895 samples/s": from the slowest
  /// worker to the fastest; metrics are means, weighted by the workers' samples; rates are added.
  std::string line() const;

 private:
  size_t workers_;
  Duration period_;
  std::map<int, WorkerProgress> latest_;
  std::vector<std::string> metrics_;  // in the order in which they came up
  bool news_ = false;
  std::optional<Time> shown_;
};

}  // namespace argosy::launch
