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

/// What a training run gives.
struct TrainResult {
  int epochs = 0;             // that were run now; 0: there was nothing left to do
  std::vector<Metric> train;  // of the last epoch
  std::vector<Metric> test;   // after it; empty where there is no test data
  double examples_per_second = 0;
};

/// What a trainer of this configuration is like, in one process.
TrainerOptions trainer_options(const Config& config, const ModelSetup& setup);

/// Trains as a configuration says, here and now, or does its part of a job if the environment gives
/// this process a role (plan/role.h): a server serves, workers train together and the first of
/// them saves. Makes data where `generate` says so and there are
/// none, saves each epoch in model_save_path/0, /1, ..., and goes on from the latest save where
/// `resume` is set. Log lines of PaddleRec's form go to `log`, and a live line where that is a
/// terminal.
TrainResult run_train(Env& env, const Config& config, std::FILE* log);

/// Loads the saves of epochs infer_start_epoch up to infer_end_epoch and evaluates each on the test
/// data; what comes back is the last one's.
std::vector<Metric> run_infer(Env& env, const Config& config, std::FILE* log);

/// Everything that can be known before a run: the model is built, the data are found and the
/// beginning of each file is parsed. Says what it found; throws what a run would throw, in a job of
/// so many workers.
void run_check(Env& env, const Config& config, std::FILE* log, uint64_t workers = 1);

}  // namespace argosy
