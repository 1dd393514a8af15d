#include "argosy/ps/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>

namespace argosy {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kFirstMapping = size_t{8} << 20;
constexpr size_t kMapping = size_t{64} << 20;

size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

Arena::~Arena() {
  for (const Mapping& mapping : mappings_) munmap(mapping.start, mapping.size);
}

std::byte* Arena::take(size_t bytes) {
  bytes = round_up(bytes, kAlignment);
  const Lock lock(mutex_);
  if (bytes > left_) map(bytes);
  std::byte* const piece = next_;
  next_ += bytes;
  left_ -= bytes;
  return piece;
}

void Arena::map(size_t bytes) {
  const bool first = mappings_.empty();
  const size_t usable = round_up(std::max(bytes, first ? kFirstMapping : kMapping), kHugePage);
  mappings_.reserve(mappings_.size() + 1);
  // One huge page more than needed, so that the used part can start at a multiple of its size.
  const size_t size = usable + kHugePage;
  void* const start =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  mappings_.push_back({static_cast<std::byte*>(start), size});
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  next_ = mappings_.back().start + (round_up(address, kHugePage) - address);
  left_ = usable;
  if (!first) madvise(next_, usable, MADV_HUGEPAGE);  // a wish: without it the pages are small
}

}  // namespace argosy
