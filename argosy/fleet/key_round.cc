#include "argosy/fleet/key_round.h"

#include <algorithm>
#include <utility>

namespace argosy {

KeyRound::KeyRound(Group& group, const Placement& placement, size_t key_sets)
    : group_(group),
      placement_(placement),
      ranks_(static_cast<size_t>(group.size())),
      sets_(key_sets),
      head_(head_size()),
      heads_(head_size() * ranks_) {
  set(Says::nothing);
}

void KeyRound::set(const Batch& batch) {
  batch_ = &batch;
  is_started_ = false;
  head_[0] = static_cast<int64_t>(Says::keys);
  for (size_t i = 0; i < sets_.size(); ++i) {
    split(batch.keys[i], sets_[i]);
    for (size_t owner = 0; owner < ranks_; ++owner)
      head_[1 + i * ranks_ + owner] =
          static_cast<int64_t>(sets_[i].begin[owner + 1] - sets_[i].begin[owner]);
  }
}

void KeyRound::set(Says says) {
  batch_ = nullptr;
  is_started_ = false;
  std::ranges::fill(head_, 0);
  head_[0] = static_cast<int64_t>(says);
  for (KeySet& set : sets_) {
    set.places.clear();
    set.keys.clear();
    set.begin.assign(ranks_ + 1, 0);
  }
}

void KeyRound::split(std::span<const Key> keys, KeySet& set) {
  owners_.resize(keys.size());
  set.places.resize(keys.size());
  set.keys.resize(keys.size());
  set.begin.assign(ranks_ + 1, 0);
  for (size_t i = 0; i < keys.size(); ++i) {
    owners_[i] = static_cast<uint16_t>(placement_.server_of(keys[i]));
    ++set.begin[owners_[i]];
  }
  size_t begin = 0;
  for (size_t& at : set.begin) begin += std::exchange(at, begin);
  for (size_t i = 0; i < keys.size(); ++i) {
    const size_t at = set.begin[owners_[i]]++;
    set.places[at] = static_cast<uint32_t>(i);
    set.keys[at] = static_cast<int64_t>(keys[i]);
  }
  // Each begin stands at its end now, which is where the next one begins.
  std::shift_right(set.begin.begin(), set.begin.end(), 1);
  set.begin[0] = 0;
}

Collective KeyRound::telling() {
  return calls::all_gather(group_, std::span<const int64_t>(head_), std::span(heads_));
}

size_t KeyRound::told(size_t from, size_t set, size_t to) const {
  return static_cast<size_t>(heads_[from * head_size() + 1 + set * ranks_ + to]);
}

/// Every rank gets a block of the same size from each. Keys spread evenly, so little of it is
/// empty.
Collective KeyRound::sending() {
  block_ = 0;
  for (size_t i = 0; i < sets_.size(); ++i) {
    sets_[i].offset = block_;
    sets_[i].most = 0;
    for (size_t from = 0; from < ranks_; ++from)
      for (size_t to = 0; to < ranks_; ++to)
        sets_[i].most = std::max(sets_[i].most, told(from, i, to));
    block_ += sets_[i].most;
  }
  mine_.resize(block_ * ranks_);
  theirs_.resize(block_ * ranks_);
  for (const KeySet& set : sets_)
    for (size_t owner = 0; owner < ranks_; ++owner)
      std::copy(set.keys.begin() + static_cast<ptrdiff_t>(set.begin[owner]),
                set.keys.begin() + static_cast<ptrdiff_t>(set.begin[owner + 1]),
                mine_.begin() + static_cast<ptrdiff_t>(owner * block_ + set.offset));
  return calls::all_to_all(group_, std::span<const int64_t>(mine_), std::span(theirs_));
}

bool KeyRound::start_sending() {
  told_.wait();
  if (any(Says::unknown)) return false;
  const Collective call = sending();
  if (block_ > 0) sent_ = group_.start(call);
  is_started_ = true;
  return true;
}

void KeyRound::exchange() {
  group_.run(telling());
  const Collective call = sending();
  if (block_ > 0) group_.run(call);
  is_started_ = true;
}

int KeyRound::count(Says says) const {
  int ranks = 0;
  for (size_t rank = 0; rank < ranks_; ++rank)
    ranks += heads_[rank * head_size()] == static_cast<int64_t>(says) ? 1 : 0;
  return ranks;
}

bool KeyRound::any(Says says) const { return count(says) > 0; }

std::span<const Key> KeyRound::keys_of(size_t rank, size_t set) const {
  // A key is the same bits, signed or not.
  const Key* const keys = reinterpret_cast<const Key*>(theirs_.data());
  return {keys + rank * block_ + sets_[set].offset,
          told(rank, set, static_cast<size_t>(group_.rank()))};
}

std::span<const uint32_t> KeyRound::places(size_t owner, size_t set) const {
  const KeySet& keys = sets_[set];
  return std::span(keys.places)
      .subspan(keys.begin[owner], keys.begin[owner + 1] - keys.begin[owner]);
}

}  // namespace argosy
