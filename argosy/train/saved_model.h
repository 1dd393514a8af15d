#pragma once

#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/graph/program.h"
#include "argosy/modes/table_store.h"

namespace argosy {

/// A file of named tensors, perhaps with the program that uses them. The format, with its
/// checksum, is in docs/formats/saved-model.md.
struct SavedModel {
  std::string program;  // its text; of a checkpoint: what checkpoint.cc puts there
  std::vector<NamedTensor> tensors;
};

/// Atomic: a crash at any moment leaves the old file or the new one. Throws DataError, and writes
/// nothing, naming the first tensor that holds NaN or infinity: nobody could use such a model.
void save_model(Env& env, const std::string& path, const SavedModel& model);
/// Throws DataError with the path for a file that is truncated, damaged or of another format.
SavedModel load_model(Env& env, const std::string& path);

/// Throws DataError with the path unless it holds exactly these names, types and shapes.
void check_fits(const SavedModel& saved, const std::string& path,
                const std::vector<NamedTensor>& tensors);
/// Copies the saved values over these tensors, which it fits.
void copy_values(const SavedModel& saved, const std::vector<NamedTensor>& tensors);

/// `dir`/inference.argosy: what `outputs` need of the program, in inference mode, and its values;
/// of a sparse table T the rows as T and their keys as T@keys.
void save_inference(Env& env, const std::string& dir, const Program& program,
                    const std::vector<std::string>& outputs, TableStore& store);

}  // namespace argosy
