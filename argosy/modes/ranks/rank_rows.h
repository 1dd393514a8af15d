#pragma once

#include <span>
#include <vector>

#include "argosy/comm/group.h"
#include "argosy/modes/local_store.h"
#include "argosy/modes/ranks/rows_of_ranks.h"
#include "argosy/plan/plan.h"

namespace argosy {

/// Replicated rows: every rank has all of them and gets the gradients of all ranks' batches. The
/// group, the plan and the store must outlive it.
class RankRows final : public RowsOfRanks {
 public:
  RankRows(comm::Group& group, const Plan& plan, LocalStore& store);

  void begin_pass() override {}
  void prepare(const Batch&) override {}
  void begin_step() override;
  void fetch(Batch* batch) override;
  /// Starts to tell the others how many keys this rank has, 0 without a batch.
  void end_fetches() override;
  void infer(Batch& batch) override;
  /// Waits for the numbers of all ranks first.
  void send_keys() override;
  void put(size_t table, std::span<const float> grad, float share) override;
  void scale(float factor) override;
  void send(size_t table) override;
  void settle(int) override {}
  Rows take(size_t table) override;

 private:
  struct KeySet {
    bool used = false;
    size_t own = 0, most = 0;        // keys of this rank, and of the one with the most
    std::vector<int64_t> mine, all;  // all: `most` of each rank, closed up by take()
    comm::Work work = {};
    bool closed_up = false;
  };
  struct Table {
    size_t dim = 0;
    std::vector<float> mine = {}, all = {};
    comm::Work work = {};
  };
  int64_t count_of(size_t rank, size_t set) const { return counts_[rank * sets_.size() + set]; }
  template <class T>
  size_t close_up(std::vector<T>& all, size_t set, size_t width) const;

  comm::Group& group_;
  const Plan& plan_;
  LocalStore& store_;
  std::vector<ps::Ticket> tickets_;  // by table
  std::vector<KeySet> sets_;
  std::vector<Table> tables_;
  std::vector<int64_t> own_counts_, counts_;  // keys by set; of all ranks
  comm::Work counts_work_;
};

}  // namespace argosy
