#pragma once

#include <optional>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/data/dataset.h"
#include "argosy/fleet/table_store.h"
#include "argosy/ps/placement.h"
#include "argosy/ps/server_mark.h"

namespace argosy {

class PsServer;

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

/// What a server goes on from.
struct SavedPart {
  ResumePoint resume;
  std::optional<ServerMark> mark;  // nothing where other servers than these have saved
};
/// Fills a server that nobody uses yet with its part of a checkpoint, whoever saved it: rows,
/// slices of the parameters, optimizer state where it was saved, and the step. Throws DataError.
SavedPart load_part(Env& env, const std::string& dir, const Placement& placement, uint32_t index,
                    PsServer& server);

/// Fills some of the tensors that a checkpoint holds. Throws DataError, and changes nothing, where
/// one does not fit.
void load_states(Env& env, const std::string& dir, const std::vector<NamedTensor>& states);

}  // namespace argosy
