#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/key.h"

// What `argosy ckpt` does with saved models (docs/reference/ckpt.md). All of it reads tables block
// by block, so that a table may be larger than the memory; parameters are held whole.
namespace argosy {

/// Prints each checkpoint and exported model at or below a folder, with the tables it has. Throws
/// ConfigError where there is none.
void list_checkpoints(Env& env, const std::string& dir, std::FILE* out);

/// Reads all files of each checkpoint and exported model at or below a folder again and prints a
/// line for each: sums, widths, order of the keys, each key in one file only, finite values. Ends
/// with a DataError that names the first trouble, after it has looked at everything.
void verify_checkpoints(Env& env, const std::string& dir, std::FILE* out);

struct InspectOptions {
  std::string table = {}, parameter = {};  // only this one
  std::vector<Key> keys = {};              // rows to print, of `table` or of the only one
};
/// Prints shapes, counts, norms and first values, or rows by their keys.
void inspect_checkpoint(Env& env, const std::string& dir, const InspectOptions& options,
                        std::FILE* out);

enum class Difference : uint8_t { none, some };
/// Prints how two checkpoints differ: parameters and rows, with the largest differences. How many
/// servers saved them makes no difference.
Difference diff_checkpoints(Env& env, const std::string& a, const std::string& b, std::FILE* out);

/// Writes parameters and tables for other programs to a folder: `text`, `npy` or `safetensors`.
/// Throws ConfigError for another format.
void export_checkpoint(Env& env, const std::string& dir, const std::string& to,
                       const std::string& format, std::FILE* out);

/// Writes a checkpoint whose tables are a file per server, as `servers` servers would save it; 0:
/// one file per table, as a run without servers saves it. Throws ConfigError where `to` has a
/// checkpoint already.
void reshard_checkpoint(Env& env, const std::string& dir, uint32_t servers, const std::string& to,
                        std::FILE* out);

}  // namespace argosy
