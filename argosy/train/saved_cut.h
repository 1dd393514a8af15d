#pragma once

#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/modes/table_store.h"
#include "argosy/train/manifest.h"

// Cuts as checkpoints: what the servers have made becomes one by a manifest (docs/formats/cut.md).
namespace argosy {

/// Writes the manifest of a cut whose parts are in `dir`, which makes it a checkpoint: a crash at
/// any moment leaves one or none. `number` is its generation.
void save_cut(Env& env, const std::string& dir, const SavedCut& cut, const ResumePoint& resume,
              uint64_t number);

/// A checkpoint's manifest and tensors, those of a cut taken from the parts of its servers.
struct CheckpointContent {
  Manifest manifest;
  std::vector<NamedTensor> tensors;
};
/// Throws DataError, naming file and offset, for what is damaged, missing or of another checkpoint.
CheckpointContent read_checkpoint(Env& env, const std::string& dir);

}  // namespace argosy
