#pragma once

#include <string>

#include "argosy/base/env.h"
#include "argosy/config/config.h"
#include "argosy/config/plan_report.h"
#include "argosy/data/batch.h"
#include "argosy/modes/table_store.h"
#include "argosy/ps/placement.h"
#include "argosy/train/trainer.h"

namespace argosy {

/// How much was found equal to the bit.
struct Proof {
  size_t parameters = 0, rows = 0;
};

/// Trains on a batch twice over, whole in this process and split over servers on loopback by the
/// placement, and compares all parameters, their optimizer state, and every row that was touched.
/// The second step shows differences in the rows' optimizer state. Throws DataError that names the
/// first difference.
Proof prove_split(Env& env, const Model& model, const TrainerOptions& options,
                  const ps::Placement& placement, const Batch& batch);

/// Throws DataError that names the first difference; returns the rows that were compared.
size_t compare_stores(TableStore& whole, TableStore& split);

/// prove_split for a configuration, with a batch of its data; without data, one made up from its
/// seed.
Proof prove_plan(Env& env, const Config& config, const PlanOptions& options);
/// The made-up batch.
Batch random_batch(const Config& config, const Plan& plan, const TablesOptions& tables);

}  // namespace argosy
