#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/config/config.h"
#include "argosy/config/model_setup.h"
#include "argosy/train/progress.h"
#include "argosy/train/trainer.h"

namespace argosy {

/// Result of a training run.
struct TrainResult {
  int epochs = 0;             // run now; 0: all were done already
  std::vector<Metric> train;  // of the last epoch
  std::vector<Metric> test;   // after it; empty without test data
  double examples_per_second = 0;
};

/// Trainer options of this configuration, for one process.
TrainerOptions trainer_options(const Config& config, const ModelSetup& setup);

/// Trains as configured, locally or, if the environment gives this process a role (plan/role.h), as
/// part of a job: a server serves, workers train together and the first of them saves. Generates
/// missing data if `generate` is set, saves each epoch in model_save_path/0, /1, ..., and continues
/// from the latest save if `resume` is set. Log lines in PaddleRec's format go to `log`, and a live
/// line if that is a terminal.
TrainResult run_train(Env& env, const Config& config, std::FILE* log);

/// Loads the saves of epochs infer_start_epoch up to infer_end_epoch and evaluates each on the test
/// data; returns the last one's metrics.
std::vector<Metric> run_infer(Env& env, const Config& config, std::FILE* log);

/// Everything that can be known before a run: the model is built, the data are found and the
/// beginning of each file is parsed. Says what it found; throws what a run would throw, in a job of
/// so many workers.
void run_check(Env& env, const Config& config, std::FILE* log, uint64_t workers = 1);

}  // namespace argosy
