#pragma once

#include <memory>
#include <span>
#include <string>

#include "argosy/base/bytes.h"
#include "argosy/base/rows.h"

namespace argosy {

/// Everything a server needs to hold one table, as text and numbers: the same on every process.
struct TableSpec {
  std::string name;
  size_t dim = 1;                           // floats per row; of a dense parameter: per block
  size_t elements = 0;                      // a dense parameter's size; 0: a sparse table
  std::string rule = "sgd";                 // rule.h
  std::string init = "zeros";               // initializer.h
  std::string learning_rate = "0.01";       // schedule.h
  std::string regularizer = {}, clip = {};  // gradient.h
  uint64_t seed = 0;
  // Of dense parameters only:
  size_t unit = 1;           // floats that are never cut apart: a row of a matrix
  size_t first = 0, of = 0;  // a part of a parameter of `of` elements, from `first`; 0: whole
  // Of sparse tables only:
  std::string entry = {};     // who gets a row: entry.h
  bool track_unseen = false;  // count the shrinks since a row was last used, 4 bytes a row
  size_t shards = 16;         // parts with a lock of their own: a power of two up to 4,096
};

/// Rows of floats by key. A dense parameter is a table whose keys are block numbers. Thread
/// safety: all methods may be called from any thread.
class Table {
 public:
  virtual ~Table() = default;
  /// A sparse table makes the rows that are missing.
  virtual void pull(std::span<const Key> keys, std::span<float> rows) = 0;
  /// One rule step for each row, as step number `step` (the first is 1).
  virtual void push(std::span<const Key> keys, std::span<const float> grads, uint64_t step) = 0;
  virtual void assign(std::span<const Key> keys, std::span<const float> rows) = 0;
  virtual size_t size() const = 0;  // rows
  virtual void save(ByteSink& out) const = 0;
  /// Takes over all or nothing: a source that does not fit throws DataError and changes nothing.
  virtual void load(ByteSource& in) = 0;
};

/// A DenseTable if the spec has elements, else a SparseTable. Throws ConfigError.
std::unique_ptr<Table> make_table(const TableSpec& spec);

}  // namespace argosy
