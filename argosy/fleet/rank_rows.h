#pragma once

#include <span>
#include <vector>

#include "argosy/base/rows.h"
#include "argosy/comm/group.h"
#include "argosy/data/batch.h"
#include "argosy/fleet/plan.h"

namespace argosy {

/// The gradients of the rows that the batches of all ranks have looked up, brought to every rank. A
/// step is add_keys() and put() of each batch, tell() before the gradients are computed,
/// send_keys() and send() in the order of the parcels, then take(). The plan outlives it. Thread
/// safety: none.
class RankRows {
 public:
  RankRows(Group& group, const Plan& plan);

  bool any() const { return !tables_.empty(); }
  /// Forgets the step before.
  void clear();
  void add_keys(const Batch& batch);
  /// How many keys this rank has; none where it has no batch.
  void tell();
  /// When tell() is through everywhere.
  void send_keys();
  void put(size_t table, std::span<const float> grad, float share);
  /// Multiplies all that was put.
  void scale(float factor);
  void send(size_t table);

  struct Rows {
    std::span<const Key> keys;  // in the order of ranks; a key may come more than once
    std::span<float> grads;
  };
  /// Waits for them.
  Rows take(size_t table);

 private:
  struct KeySet {
    bool used = false;
    size_t own = 0, most = 0;        // keys of this rank, and of the rank that has most of them
    std::vector<int64_t> mine, all;  // all: `most` of each rank, closed up by take()
    Work work = {};
    bool closed_up = false;
  };
  struct Table {
    size_t table = 0;
    size_t dim = 0;
    std::vector<float> mine = {}, all = {};
    Work work = {};
  };
  int64_t count_of(size_t rank, size_t set) const { return counts_[rank * sets_.size() + set]; }
  template <class T>
  size_t close_up(std::vector<T>& all, size_t set, size_t width) const;

  Group& group_;
  const Plan& plan_;
  std::vector<KeySet> sets_;
  std::vector<Table> tables_;                 // the sparse ones
  std::vector<size_t> number_of_;             // by table of the plan: in tables_
  std::vector<int64_t> own_counts_, counts_;  // keys by set; of all ranks
  Work counts_work_;
};

}  // namespace argosy
