#include "argosy/net/frame.h"

#include <cstring>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/base/hash.h"
#include "argosy/base/test_support.h"

namespace argosy {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

FrameHeader header_of(std::string_view payload) {
  FrameHeader header{.kind = FrameKind::control,
                     .id = 5,
                     .length = payload.size(),
                     .payload_sum = hash64(payload),
                     .flags = FrameHeader::kSummed};
  seal(header);
  return header;
}

bool aligned(const Buffer& buffer) {
  return reinterpret_cast<uintptr_t>(buffer.bytes().data()) % Buffer::kAlignment == 0;
}

TEST(Buffer, IsAlignedAndKeepsItsMemory) {
  Buffer buffer;
  EXPECT_EQ(buffer.size(), 0U);
  buffer.resize(1000);
  EXPECT_TRUE(aligned(buffer));
  const std::byte* memory = buffer.bytes().data();
  buffer.resize(10);
  buffer.resize(1000);
  EXPECT_EQ(buffer.bytes().data(), memory);
  buffer.resize(100000);
  EXPECT_TRUE(aligned(buffer));
  EXPECT_EQ(buffer.size(), 100000U);
}

TEST(BufferPool, GivesTheSameMemoryAgain) {
  BufferPool pool;
  const auto first = pool.take(1 << 20);
  const std::byte* memory = first->bytes().data();
  const_cast<std::shared_ptr<Buffer>&>(first).reset();
  const auto second = pool.take(1 << 19);
  EXPECT_EQ(second->bytes().data(), memory);
  EXPECT_EQ(second->size(), size_t{1} << 19);
  EXPECT_TRUE(aligned(*second));
}

TEST(BufferPool, GivesTheSmallestThatFits) {
  BufferPool pool;
  auto large = pool.take(4 << 20), middle = pool.take(2 << 20), small = pool.take(1 << 20);
  const std::byte* memory = middle->bytes().data();
  large = middle = small = nullptr;
  EXPECT_EQ(pool.take(3 << 19)->bytes().data(), memory);
}

TEST(BufferPool, DoesNotSpendLargeBuffersOnSmallFrames) {
  BufferPool pool;
  pool.take(64 << 20);
  EXPECT_LT(pool.take(64)->capacity(), size_t{1} << 20);
  EXPECT_LT(pool.take(10000)->capacity(), size_t{1} << 20);
  EXPECT_GE(pool.take(32 << 20)->capacity(), size_t{64} << 20);
}

TEST(BufferPool, BuffersOutliveIt) {
  auto pool = std::make_unique<BufferPool>();
  const auto buffer = pool->take(5000);
  pool = nullptr;
  std::memset(buffer->bytes().data(), 1, buffer->size());
}

TEST(BufferPool, IsSharedByThreads) {
  BufferPool pool;
  std::vector<std::jthread> threads;
  for (size_t thread = 1; thread <= 4; ++thread)
    threads.emplace_back([&pool, thread] {
      for (size_t i = 0; i < 1000; ++i) {
        const auto buffer = pool.take(thread * i * 10);
        std::memset(buffer->bytes().data(), static_cast<int>(thread), buffer->size());
        for (const std::byte byte : buffer->bytes())
          if (byte != static_cast<std::byte>(thread)) return ADD_FAILURE() << "memory given twice";
      }
    });
}

TEST(FrameHeader, HasTheDocumentedBytes) {
  const FrameHeader header = header_of("hello");
  std::string text;
  for (const std::byte byte : std::as_bytes(std::span(&header, 1))) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[std::to_integer<int>(byte) >> 4];
    text += kDigits[std::to_integer<int>(byte) & 15];
  }
  EXPECT_EQ(text,
            "41524759"
            "0100"
            "0500"
            "0500000000000000"
            "0500000000000000"
            "fddc625c55e85595"
            "01000000"
            "f0f0ee09");
}

TEST(FrameHeader, EveryFlippedBitIsNoticed) {
  const FrameHeader good = header_of("hello");
  EXPECT_NO_THROW(check_header(good, 5));
  for (size_t bit = 0; bit < 8 * sizeof(good); ++bit) {
    FrameHeader bad = good;
    reinterpret_cast<unsigned char*>(&bad)[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    EXPECT_THROW(check_header(bad, 1 << 20), DataError) << bit;
  }
}

TEST(FrameHeader, SaysWhatIsWrong) {
  FrameHeader header = header_of("hello");
  EXPECT_EQ(message_of<DataError>([&] { check_header(header, 4); }),
            "frame of 5 bytes, expected at most 4");
  header.version = 2;
  EXPECT_EQ(message_of<DataError>([&] { check_header(header, 5); }),
            "frame of version 2, expected 1");
  header.magic = 0x20544547;
  EXPECT_EQ(message_of<DataError>([&] { check_header(header, 5); }),
            "frame begins with 0x20544547, expected 0x59475241");
}

TEST(FramePayload, IsComparedWithItsHeader) {
  FrameHeader header = header_of("hello");
  EXPECT_NO_THROW(check_payload(header, bytes_of("hello")));
  EXPECT_EQ(message_of<DataError>([&] { check_payload(header, bytes_of("hell")); }),
            "frame payload of 4 bytes, expected 5");
  EXPECT_EQ(message_of<DataError>([&] {
              check_payload(header, bytes_of("hallo"));
            }).rfind("frame payload with sum 0x", 0),
            0U);
  header.flags = 0;
  EXPECT_NO_THROW(check_payload(header, bytes_of("hallo")));
}

TEST(Frames, SmallOnesOwnTheirBytes) {
  const OutFrame frame = text_frame(FrameKind::error, 3, "what went wrong");
  ASSERT_EQ(frame.parts.size(), 1U);
  InFrame came{.kind = frame.kind, .id = frame.id, .payload = BufferPool().take(15)};
  std::memcpy(came.payload->bytes().data(), frame.parts[0].data(), frame.parts[0].size());
  EXPECT_EQ(text_of(came), "what went wrong");
  EXPECT_EQ(small_frame(FrameKind::ping, 1, std::vector<std::byte>(3)).parts[0].size(), 3U);
}

}  // namespace
}  // namespace argosy
