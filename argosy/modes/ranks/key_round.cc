#include "argosy/modes/ranks/key_round.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "argosy/ps/wire.h"

namespace argosy {

KeyRound::KeyRound(comm::Group& group, const ps::Placement& placement, size_t key_sets)
    : group_(group),
      placement_(placement),
      ranks_(static_cast<size_t>(group.size())),
      sets_(key_sets),
      head_(head_size()),
      heads_(head_size() * ranks_) {
  const ps::ServerShape shape(placement, 0);
  for (size_t i = 0; i < key_sets; ++i) sets_[i].has_columns = shape.columns[i].counts;
  set(Says::nothing);
}

void KeyRound::set(const Batch& batch) {
  batch_ = &batch;
  is_started_ = false;
  head_[0] = static_cast<int64_t>(Says::keys);
  for (size_t i = 0; i < sets_.size(); ++i) {
    split(batch.keys[i], sets_[i]);
    if (sets_[i].has_columns)
      take_columns(batch.key_columns.empty() ? KeyColumns{} : batch.key_columns[i], sets_[i]);
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
    set.counts.clear();
    set.clicks.clear();
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
  // Each begin is at its end now, which is where the next one begins.
  std::shift_right(set.begin.begin(), set.begin.end(), 1);
  set.begin[0] = 0;
}

/// Missing columns get the defaults of RowColumns.
void KeyRound::take_columns(const KeyColumns& columns, KeySet& set) {
  set.counts.resize(set.places.size());
  set.clicks.resize(set.places.size());
  for (size_t i = 0; i < set.places.size(); ++i) {
    const uint32_t place = set.places[i];
    const uint32_t count = columns.counts.empty() ? 1 : columns.counts[place];
    const float show = columns.shows.empty() ? static_cast<float>(count) : columns.shows[place];
    const float click = columns.clicks.empty() ? 0 : columns.clicks[place];
    set.counts[i] =
        static_cast<int64_t>(uint64_t{count} << 32 | uint64_t{std::bit_cast<uint32_t>(show)});
    set.clicks[i] = static_cast<int64_t>(std::bit_cast<uint32_t>(click));
  }
}

comm::Collective KeyRound::telling() {
  return comm::calls::all_gather(group_, std::span<const int64_t>(head_), std::span(heads_));
}

size_t KeyRound::told(size_t from, size_t set, size_t to) const {
  return static_cast<size_t>(heads_[from * head_size() + 1 + set * ranks_ + to]);
}

/// Every rank gets a block of the same size from each. Keys spread evenly, so little of it is
/// empty.
comm::Collective KeyRound::sending() {
  block_ = 0;
  for (size_t i = 0; i < sets_.size(); ++i) {
    sets_[i].offset = block_;
    sets_[i].most = 0;
    for (size_t from = 0; from < ranks_; ++from)
      for (size_t to = 0; to < ranks_; ++to)
        sets_[i].most = std::max(sets_[i].most, told(from, i, to));
    block_ += sets_[i].most * (sets_[i].has_columns ? 3 : 1);
  }
  mine_.resize(block_ * ranks_);
  theirs_.resize(block_ * ranks_);
  for (const KeySet& set : sets_)
    for (size_t owner = 0; owner < ranks_; ++owner) {
      const auto put = [&](const std::vector<int64_t>& from, size_t at) {
        std::copy(from.begin() + static_cast<ptrdiff_t>(set.begin[owner]),
                  from.begin() + static_cast<ptrdiff_t>(set.begin[owner + 1]),
                  mine_.begin() + static_cast<ptrdiff_t>(owner * block_ + set.offset + at));
      };
      put(set.keys, 0);
      if (!set.has_columns || set.counts.empty()) continue;
      put(set.counts, set.most);
      put(set.clicks, 2 * set.most);
    }
  return comm::calls::all_to_all(group_, std::span<const int64_t>(mine_), std::span(theirs_));
}

bool KeyRound::start_sending() {
  told_.wait();
  if (any(Says::unknown)) return false;
  const comm::Collective call = sending();
  if (block_ > 0) sent_ = group_.start(call);
  is_started_ = true;
  return true;
}

void KeyRound::exchange() {
  group_.run(telling());
  const comm::Collective call = sending();
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

void KeyRound::add_columns_of(size_t rank, size_t set, KeyColumns& columns) const {
  if (!sets_[set].has_columns) return;
  const int64_t* const counts =
      theirs_.data() + rank * block_ + sets_[set].offset + sets_[set].most;
  const int64_t* const clicks = counts + sets_[set].most;
  for (size_t i = 0; i < told(rank, set, static_cast<size_t>(group_.rank())); ++i) {
    const auto packed = static_cast<uint64_t>(counts[i]);
    columns.counts.push_back(static_cast<uint32_t>(packed >> 32));
    columns.shows.push_back(std::bit_cast<float>(static_cast<uint32_t>(packed)));
    columns.clicks.push_back(std::bit_cast<float>(static_cast<uint32_t>(clicks[i])));
  }
}

std::span<const uint32_t> KeyRound::places(size_t owner, size_t set) const {
  const KeySet& keys = sets_[set];
  return std::span(keys.places)
      .subspan(keys.begin[owner], keys.begin[owner + 1] - keys.begin[owner]);
}

}  // namespace argosy
