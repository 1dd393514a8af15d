#pragma once

// A standard header has to come before Asio's: by it Asio chooses how to allocate, and all sources
// must choose alike.
#include <array>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "argosy/base/mutex.h"
#include "argosy/net/transport.h"

namespace argosy {

/// What a loop serves until it is done or the transport ends: a link, a listening socket, a
/// connect.
class TcpMember {
 public:
  virtual ~TcpMember() = default;
  /// Lets go of socket and events without a word; on the loop's thread.
  virtual void shut() = 0;
};

/// What one I/O thread runs. Links share it, as they may outlive their transport.
struct TcpLoop : std::enable_shared_from_this<TcpLoop> {
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  BufferPool pool;

  // Touched by the loop's thread only.
  std::unordered_set<std::shared_ptr<TcpMember>> members;
  bool ended = false;

  void add(std::shared_ptr<TcpMember> member) { members.insert(std::move(member)); }
  void remove(const std::shared_ptr<TcpMember>& member) { members.erase(member); }
  /// Shuts all members and stops.
  void end();
};

/// A link over a connected socket. Whoever finds nobody writing writes; what the socket does not
/// take is written by the loop's thread when it does. Thread safety: full, but start() and shut()
/// belong to the loop's thread.
class TcpLink final : public Link, public TcpMember, public std::enable_shared_from_this<TcpLink> {
 public:
  TcpLink(TcpLoop& loop, asio::ip::tcp::socket socket, std::string peer,
          const LinkOptions& options);

  /// Begins to read; once. No events: closes.
  void start(std::shared_ptr<LinkEvents> events);

  void send(OutFrame frame) override;
  void close(std::string reason) override;
  const std::string& peer() const override { return peer_; }
  void shut() override;

 private:
  static constexpr size_t kAhead = 16 << 10;  // bytes read at once where headers are expected

  /// A frame on its way out.
  struct Outgoing {
    FrameHeader header;
    OutFrame frame;
  };
  enum class Writer { idle, busy, waiting };  // waiting: the loop's thread, for the socket
  enum class Progress { more, full, broken };
  enum class Rest { flush, drop };  // what becomes of frames that have not gone out yet

  void send_now(OutFrame frame);
  Outgoing encode(OutFrame frame) const;
  void close_if_slow() REQUIRES(mutex_);
  void flush();
  bool next_batch();
  Progress write_once();
  void retire(size_t bytes);
  void pass_to_loop(Progress progress);
  void wait_writable();
  void write_failed(int error);

  void wait_readable();
  void on_readable();
  bool read_all();
  bool receive();
  void take_frames();
  void begin_payload();
  void grow_payload();
  void deliver();

  void end(const std::string& reason, Rest rest);
  void finish(const std::string& reason, Rest rest);
  void on_flushed();
  void discard_input();
  void arm_linger();
  void hang_up();
  void close_socket();

  const std::shared_ptr<TcpLoop> loop_;
  const std::string peer_;
  const LinkOptions options_;
  const int fd_;

  // Sending.
  Mutex mutex_;
  std::vector<Outgoing> outbox_ GUARDED_BY(mutex_);
  Writer writer_ GUARDED_BY(mutex_) = Writer::idle;
  bool broken_ GUARDED_BY(mutex_) = false;   // a write has failed
  bool hung_up_ GUARDED_BY(mutex_) = false;  // a busy writer closes the socket when it is done
  std::atomic<bool> closing_ = false;        // set under the mutex; nothing is sent from then on
  std::atomic<uint64_t> queued_ = 0;         // bytes
  std::atomic<uint64_t> posted_ = 0;         // frames that the loop's thread is to send
  std::vector<Outgoing> writing_;            // of the one who writes
  size_t first_ = 0, first_done_ = 0;        // frame of writing_ to go on with, its bytes written

  // The rest is of the loop's thread; the socket also of a busy writer after hang_up().
  asio::ip::tcp::socket socket_;
  std::shared_ptr<LinkEvents> events_;
  bool waiting_to_read_ = false;
  std::vector<std::byte> ahead_;
  size_t ahead_end_ = 0;
  FrameHeader header_;
  std::shared_ptr<Buffer> payload_;  // null: a header is next
  size_t filled_ = 0;                // bytes of the payload that are here
  size_t largest_ = 0;               // payload so far
  asio::steady_timer linger_;
  bool finished_ = false, half_closed_ = false, gone_ = false;
  uint64_t queued_at_linger_ = 0;
};

}  // namespace argosy
