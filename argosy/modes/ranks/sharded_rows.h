#pragma once

#include <memory>
#include <span>
#include <vector>

#include "argosy/modes/communicator.h"
#include "argosy/modes/local_store.h"
#include "argosy/modes/ranks/key_round.h"
#include "argosy/modes/ranks/rows_of_ranks.h"
#include "argosy/plan/plan.h"

namespace argosy {

/// Sharded rows: each has one owner among the ranks, by the same slots as among servers. Rows go to
/// the ranks that look them up, gradients back to the owners. The group, the plan and the store
/// must outlive it.
class ShardedRows final : public RowsOfRanks {
 public:
  /// `batches` make a step. If it is 1, the keys of a batch travel while the previous one is
  /// computed.
  ShardedRows(comm::Group& group, const Plan& plan, LocalStore& store, int batches);
  ~ShardedRows() override;
  ShardedRows(const ShardedRows&) = delete;
  ShardedRows& operator=(const ShardedRows&) = delete;

  static int lookahead(int batches) { return batches == 1 ? 1 : 0; }
  bool owns(Key key) const {
    return placement_.server_of(key) == static_cast<uint32_t>(group_.rank());
  }

  void begin_pass() override;
  void prepare(const Batch& batch) override;
  void begin_step() override;
  void fetch(Batch* batch) override;
  void end_fetches() override {}
  /// Sends the keys of the next batch.
  void send_keys() override;
  void put(size_t table, std::span<const float> grad, float share) override;
  void scale(float factor) override;
  void send(size_t table) override;
  /// Drops keys that a rank has sent without gradients.
  void settle(int active) override;
  Rows take(size_t table) override;

  /// fetch() for inference; every rank calls one of these. False: no rank has a batch.
  void infer(Batch& batch) override;
  bool infer_nothing();

 private:
  using Says = KeyRound::Says;
  /// A batch's keys, and the gradients of its rows.
  struct Round {
    struct Gradients {
      std::vector<float> mine = {}, theirs = {};  // a part for each rank
      comm::Work work = {};
    };
    Round(comm::Group& group, const ps::Placement& placement, size_t key_sets, size_t tables)
        : keys(group, placement, key_sets), grads(tables) {}

    KeyRound keys;
    std::vector<Gradients> grads;       // by table
    bool has_grads = false;             // of this rank
    std::vector<int32_t> has_grads_of;  // by rank; none: of all that have sent keys
  };
  struct Table {
    size_t dim, set;
    std::vector<float> all = {};
  };
  struct Owned {
    std::vector<Key> keys = {};
    KeyColumns columns = {};
    bool is_collected = false;
  };
  size_t ranks() const { return static_cast<size_t>(group_.size()); }
  std::unique_ptr<Round> new_round();
  std::unique_ptr<Round> round_of(const Batch* batch);
  void tell_next();
  const Round& run_round(const Batch* batch);
  void exchange_rows(const KeyRound& keys, ps::Purpose purpose);
  void hand_over(const KeyRound& keys, Batch& batch) const;
  template <class F>
  void each_part(size_t set, const F& use) const;

  comm::Group& group_;
  const Plan& plan_;
  LocalStore& store_;
  const ps::Placement placement_;
  const bool ahead_;
  std::vector<Table> tables_;
  std::vector<std::unique_ptr<Round>> spare_, prepared_, step_;
  std::unique_ptr<Round> next_;  // its keys are being sent
  bool has_ended_ = false;       // no more batches in this pass
  KeyRound asked_;               // of inference
  size_t row_block_ = 0;         // floats for each rank
  std::vector<float> rows_out_, rows_in_;
  ps::Ticket ticket_;
  std::vector<Owned> owned_;  // by key set
};

}  // namespace argosy
