#pragma once

#include <string>

#include "argosy/watch/metrics.h"

namespace argosy {

/// Counters of a trainer, updated per step.
struct TrainerMetrics {
  explicit TrainerMetrics(Metrics& metrics)
      : steps(metrics.counter({"argosy_trainer_steps_total", "Batches that were trained on"})),
        examples(metrics.counter({"argosy_trainer_examples_total", "Instances of these batches"})),
        reading(time(metrics, "argosy_trainer_reading_seconds_total", "waited for data")),
        waiting(time(metrics, "argosy_trainer_waiting_seconds_total",
                     "spent to fetch parameters and to give gradients away")),
        computing(time(metrics, "argosy_trainer_computing_seconds_total", "computed")),
        step_seconds(metrics.histogram(
            {"argosy_trainer_step_seconds", "Time of a step, from its fetch to its commit"},
            {0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10})) {}

  Counter &steps, &examples;
  Counter &reading, &waiting, &computing;  // added up over threads
  Histogram& step_seconds;

 private:
  static Counter& time(Metrics& metrics, const char* name, const char* spent) {
    return metrics.counter({.name = name,
                            .help = std::string("Seconds that compute threads ") + spent,
                            .unit = MetricUnit::seconds});
  }
};

}  // namespace argosy
