#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace argosy {

enum class SlotKind : uint8_t { ids, floats };

/// The treatment of an instance without a value in a slot: it is a bad line, it gets zeros, or
/// the slot stays empty (only where the width is 0).
enum class EmptySlot : uint8_t { error, pad, empty };

/// One feature of every instance.
struct SlotSpec {
  std::string name;
  SlotKind kind = SlotKind::ids;
  size_t width = 0;  // values per instance; 0 = any number of them
  EmptySlot empty = EmptySlot::error;
  uint64_t limit = 0;   // ids of this size and above make a line bad; 0: any id will do
  bool binary = false;  // a label of log loss: anything but 0 and 1 makes a line bad
};

/// Throws ConfigError for no slot at all, a repeated name, or a fixed width that may be empty.
void check_slots(std::span<const SlotSpec> slots);

/// Parsed instances: the values of each slot one after the other, for all instances. Memory is
/// kept by clear(), so a steady state allocates nothing. An instance is added value by value and
/// counts only after commit().
class Columns {
 public:
  /// Throws ConfigError as check_slots does.
  explicit Columns(std::vector<SlotSpec> slots);
  Columns(Columns&&) noexcept = default;
  Columns& operator=(Columns&&) noexcept = default;

  const std::vector<SlotSpec>& slots() const { return slots_; }
  size_t rows() const { return rows_; }
  std::span<const uint64_t> ids(size_t slot) const;
  std::span<const float> floats(size_t slot) const;
  /// Start of each instance's values, and the end: rows() + 1 numbers. Empty for a slot of fixed
  /// width.
  std::span<const uint32_t> offsets(size_t slot) const;

  /// Room for n more values of the instance being added, to be written before commit().
  uint64_t* add_ids(size_t slot, size_t n) { return add(columns_[slot], n, columns_[slot].ids); }
  float* add_floats(size_t slot, size_t n) { return add(columns_[slot], n, columns_[slot].floats); }
  /// Values the instance being added has so far.
  size_t added(size_t slot) const { return columns_[slot].size - columns_[slot].committed; }
  /// Ends the instance. If a slot breaks its spec, adds nothing and returns the reason.
  std::optional<std::string> commit();
  /// Forgets the instance being added.
  void rollback();
  /// Adds one instance of columns with the same slots.
  void append(const Columns& from, size_t row);
  void clear();

 private:
  struct Column {
    SlotKind kind;
    EmptySlot empty;
    size_t width;
    uint64_t limit;
    bool binary;
    size_t size = 0, committed = 0, capacity = 0;
    std::unique_ptr<uint64_t[]> ids;
    std::unique_ptr<float[]> floats;
    std::unique_ptr<uint32_t[]> offsets;
  };

  template <class T>
  T* add(Column& column, size_t n, std::unique_ptr<T[]>& values) {
    if (column.capacity - column.size < n) [[unlikely]]
      grow(column, n);
    T* const room = values.get() + column.size;
    column.size += n;
    return room;
  }
  void grow(Column& column, size_t n);
  void grow_rows();
  bool complete(Column& column);
  std::string wrong_count(size_t slot) const;
  std::optional<std::string> id_beyond_limit(size_t slot) const;
  std::optional<std::string> no_label(size_t slot) const;

  std::vector<SlotSpec> slots_;
  std::vector<Column> columns_;
  size_t rows_ = 0, row_capacity_ = 0;
};

}  // namespace argosy
