#pragma once

#include "argosy/base/bytes.h"
#include "argosy/base/function_ref.h"
#include "argosy/base/hash.h"
#include "argosy/ps/row_table.h"

// How a table is saved: docs/formats/saved-model.md has the bytes.
namespace argosy::ps {

/// Rows in the order of their keys: equal tables give equal bytes, whatever their kind and their
/// shards. Beside other calls each row is saved whole, but not all at the same moment. Throws
/// DataError naming table and key where a row holds NaN or infinity.
void save_table(RowTable& table, ByteSink& out);

/// Replaces the content of a table by a save of one or more parts, each key in exactly one.
/// Nothing changes before finish(): a part that does not fit throws DataError and leaves the table
/// as it was. Rows saved without optimizer state, as in geo mode, get a fresh one.
class TableLoad {
 public:
  explicit TableLoad(RowTable& table)
      : recipe_(table.recipe()), loading_(table.images().begin_load()) {}

  /// Adds the rows whose keys `keep` accepts.
  void add(ByteReader& part, FunctionRef<bool(Key)> keep);
  void finish() { loading_->commit(); }

 private:
  void add_section(Section section, size_t width, ByteReader& in, class RunningHash& sum,
                   FunctionRef<bool(Key)> keep);

  const RowRecipe& recipe_;
  std::unique_ptr<RowImages::Loading> loading_;
  std::vector<Key> keys_;
  std::vector<float> images_;
};

/// A TableLoad of one part.
void load_table(RowTable& table, ByteReader& in);

}  // namespace argosy::ps
