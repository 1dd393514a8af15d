#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/env.h"

namespace argosy {

struct Metric {
  std::string name;
  double value = 0;
};

/// How far a training is, after a step.
struct Progress {
  int epoch = 0, epochs = 0;      // the first is 1
  uint64_t step = 0;              // within the epoch; the first is 1
  std::optional<uint64_t> steps;  // of an epoch, where known
  uint64_t resumed_at = 0;        // steps of the epoch that an earlier run has done
  uint64_t samples = 0;           // of this run, within the epoch
  double seconds = 0;             // since this run began the epoch
  double reading = 0;             // of them, spent waiting for data, summed over the threads
  std::vector<Metric> metrics;    // of this step; the loss first

  double samples_per_second() const {
    return seconds > 0 ? static_cast<double>(samples) / seconds : 0;
  }
  double metric(std::string_view name) const;  // NaN if absent
};

/// "epoch 2/5  step 400/937  loss 0.2345  acc 0.9310  61,234 samples/s  eta 12s"
std::string format_progress(const Progress& progress);

/// Watches how far a training is. Asked after each step, by one thread at a time.
class ProgressObserver {
 public:
  virtual ~ProgressObserver() = default;
  /// Whether to show this step. An exception ends the training.
  virtual bool due() = 0;
  virtual void show(const Progress& progress) = 0;
};

/// Shows progress in place on a terminal, a few times a second, or as a plain line now and then if
/// the output is a file or a pipe.
class ProgressLine final : public ProgressObserver {
 public:
  ProgressLine(Env& env, std::FILE* out);
  bool due() override { return env_.now() >= next_; }
  void show(const Progress& progress) override;
  /// Always prints a separate line.
  void finish_epoch(const Progress& progress, const std::string& note);

 private:
  Env& env_;
  std::FILE* out_;
  bool terminal_;
  Env::Time next_;
  size_t shown_ = 0;  // characters of the line on the terminal
};

/// Reports to a launcher how far this worker is, a few times a second, by lines as
/// launch/progress_view.h reads them.
class ProgressReport final : public ProgressObserver {
 public:
  /// `fd` stays open; below 0: no reports.
  ProgressReport(Env& env, int worker, int fd) : env_(env), worker_(worker), fd_(fd) {}
  bool due() override { return fd_ >= 0 && env_.now() >= next_; }
  void show(const Progress& progress) override;

 private:
  Env& env_;
  int worker_, fd_;
  Env::Time next_;
};

}  // namespace argosy
