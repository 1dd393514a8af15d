#pragma once

#include <memory>
#include <span>
#include <vector>

#include "argosy/fleet/communicator.h"
#include "argosy/fleet/key_round.h"
#include "argosy/fleet/local_store.h"
#include "argosy/fleet/plan.h"
#include "argosy/fleet/rank_rows.h"

namespace argosy {

/// Rows that have one owner each among the ranks, by the same slots as among servers: brought to
/// the ranks whose batches look them up, and their gradients to the owners. A step is, for each
/// batch of it, fetch() or fetch_nothing(), send_next_keys() and put(), then send() in the order of
/// the parcels, settle() and take(). The group, the plan and the store outlive it. Thread safety:
/// none.
class ShardedRows {
 public:
  /// `batches` make a step. Where it is one, the keys of a batch travel while the one before is
  /// computed.
  ShardedRows(Group& group, const Plan& plan, LocalStore& store, int batches);
  ~ShardedRows();
  ShardedRows(const ShardedRows&) = delete;
  ShardedRows& operator=(const ShardedRows&) = delete;

  static int lookahead(int batches) { return batches == 1 ? 1 : 0; }
  bool owns(Key key) const {
    return placement_.server_of(key) == static_cast<uint32_t>(group_.rank());
  }

  /// The batch will be fetched after those prepared before it.
  void prepare(const Batch& batch);
  /// Every rank begins a pass: nothing is prepared.
  void begin_pass();
  void begin_step();
  /// Puts the rows of the batch's keys into its feeds.
  void fetch(Batch& batch);
  /// This rank has no batch, and none will come in this pass.
  void fetch_nothing();
  void send_next_keys();
  void put(size_t table, std::span<const float> grad, float share);
  /// Multiplies all that was put.
  void scale(float factor);
  void send(size_t table);
  /// So many ranks had a batch for the step: keys that one has sent and has no gradients for are
  /// left out.
  void settle(int active);
  /// Of the rows that this rank owns. Waits for them.
  RankRows::Rows take(size_t table);

  /// fetch() for inference; every rank makes one of these calls. False: nobody has a batch.
  void infer(Batch& batch);
  bool infer_nothing();

 private:
  using Says = KeyRound::Says;
  /// A batch's keys, and the gradients of its rows.
  struct Round {
    struct Gradients {
      std::vector<float> mine = {}, theirs = {};  // a part for each rank
      Work work = {};
    };
    Round(Group& group, const Placement& placement, size_t key_sets, size_t tables)
        : keys(group, placement, key_sets), grads(tables) {}

    KeyRound keys;
    std::vector<Gradients> grads;       // by sparse table
    bool has_grads = false;             // of this rank
    std::vector<int32_t> has_grads_of;  // by rank; none: of all that have sent keys
  };
  struct Table {
    size_t table, dim, set;
    std::vector<float> all = {};
  };
  struct Owned {
    std::vector<Key> keys = {};
    bool is_collected = false;
  };
  size_t ranks() const { return static_cast<size_t>(group_.size()); }
  std::unique_ptr<Round> new_round();
  std::unique_ptr<Round> round_of(const Batch* batch);
  void tell_next();
  const Round& run_round(const Batch* batch);
  void exchange_rows(const KeyRound& keys, Purpose purpose);
  void hand_over(const KeyRound& keys, Batch& batch) const;
  template <class F>
  void each_part(size_t set, const F& use) const;

  Group& group_;
  const Plan& plan_;
  LocalStore& store_;
  const Placement placement_;
  const bool ahead_;
  std::vector<Table> tables_;      // the sparse ones
  std::vector<size_t> number_of_;  // by table of the plan: in tables_
  std::vector<std::unique_ptr<Round>> spare_, prepared_, step_;
  std::unique_ptr<Round> next_;  // whose keys are being told
  bool has_ended_ = false;       // no batch will come in this pass
  KeyRound asked_;               // of inference
  size_t row_block_ = 0;         // floats for each rank
  std::vector<float> rows_out_, rows_in_;
  std::vector<Owned> owned_;  // by key set
};

}  // namespace argosy
