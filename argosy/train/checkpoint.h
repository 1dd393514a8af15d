#pragma once

#include <optional>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/modes/table_store.h"
#include "argosy/ps/placement.h"
#include "argosy/ps/server_mark.h"
#include "argosy/train/manifest.h"

namespace argosy {

namespace ps {
class Server;
}

/// Saves everything a run needs to continue: `dir`/persistables.argosy with parameters, states,
/// optimizer state and counters, and one file per sparse table, which it names. It is written last,
/// so a crash at any moment leaves either the previous checkpoint or the new one.
void save_checkpoint(Env& env, const std::string& dir, TableStore& store,
                     const ResumePoint& resume);
/// Fills the store. Throws DataError with the path if something is damaged, missing, of another
/// save or does not fit the model, of which nothing has changed then.
ResumePoint load_checkpoint(Env& env, const std::string& dir, TableStore& store);

/// Which of the saves in a folder, counted from 1, the checkpoint there is; 0: there is none.
uint64_t checkpoint_generation(Env& env, const std::string& dir);

/// The part of a save that a server continues from.
struct SavedPart {
  ResumePoint resume;
  std::optional<ps::ServerMark> mark;  // nothing where other servers than these have saved
};
/// Fills a server that nobody uses yet with its part of a checkpoint, whoever saved it: rows,
/// slices of the parameters, optimizer state where it was saved, and the step. Throws DataError.
SavedPart load_part(Env& env, const std::string& dir, const ps::Placement& placement,
                    uint32_t index, ps::Server& server);

/// Fills some of the tensors that a checkpoint holds. Throws DataError, and changes nothing, where
/// one does not fit.
void load_states(Env& env, const std::string& dir, const std::vector<NamedTensor>& states);

}  // namespace argosy
