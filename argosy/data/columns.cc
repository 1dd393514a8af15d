#include "argosy/data/columns.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <set>
#include <sstream>

#include "argosy/base/call.h"
#include "argosy/base/error.h"

namespace argosy {
namespace {

constexpr size_t kFirstCapacity = 1024;
constexpr size_t kMostValues = std::numeric_limits<uint32_t>::max();

template <class T>
void enlarge(std::unique_ptr<T[]>& values, size_t size, size_t capacity) {
  auto larger = std::make_unique_for_overwrite<T[]>(capacity);
  std::copy_n(values.get(), size, larger.get());
  values = std::move(larger);
}

}  // namespace

void check_slots(std::span<const SlotSpec> slots) {
  check<ConfigError>(!slots.empty(), "expected at least one slot");
  std::set<std::string_view> names;
  for (const SlotSpec& slot : slots) {
    check<ConfigError>(is_plain_name(slot.name), "slot '", slot.name, "': ", kPlainName);
    check<ConfigError>(names.insert(slot.name).second, "slot '", slot.name, "' is declared twice");
    check<ConfigError>(slot.width == 0 || slot.empty != EmptySlot::empty, "slot '", slot.name,
                       "' has ", slot.width, " values per instance and cannot stay empty");
    check<ConfigError>(slot.limit == 0 || slot.kind == SlotKind::ids, "slot '", slot.name,
                       "' holds floats and cannot have a limit for ids");
  }
}

Columns::Columns(std::vector<SlotSpec> slots) : slots_(std::move(slots)) {
  check_slots(slots_);
  for (const SlotSpec& slot : slots_) {
    Column& column = columns_.emplace_back();
    column.kind = slot.kind;
    column.empty = slot.empty;
    column.width = slot.width;
    column.limit = slot.limit;
    column.binary = slot.binary;
  }
  grow_rows();
}

std::span<const uint64_t> Columns::ids(size_t slot) const {
  assert(slots_[slot].kind == SlotKind::ids);
  return {columns_[slot].ids.get(), columns_[slot].committed};
}

std::span<const float> Columns::floats(size_t slot) const {
  assert(slots_[slot].kind == SlotKind::floats);
  return {columns_[slot].floats.get(), columns_[slot].committed};
}

std::span<const uint32_t> Columns::offsets(size_t slot) const {
  if (columns_[slot].width != 0) return {};
  return {columns_[slot].offsets.get(), rows_ + 1};
}

std::optional<std::string> Columns::commit() {
  if (rows_ == row_capacity_) grow_rows();
  for (size_t slot = 0; slot < columns_.size(); ++slot) {
    Column& column = columns_[slot];
    if (!complete(column)) [[unlikely]] {
      std::string reason = wrong_count(slot);
      rollback();
      return reason;
    }
    if (column.limit == 0 && !column.binary) continue;
    auto reason = column.binary ? no_label(slot) : id_beyond_limit(slot);
    if (reason) [[unlikely]] {
      rollback();
      return reason;
    }
  }
  ++rows_;
  for (Column& column : columns_) {
    column.committed = column.size;
    if (column.width == 0) column.offsets[rows_] = static_cast<uint32_t>(column.size);
  }
  return std::nullopt;
}

/// Pads an empty slot if its policy allows; false if the count is still wrong.
inline bool Columns::complete(Column& column) {
  const size_t n = column.size - column.committed;
  if (column.width == 0 ? n != 0 : n == column.width) [[likely]]
    return true;
  if (n != 0 || column.empty == EmptySlot::error) return false;
  if (column.empty == EmptySlot::empty) return true;
  const size_t zeros = std::max<size_t>(column.width, 1);
  if (column.kind == SlotKind::ids)
    std::fill_n(add(column, zeros, column.ids), zeros, uint64_t{0});
  else
    std::fill_n(add(column, zeros, column.floats), zeros, 0.0F);
  return true;
}

std::string Columns::wrong_count(size_t slot) const {
  const SlotSpec& spec = slots_[slot];
  const std::string wanted = spec.width == 0 ? "at least 1" : std::to_string(spec.width);
  return "slot '" + spec.name + "': expected " + wanted + " values, found " +
         std::to_string(added(slot));
}

std::optional<std::string> Columns::id_beyond_limit(size_t slot) const {
  const Column& column = columns_[slot];
  for (size_t i = column.committed; i < column.size; ++i)
    if (column.ids[i] >= column.limit)
      return "slot '" + slots_[slot].name + "': id " + std::to_string(column.ids[i]) +
             " is beyond its table of " + std::to_string(column.limit) + " rows";
  return std::nullopt;
}

std::optional<std::string> Columns::no_label(size_t slot) const {
  const Column& column = columns_[slot];
  const auto refused = [&](const auto* values) -> std::optional<std::string> {
    for (size_t i = column.committed; i < column.size; ++i)
      if (values[i] != 0 && values[i] != 1) [[unlikely]] {
        std::ostringstream reason;
        reason << "label '" << slots_[slot].name << "' is " << values[i]
               << ", expected 0 or 1 for log loss";
        return reason.str();
      }
    return std::nullopt;
  };
  return column.kind == SlotKind::ids ? refused(column.ids.get()) : refused(column.floats.get());
}

void Columns::rollback() {
  for (Column& column : columns_) column.size = column.committed;
}

void Columns::append(const Columns& from, size_t row) {
  assert(from.columns_.size() == columns_.size() && row < from.rows_);
  if (rows_ == row_capacity_) grow_rows();
  ++rows_;
  for (size_t slot = 0; slot < columns_.size(); ++slot) {
    const Column& source = from.columns_[slot];
    Column& column = columns_[slot];
    const bool fixed = source.width != 0;
    const size_t first = fixed ? row * source.width : source.offsets[row];
    const size_t n = fixed ? source.width : source.offsets[row + 1] - first;
    if (source.kind == SlotKind::ids)
      std::copy_n(source.ids.get() + first, n, add(column, n, column.ids));
    else
      std::copy_n(source.floats.get() + first, n, add(column, n, column.floats));
    column.committed = column.size;
    if (!fixed) column.offsets[rows_] = static_cast<uint32_t>(column.size);
  }
}

void Columns::clear() {
  rows_ = 0;
  for (Column& column : columns_) column.size = column.committed = 0;
}

void Columns::grow(Column& column, size_t n) {
  check<DataError>(n <= kMostValues - column.size, "slot '", slots_[&column - columns_.data()].name,
                   "': more than ", kMostValues, " values in one set of columns");
  const size_t capacity = std::max({kFirstCapacity, 2 * column.capacity, column.size + n});
  if (column.kind == SlotKind::ids)
    enlarge(column.ids, column.size, capacity);
  else
    enlarge(column.floats, column.size, capacity);
  column.capacity = capacity;
}

void Columns::grow_rows() {
  const size_t capacity = std::max(kFirstCapacity, 2 * row_capacity_);
  for (Column& column : columns_) {
    if (column.width != 0) continue;
    enlarge(column.offsets, column.offsets ? rows_ + 1 : 0, capacity + 1);
    column.offsets[0] = 0;
  }
  row_capacity_ = capacity;
}

}  // namespace argosy
