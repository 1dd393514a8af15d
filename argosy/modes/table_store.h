#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/key.h"
#include "argosy/ps/verbs.h"
#include "argosy/tensor/tensor.h"

namespace argosy {

struct NamedTensor {
  std::string name;
  Tensor value;
};

/// All files of a save, and the marks of the servers that wrote them.
struct SavedTables {
  std::vector<ps::SavedTable> files = {};
  std::vector<std::string> marks = {};  // ServerMark::text(), by server; none: no servers
};

/// A cut that every server has made its part of (ps/cut.h).
struct SavedCut {
  std::vector<ps::SavedTable> parts = {};                  // by server
  std::vector<ps::SavedTable> tables = {};                 // in the files of the parts
  std::vector<ps::ServerMark> marks = {};                  // by server
  std::vector<NamedTensor> states = {};                    // of the worker that asked, when it did
  std::vector<std::pair<std::string, Shape>> shapes = {};  // of the parameters
  uint64_t bytes = 0, added = 0;                           // as in verbs::Cut
  bool late = false;  // a server had gone on before the verb came: there is no cut
};

/// Rows of a table, sorted by key.
struct TableRows {
  std::vector<Key> keys;
  Tensor rows;  // [keys, dim]
};

/// Collects rows of a table in any order.
class RowsByKey {
 public:
  explicit RowsByKey(size_t dim) : dim_(dim) {}
  void add(std::span<const Key> keys, std::vector<float> rows);
  TableRows take();

 private:
  struct Row {
    Key key;
    const float* values;
  };
  size_t dim_;
  std::vector<Row> rows_;
  std::vector<std::vector<float>> values_;
};

/// Parameters, rows and optimizer state, local or remote. For use between batches only.
class TableStore {
 public:
  virtual ~TableStore() = default;
  /// Everything a later run needs except sparse tables: parameters and states by name, then
  /// optimizer state and counters as "name@what".
  virtual std::vector<NamedTensor> persistables() = 0;
  /// Takes what persistables() returned, with new values.
  virtual void restore(const std::vector<NamedTensor>& values) = 0;
  virtual std::vector<std::string> sparse_tables() const = 0;
  /// Writes the sparse tables to files of `folder` that are named after them and `generation`.
  virtual SavedTables save(Env& env, const std::string& folder, uint64_t generation) = 0;
  /// Loads such files, written by one process or many. Throws DataError.
  virtual void load(Env& env, const std::string& folder,
                    std::span<const ps::SavedTable> tables) = 0;
  virtual TableRows rows(const std::string& table) = 0;
  /// RowTable::shrink on every table that tracks it; returns how many rows were erased.
  virtual size_t shrink(uint32_t unseen) = 0;
};

}  // namespace argosy
