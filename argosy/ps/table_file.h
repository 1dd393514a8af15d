#pragma once

#include <optional>

#include "argosy/base/bytes.h"
#include "argosy/base/function_ref.h"
#include "argosy/base/hash.h"
#include "argosy/ps/row_table.h"
#include "argosy/ps/saved_table.h"

// How a table is saved: docs/formats/saved-model.md has the bytes.
namespace argosy::ps {

/// What the images of a file are made of, in this order: unseen count, show and click, weights,
/// optimizer state.
struct TableLayout {
  uint64_t dim = 0;  // weights
  uint64_t row_floats = 0;
  uint64_t counted_floats = 0;  // of a key that is not admitted yet; 0: the entry counts nothing
  bool unseen = false, scores = false;

  size_t floats(Section section) const {
    return section == Section::rows ? row_floats : counted_floats;
  }
  size_t weights_at() const { return (unseen ? 1 : 0) + (scores ? 2 : 0); }
  size_t state_floats() const { return row_floats - weights_at() - dim; }
  bool operator==(const TableLayout&) const = default;
};
TableLayout layout_of(const RowRecipe& recipe);

/// Writes a table's file row by row, in the order of the keys: rows first, then counted keys.
class TableWriter {
 public:
  TableWriter(ByteSink& out, const TableLayout& layout);
  void add(Section section, std::span<const Key> keys, std::span<const float> images);
  FileSum finish();

 private:
  void put(std::span<const std::byte> bytes);
  void put_block(std::span<const Key> keys, std::span<const float> images);
  void end_section();

  ByteSink& out_;
  TableLayout layout_;
  RunningHash hash_;
  FileSum sum_;
  Section section_ = Section::rows;
  std::vector<Key> keys_;  // of the block that is not full yet
  std::vector<float> images_;
};

/// Reads such a file block by block and checks all that can be checked without the table it
/// belongs to: lengths, order of the keys and, before it says that the end is reached, the sum.
/// Throws DataError.
class TableReader {
 public:
  static constexpr size_t kHeaderBytes = 40;

  /// Reads as far as the layout.
  explicit TableReader(ByteReader& in);

  struct Block {
    Section section;
    std::span<const Key> keys;  // at least one; good until the next call
    std::span<const float> images;
  };
  std::optional<Block> next();

  const TableLayout& layout() const { return layout_; }
  const std::string& what() const { return in_.what(); }
  /// Of all of the file, once next() has returned nothing.
  const FileSum& sum() const { return sum_; }

 private:
  template <Plain T>
  void take(std::span<T> values);
  void finish();

  ByteReader& in_;
  TableLayout layout_;
  RunningHash hash_;
  FileSum sum_;
  Section section_ = Section::rows;
  bool ended_ = false;
  std::optional<Key> last_;
  std::vector<Key> keys_;
  std::vector<float> images_;
};

/// Rows in the order of their keys: equal tables give equal bytes, whatever their kind and their
/// shards. Beside other calls each row is saved whole, but not all at the same moment. Throws
/// DataError naming table and key where a row holds NaN or infinity.
FileSum save_table(RowTable& table, ByteSink& out);

/// Replaces the content of a table by a save of one or more parts, each key in exactly one.
/// Nothing changes before finish(): a part that does not fit throws DataError and leaves the table
/// as it was. Rows saved without optimizer state, as in geo mode, get a fresh one.
class TableLoad {
 public:
  explicit TableLoad(RowTable& table)
      : recipe_(table.recipe()), loading_(table.images().begin_load()) {}

  /// Adds the rows whose keys `keep` accepts.
  FileSum add(ByteReader& part, FunctionRef<bool(Key)> keep);
  void finish() { loading_->commit(); }

 private:
  void add_block(const TableReader::Block& block, const TableReader& from,
                 FunctionRef<bool(Key)> keep);

  const RowRecipe& recipe_;
  std::unique_ptr<RowImages::Loading> loading_;
  std::vector<Key> keys_;
  std::vector<float> images_;
};

/// A TableLoad of one part.
void load_table(RowTable& table, ByteReader& in);

}  // namespace argosy::ps
