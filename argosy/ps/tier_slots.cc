#include "argosy/ps/tier_slots.h"

#include <algorithm>
#include <bit>

namespace argosy::ps {

TierSlots::TierSlots(size_t floats, size_t chunk_slots)
    : stride_(slot_bytes(floats)), chunk_bits_(std::countr_zero(std::bit_floor(chunk_slots))) {}

void TierSlots::grow() {
  const uint32_t first = slots();
  chunks_.push_back(std::make_unique<std::byte[]>(chunk_bytes()));
  free_.reserve(slots());
  for (uint32_t slot = slots(); slot > first; --slot) free_.push_back(slot - 1);
}

void TierSlots::close_last() {
  closing_ = true;
  const uint32_t first = first_of_closing();
  const size_t free = std::erase_if(free_, [&](uint32_t slot) { return slot >= first; });
  closing_used_ = slots() - first - static_cast<uint32_t>(free);
  if (closing_used_ > 0) return;
  chunks_.pop_back();
  closing_ = false;
}

uint32_t TierSlots::take(Key key, Section section) {
  const uint32_t slot = free_.back();
  free_.pop_back();
  std::memset(base(slot), 0, stride_);
  state(slot) = {key, kUsed | kWantedOnce};
  set_section(slot, section);
  return slot;
}

void TierSlots::give_back(uint32_t slot) {
  state(slot).word = 0;
  if (!closing_ || slot < first_of_closing()) {
    free_.push_back(slot);
    return;
  }
  if (--closing_used_ > 0) return;
  chunks_.pop_back();
  closing_ = false;
}

}  // namespace argosy::ps
