#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "argosy/base/key.h"
#include "argosy/base/key_numbering.h"
#include "argosy/ps/row_table.h"

namespace argosy::ps {

/// Different keys, in the order in which they first came. Thread safety: none.
class DirtyKeys {
 public:
  void add(Key key) {
    if (keys_.size() == room_) grow();
    numbering_.number(key, keys_);
  }
  std::span<const Key> keys() const { return keys_; }
  size_t size() const { return keys_.size(); }
  void clear() {
    keys_.clear();
    numbering_.begin(room_);
  }

 private:
  static constexpr size_t kFirst = 1024;
  void grow() {
    room_ = room_ == 0 ? kFirst : 2 * room_;
    const std::vector<Key> before = std::exchange(keys_, {});
    numbering_.begin(room_);
    keys_.reserve(room_);
    for (const Key key : before) numbering_.number(key, keys_);
  }

  KeyNumbering numbering_;
  std::vector<Key> keys_;
  size_t room_ = 0;
};

/// Remembers which rows and parameters of a shard have changed since a journal last took them. Kept
/// beside the tables, so a kind of table has nothing to do for it. Thread safety: row_applied() may
/// run beside itself for different parts, parameters_changed(), bytes() and any() beside all
/// others; everything else only while no part is worked on.
class ChangeSet {
 public:
  ChangeSet(std::span<const std::unique_ptr<RowTable>> tables, size_t parts);

  /// Rows of a ticket's part were applied or assigned.
  void rows_changed(size_t part, size_t table, const Ticket& ticket);
  void parameters_changed() { parameters_ = any_ = true; }
  /// The table was replaced as a whole.
  void replaced(size_t table) { tables_[table].replaced = any_ = true; }
  /// All tables were shrunk. What a shrink does follows from the rows, so it is kept by its
  /// argument.
  void shrunk(uint32_t unseen) {
    shrinks_.push_back(unseen);
    any_ = true;
  }

  /// Bytes of the rows that have changed, about.
  size_t bytes() const { return bytes_; }
  bool any() const { return bytes_ > 0 || any_; }

  bool has_parameters() const { return parameters_; }
  std::span<const uint32_t> shrinks() const { return shrinks_; }
  bool is_replaced(size_t table) const { return tables_[table].replaced; }
  std::span<const Key> keys(size_t part, size_t table) const {
    return tables_[table].parts[part].keys();
  }
  void clear();

 private:
  struct Table {
    std::deque<DirtyKeys> parts;
    size_t shards = 1, row_bytes = 0;
    bool replaced = false;
  };
  std::vector<Table> tables_;
  std::vector<uint32_t> shrinks_;
  std::atomic<size_t> bytes_ = 0;
  std::atomic<bool> parameters_ = false, any_ = false;
};

}  // namespace argosy::ps
