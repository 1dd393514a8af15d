#pragma once

#include <span>
#include <vector>

#include "argosy/base/rows.h"
#include "argosy/comm/group.h"
#include "argosy/data/batch.h"
#include "argosy/ps/placement.h"

namespace argosy {

/// The keys of one batch of every rank on their way to the ranks that own them: how many there are
/// of each rank for each, then the keys. The group and the placement outlive it, and so does what
/// is under way. Thread safety: none.
class KeyRound {
 public:
  /// What a rank knows about its batch of the round.
  enum class Says : int64_t { unknown, nothing, keys };

  KeyRound(Group& group, const Placement& placement, size_t key_sets);

  /// Begins anew with the keys of a batch, or without any.
  void set(const Batch& batch);
  void set(Says says);
  /// Whose keys these are; null: nobody's.
  const Batch* batch() const { return batch_; }

  /// First every rank tells how many keys it has, then it sends them.
  void start_telling() { told_ = group_.start(telling()); }
  /// Waits for all to have told. False: one does not know yet, and nothing is sent.
  bool start_sending();
  /// Both, now.
  void exchange();
  bool is_started() const { return is_started_; }
  /// Returns when the keys of all ranks are here, or nothing is under way.
  void wait() {
    told_.wait();
    sent_.wait();
  }

  bool any(Says says) const;
  int count(Says says) const;
  /// Keys that one rank has told another, at most: what parts of data for each rank are sized by.
  size_t most(size_t set) const { return sets_[set].most; }
  /// What `rank` asks of this one.
  std::span<const Key> keys_of(size_t rank, size_t set) const;
  /// Places in the batch of the keys that `owner` has, in the order in which it got them.
  std::span<const uint32_t> places(size_t owner, size_t set) const;

 private:
  struct KeySet {
    std::vector<uint32_t> places = {};  // by owner
    std::vector<int64_t> keys = {};     // the same
    std::vector<size_t> begin = {};     // by owner, and the end
    size_t most = 0;
    size_t offset = 0;  // in a rank's block of keys
  };
  void split(std::span<const Key> keys, KeySet& set);
  Collective telling();
  Collective sending();
  size_t told(size_t from, size_t set, size_t to) const;
  size_t head_size() const { return 1 + sets_.size() * ranks_; }

  Group& group_;
  const Placement& placement_;
  const size_t ranks_;
  const Batch* batch_ = nullptr;
  std::vector<KeySet> sets_;
  std::vector<int64_t> head_, heads_;   // Says, then counts by set and owner; of all ranks
  std::vector<int64_t> mine_, theirs_;  // a block for each rank
  size_t block_ = 0;
  bool is_started_ = false;
  Work told_, sent_;
  std::vector<uint16_t> owners_;  // of the keys of a set
};

}  // namespace argosy
