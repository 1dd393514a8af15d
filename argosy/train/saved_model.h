#pragma once

#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/fleet/communicator.h"

namespace argosy {

/// A file of named tensors, perhaps with the program that uses them. The format, with its
/// checksum, is in docs/formats/saved-model.md.
struct SavedModel {
  std::string program;  // its text, or ""
  std::vector<NamedTensor> tensors;
};

/// Atomic: a crash at any moment leaves the old file or the new one.
void save_model(Env& env, const std::string& path, const SavedModel& model);
/// Throws DataError with the path for a file that is truncated, damaged or of another format.
SavedModel load_model(Env& env, const std::string& path);

/// `dir`/persistables.argosy
void save_persistables(Env& env, const std::string& dir,
                       const std::vector<NamedTensor>& persistables);
/// Copies the saved values over these tensors: all of them, or, where the file does not have
/// exactly these names, types and shapes, none.
void load_persistables(Env& env, const std::string& dir,
                       const std::vector<NamedTensor>& persistables);

/// `dir`/inference.argosy: what `outputs` need of the program, in inference mode, and its values.
void save_inference(Env& env, const std::string& dir, const Program& program,
                    const std::vector<std::string>& outputs,
                    const std::vector<NamedTensor>& persistables);

}  // namespace argosy
