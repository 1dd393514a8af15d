#pragma once

#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/data/dataset.h"
#include "argosy/fleet/table_store.h"

namespace argosy {

/// Where a run stands.
struct ResumePoint {
  int epoch = 1;           // the one to go on with; the first is 1
  DataPosition data = {};  // how much of it has been trained on
};

/// All that a run needs to go on: `dir`/persistables.argosy with parameters, states, optimizer
/// state and counters, and a file for each sparse table, which it names. It is written last, so a
/// crash at any moment leaves the checkpoint that was there before, or the new one.
void save_checkpoint(Env& env, const std::string& dir, TableStore& store,
                     const ResumePoint& resume);
/// Fills the store. Throws DataError with the path where something is damaged, missing or does not
/// fit the model; no tensor has changed then, though a table may have.
ResumePoint load_checkpoint(Env& env, const std::string& dir, TableStore& store);

}  // namespace argosy
