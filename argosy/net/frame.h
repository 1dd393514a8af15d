#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace argosy {

/// The memory of a payload, aligned for any vector; a BufferPool recycles it.
class Buffer {
 public:
  static constexpr size_t kAlignment = 64;

  /// Keeps the memory if it is large enough; the content is lost.
  void resize(size_t bytes);
  std::span<std::byte> bytes() { return {memory_.get(), size_}; }
  std::span<const std::byte> bytes() const { return {memory_.get(), size_}; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }

 private:
  std::unique_ptr<std::byte[], void (*)(std::byte*)> memory_{nullptr, [](std::byte*) {}};
  size_t size_ = 0, capacity_ = 0;
};

/// Buffers that return when their last owner releases them. Keeps a few, as large as the largest
/// frames were. Thread safety: full. Buffers may outlive the pool.
class BufferPool {
 public:
  BufferPool();
  std::shared_ptr<Buffer> take(size_t bytes);

 private:
  struct Shelf;
  std::shared_ptr<Shelf> shelf_;
};

/// The numbers are part of the wire format (docs/formats/frames.md).
enum class FrameKind : uint16_t {
  hello = 1,     // first on a link, by the side that connected
  welcome = 2,   // the answer to it
  exchange = 3,  // pushes and pulls
  reply = 4,     // the answer to an exchange
  control = 5,   // a verb: save, barrier, ...
  result = 6,    // the answer to it
  ping = 7,      // heartbeat
  pong = 8,      // its answer, with whom the server waits for
  error = 9,     // one line of text; the sender then closes the link
  durable = 10,  // exchanges up to the id are in the server's journal
  offers = 11,   // instead of a welcome: where a server can go on after all processes were lost
};

/// In front of every payload, little-endian.
struct FrameHeader {
  static constexpr uint32_t kMagic = 0x59475241;  // "ARGY"
  static constexpr uint16_t kVersion = 1;

  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  FrameKind kind = FrameKind::hello;
  uint64_t id = 0;      // ties an answer to its question
  uint64_t length = 0;  // of the payload
  uint64_t payload_sum = 0;
  uint32_t flags = 0;       // kSummed: payload_sum is hash64 of the payload
  uint32_t header_sum = 0;  // of all that is in front of it

  static constexpr uint32_t kSummed = 1;
};
static_assert(sizeof(FrameHeader) == 40);

/// Fills in header_sum.
void seal(FrameHeader& header);
/// Throws DataError that names the bad field: magic, version, sum, or a length above the limit.
void check_header(const FrameHeader& header, uint64_t max_length);
/// Throws DataError if the payload does not match the header.
void check_payload(const FrameHeader& header, std::span<const std::byte> payload);

/// A received frame.
struct InFrame {
  FrameKind kind = FrameKind::hello;
  uint64_t id = 0;
  std::shared_ptr<Buffer> payload;  // never null
};

/// A frame to send. Its parts are written one after another without a copy, and must not change
/// until the owners have been released.
struct OutFrame {
  FrameKind kind = FrameKind::hello;
  uint64_t id = 0;
  std::vector<std::span<const std::byte>> parts;
  std::vector<std::shared_ptr<const void>> owners;
};

/// A frame that owns its bytes.
OutFrame small_frame(FrameKind kind, uint64_t id, std::vector<std::byte> bytes);
OutFrame text_frame(FrameKind kind, uint64_t id, std::string text);
std::string text_of(const InFrame& frame);

}  // namespace argosy
