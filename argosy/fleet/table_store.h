#pragma once

#include <span>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/rows.h"
#include "argosy/tensor/tensor.h"

namespace argosy {

struct NamedTensor {
  std::string name;
  Tensor value;
};

/// A file with rows of a sparse table: all of them, or a part.
struct SavedTable {
  std::string table, file;
};

/// All files of a save, and where each server stood that wrote some.
struct SavedTables {
  std::vector<SavedTable> files = {};
  std::vector<std::string> marks = {};  // ServerMark::text(), by server; none: no servers
};

/// Rows of a table in the order of their keys.
struct TableRows {
  std::vector<Key> keys;
  Tensor rows;  // [keys, dim]
};

/// Parameters, rows and optimizer state, wherever they live. Only between batches.
class TableStore {
 public:
  virtual ~TableStore() = default;
  /// All that a later run needs to go on, but for sparse tables: parameters and states by their
  /// names, then optimizer state and counters as "name@what".
  virtual std::vector<NamedTensor> persistables() = 0;
  /// What persistables() gave, with other values.
  virtual void restore(const std::vector<NamedTensor>& values) = 0;
  virtual std::vector<std::string> sparse_tables() const = 0;
  /// Writes the sparse tables to files of `folder` that are named after them and `generation`.
  virtual SavedTables save(Env& env, const std::string& folder, uint64_t generation) = 0;
  /// Takes over such files, of one process or of many. Throws DataError.
  virtual void load(Env& env, const std::string& folder, std::span<const SavedTable> tables) = 0;
  virtual TableRows rows(const std::string& table) = 0;
  /// SparseTable::shrink of every table that tracks it; returns how many rows went.
  virtual size_t shrink(uint32_t unseen) = 0;
};

}  // namespace argosy
