#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argosy/base/hash.h"
#include "argosy/base/mutex.h"
#include "argosy/base/rng.h"
#include "argosy/net/transport.h"

/// Shared by transport tests: links that record their events, and waits with deadlines.
namespace argosy {

using namespace std::chrono_literals;

constexpr auto kTestDeadline = 60s;  // only a failing test waits that long

/// One lock and one signal for everything a test looks at.
class Log {
 public:
  void change(const std::function<void()>& f) {
    const Lock lock(mutex_);
    f();
    changed_.notify_all();
  }
  /// `done` is called under the lock.
  bool wait(const std::function<bool()>& done) {
    const Lock lock(mutex_);
    return changed_.wait_for(mutex_, kTestDeadline, done);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
};

/// One side of a link: logs its events, and answers if it is told how.
class Side final : public LinkEvents {
 public:
  using Answer = std::function<void(Link&, InFrame&)>;
  Side(Log& log, std::shared_ptr<Link> to, Answer answer = nullptr)
      : link(std::move(to)), log_(log), answer_(std::move(answer)) {}
  ~Side() override {
    log_.change([] {});
  }

  void on_frame(InFrame frame) override {
    EXPECT_FALSE(closed) << "a frame after on_close";
    EXPECT_EQ(reinterpret_cast<uintptr_t>(frame.payload->bytes().data()) % Buffer::kAlignment, 0U);
    if (answer_) answer_(*link, frame);
    log_.change([&] { frames.push_back(std::move(frame)); });
  }
  void on_close(const std::string& why) override {
    log_.change([&] {
      EXPECT_FALSE(closed) << "on_close twice: " << why;
      closed = true;
      reason = why;
    });
  }

  const std::shared_ptr<Link> link;
  std::vector<InFrame> frames;
  bool closed = false;
  std::string reason;

 private:
  Log& log_;
  const Answer answer_;
};

inline std::shared_ptr<const std::vector<std::byte>> random_bytes(size_t size, uint64_t seed) {
  const RandomStream random(seed);
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; i += 8) {
    const uint64_t bits = random.bits(i);
    std::copy_n(reinterpret_cast<const std::byte*>(&bits), std::min<size_t>(8, size - i),
                bytes.begin() + static_cast<ptrdiff_t>(i));
  }
  return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

/// A text that counts in the log when its last owner lets go.
inline std::shared_ptr<const std::string> watched_text(size_t size, Log& log, bool& gone) {
  auto text = std::make_unique<const std::string>(size, 'x');
  return {text.release(), [&log, &gone](const std::string* last) {
            const std::unique_ptr<const std::string> owned(last);
            log.change([&gone] { gone = true; });
          }};
}

/// Random bytes in that many parts, some of them empty.
inline OutFrame frame_in_parts(uint64_t id, size_t size, size_t parts) {
  const auto bytes = random_bytes(size, id);
  OutFrame frame{.kind = FrameKind::exchange, .id = id, .parts = {}, .owners = {bytes}};
  for (size_t part = 0; part < parts; ++part) {
    const size_t begin = size * part / parts, end = size * (part + 1) / parts;
    frame.parts.push_back(std::span(*bytes).subspan(begin, end - begin));
    if (part % 3 == 0) frame.parts.emplace_back();
  }
  return frame;
}

inline bool is_frame(const InFrame& frame, uint64_t id, size_t size) {
  return frame.kind == FrameKind::exchange && frame.id == id &&
         std::ranges::equal(frame.payload->bytes(), *random_bytes(size, id));
}

inline void echo(Link& link, InFrame& frame) {
  link.send({.kind = FrameKind::reply,
             .id = frame.id,
             .parts = {frame.payload->bytes()},
             .owners = {frame.payload}});
}

}  // namespace argosy
