#include "argosy/net/frame.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "argosy/base/error.h"
#include "argosy/base/hash.h"
#include "argosy/base/mutex.h"

namespace argosy {
namespace {

constexpr size_t kSmall = 4096;                 // bytes; every buffer has at least these
constexpr size_t kTooLarge = 16;                // times what is needed: such a buffer is not given
constexpr size_t kHeldSmall = 16;               // buffers of kSmall bytes
constexpr size_t kHeldLarge = 8;                // others
constexpr size_t kHeldBytes = size_t{1} << 30;  // in others, unless a single one is larger

uint32_t sum_of(const FrameHeader& header) {
  const auto bytes = std::as_bytes(std::span(&header, 1));
  return static_cast<uint32_t>(hash64(bytes.first(offsetof(FrameHeader, header_sum))));
}

}  // namespace

void Buffer::resize(size_t bytes) {
  if (bytes > capacity_) {
    memory_.reset();
    const size_t capacity = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    memory_ = {static_cast<std::byte*>(std::aligned_alloc(kAlignment, capacity)),
               [](std::byte* memory) { std::free(memory); }};
    capacity_ = memory_ == nullptr ? 0 : capacity;
    size_ = 0;
    if (memory_ == nullptr) throw std::bad_alloc();
  }
  size_ = bytes;
}

/// Free buffers, small and large ones apart so that neither kind evicts the other. Thread safety:
/// full.
struct BufferPool::Shelf {
  using Held = std::vector<std::unique_ptr<Buffer>>;

  std::unique_ptr<Buffer> take(size_t bytes) {
    Lock lock(mutex_);
    Held& held = bytes <= kSmall ? small_ : large_;
    // Sorted by capacity; one that has to grow had better be the smallest.
    auto found = std::ranges::lower_bound(held, bytes, {}, &capacity);
    if (found == held.end()) found = held.begin();
    if (found == held.end() || (*found)->capacity() / kTooLarge > bytes + kSmall)
      return std::make_unique<Buffer>();
    std::unique_ptr<Buffer> buffer = std::move(*found);
    held.erase(found);
    return buffer;
  }

  void give_back(std::unique_ptr<Buffer> buffer) {
    Held dropped;  // freed without the lock
    Lock lock(mutex_);
    const bool small = buffer->capacity() <= kSmall;
    Held& held = small ? small_ : large_;
    const size_t capacity_of_new = buffer->capacity();
    held.insert(std::ranges::upper_bound(held, capacity_of_new, {}, &capacity), std::move(buffer));
    while (held.size() > (small ? kHeldSmall : kHeldLarge) ||
           (held.size() > 1 && bytes_in(held) > kHeldBytes)) {
      dropped.push_back(std::move(held.front()));
      held.erase(held.begin());
    }
  }

 private:
  static size_t capacity(const std::unique_ptr<Buffer>& buffer) { return buffer->capacity(); }
  static size_t bytes_in(const Held& held) {
    size_t bytes = 0;
    for (const auto& buffer : held) bytes += buffer->capacity();
    return bytes;
  }

  Mutex mutex_;
  Held small_ GUARDED_BY(mutex_), large_ GUARDED_BY(mutex_);
};

BufferPool::BufferPool() : shelf_(std::make_shared<Shelf>()) {}

std::shared_ptr<Buffer> BufferPool::take(size_t bytes) {
  std::unique_ptr<Buffer> buffer = shelf_->take(bytes);
  buffer->resize(std::max(bytes, kSmall));
  buffer->resize(bytes);
  return {buffer.release(), [home = std::weak_ptr(shelf_)](Buffer* returned) {
            std::unique_ptr<Buffer> owned(returned);
            if (const auto shelf = home.lock()) shelf->give_back(std::move(owned));
          }};
}

void seal(FrameHeader& header) { header.header_sum = sum_of(header); }

void check_header(const FrameHeader& header, uint64_t max_length) {
  check<DataError>(header.magic == FrameHeader::kMagic, "frame begins with ", std::hex,
                   std::showbase, header.magic, ", expected ", FrameHeader::kMagic);
  check<DataError>(header.version == FrameHeader::kVersion, "frame of version ", header.version,
                   ", expected ", FrameHeader::kVersion);
  check<DataError>(header.header_sum == sum_of(header), "frame header with sum ", std::hex,
                   std::showbase, header.header_sum, ", expected ", sum_of(header));
  check<DataError>(header.length <= max_length, "frame of ", header.length,
                   " bytes, expected at most ", max_length);
}

void check_payload(const FrameHeader& header, std::span<const std::byte> payload) {
  check<DataError>(payload.size() == header.length, "frame payload of ", payload.size(),
                   " bytes, expected ", header.length);
  if ((header.flags & FrameHeader::kSummed) == 0) return;
  const uint64_t sum = hash64(payload);
  check<DataError>(sum == header.payload_sum, "frame payload with sum ", std::hex, std::showbase,
                   sum, ", expected ", header.payload_sum);
}

OutFrame small_frame(FrameKind kind, uint64_t id, std::vector<std::byte> bytes) {
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return {.kind = kind, .id = id, .parts = {*owner}, .owners = {owner}};
}

OutFrame text_frame(FrameKind kind, uint64_t id, std::string text) {
  const auto owner = std::make_shared<const std::string>(std::move(text));
  return {.kind = kind, .id = id, .parts = {std::as_bytes(std::span(*owner))}, .owners = {owner}};
}

std::string text_of(const InFrame& frame) {
  const std::span<const std::byte> bytes = frame.payload->bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace argosy
