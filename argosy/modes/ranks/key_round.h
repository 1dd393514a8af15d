#pragma once

#include <span>
#include <vector>

#include "argosy/base/key.h"
#include "argosy/comm/group.h"
#include "argosy/data/batch.h"
#include "argosy/ps/placement.h"

namespace argosy {

/// Sends the keys of one batch per rank to the ranks that own their rows: the counts first, then
/// the keys. The group and the placement must outlive it. Thread safety: none. Invariants:
///
///   1. Calls. A round is set(), start_telling(), start_sending(), wait(), or set() and exchange().
///      All ranks make the same calls of the group, so all must be in the same phase. Nothing may
///      be set or destroyed before wait() has returned: calls in progress use its memory.
///   2. The counts (head_, gathered from all ranks into heads_) decide alone what happens next:
///      block_, offsets and `most` are functions of heads_, so all ranks compute the same. If one
///      rank says `unknown`, no rank sends, and the round must be told again.
///   3. KeySet::keys and ::places are sorted by owner, in batch order for each: places(owner)[i] is
///      the place in the batch of the i-th key that this rank has sent to owner.
///   4. Every rank sends every rank one block of the same layout: by key set, `most` keys and, if
///      tables want side columns, `most` counts and `most` clicks. told() says how many are used.
class KeyRound {
 public:
  /// unknown: it may have a batch or not; nothing: it has none.
  enum class Says : int64_t { unknown, nothing, keys };

  KeyRound(comm::Group& group, const ps::Placement& placement, size_t key_sets);

  /// Starts a round with the keys of a batch, or without any.
  void set(const Batch& batch);
  void set(Says says);
  /// The batch of this round, or null.
  const Batch* batch() const { return batch_; }

  /// Starts to tell all ranks how many keys this one has.
  void start_telling() { told_ = group_.start(telling()); }
  /// Waits for the counts of all. False if a rank does not know yet: nothing is sent then.
  bool start_sending();
  /// Tells and sends at once, and waits.
  void exchange();
  bool is_started() const { return is_started_; }
  /// Returns when no call is in progress: the keys of all ranks have arrived, if any were sent.
  void wait() {
    told_.wait();
    sent_.wait();
  }

  bool any(Says says) const;
  int count(Says says) const;
  /// The most keys that any rank sends to any other: the size of a part in equal blocks.
  size_t most(size_t set) const { return sets_[set].most; }
  /// The keys that `rank` looks up in this one.
  std::span<const Key> keys_of(size_t rank, size_t set) const;
  /// Appends the side columns of these keys, if tables want them.
  void add_columns_of(size_t rank, size_t set, KeyColumns& columns) const;
  /// Places in the batch of the keys sent to `owner`, in that order.
  std::span<const uint32_t> places(size_t owner, size_t set) const;

 private:
  struct KeySet {
    std::vector<uint32_t> places = {};  // by owner
    std::vector<int64_t> keys = {};     // by owner
    // By owner, if tables want side columns: count and show in the two halves, and clicks.
    std::vector<int64_t> counts = {}, clicks = {};
    bool has_columns = false;
    std::vector<size_t> begin = {};  // by owner, and the end
    size_t most = 0;
    size_t offset = 0;  // in a rank's block of keys
  };
  void split(std::span<const Key> keys, KeySet& set);
  static void take_columns(const KeyColumns& columns, KeySet& set);
  comm::Collective telling();
  comm::Collective sending();
  size_t told(size_t from, size_t set, size_t to) const;
  size_t head_size() const { return 1 + sets_.size() * ranks_; }

  comm::Group& group_;
  const ps::Placement& placement_;
  const size_t ranks_;
  const Batch* batch_ = nullptr;
  std::vector<KeySet> sets_;
  std::vector<int64_t> head_, heads_;   // Says, then counts by set and owner; heads_: of all
  std::vector<int64_t> mine_, theirs_;  // one block per rank
  size_t block_ = 0;
  bool is_started_ = false;
  comm::Work told_, sent_;
  std::vector<uint16_t> owners_;  // of the keys of a set
};

}  // namespace argosy
