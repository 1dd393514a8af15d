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

/// A link, listening socket or connection attempt that a loop serves until it is done or the
/// transport ends.
class TcpMember {
 public:
  virtual ~TcpMember() = default;
  /// Releases socket and events silently; called on the loop's thread.
  virtual void shut() = 0;
};

/// The state of one I/O thread. Links share it, as they may outlive their transport.
struct TcpLoop : std::enable_shared_from_this<TcpLoop> {
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  BufferPool pool;

  // Used by the loop's thread only.
  std::unordered_set<std::shared_ptr<TcpMember>> members;
  bool ended = false;

  void add(std::shared_ptr<TcpMember> member) { members.insert(std::move(member)); }
  void remove(const std::shared_ptr<TcpMember>& member) { members.erase(member); }
  /// Shuts all members and stops.
  void end();
};

/// A link over a connected socket. The thread that calls send() writes if nobody else is writing;
/// what the socket does not take, the loop's thread writes later. Thread safety: full, but start()
/// and shut() belong to the loop's thread. Invariants:
///
///   1. One writer. Only the thread that has set writer_ to busy uses writing_, first_ and
///      first_done_ and writes to the socket. It sets it back to idle when the outbox is empty or a
///      write has failed, or to waiting, which leaves the rest to the loop's thread. Frames leave
///      in outbox order.
///   2. The frames of one thread go out in the order of its send() calls: while any frame is posted
///      to the loop (posted_ > 0) all later ones are posted too.
///   3. closing_ changes once, to true. From then on no frame enters the outbox. Whoever changes it
///      makes finish() run on the loop's thread, which calls on_close exactly once; only shut(),
///      at the end of the transport, drops the events silently.
///   4. Events are called on the loop's thread only, never with mutex_ held.
///   5. An orderly close writes the outbox, shuts down our half and waits for the peer's: closing a
///      socket with unread input would reset the connection and lose our last frames. No progress
///      for kLinger ends the wait.
///   6. The socket is closed once, after hang_up(): there, or by a writer that is still busy.
///   7. A header alone makes us allocate no more than kUnproven or the largest payload delivered so
///      far, whichever is larger (or a buffer of the pool that already has the size); beyond that
///      memory doubles as bytes arrive.
class TcpLink final : public Link, public TcpMember, public std::enable_shared_from_this<TcpLink> {
 public:
  TcpLink(TcpLoop& loop, asio::ip::tcp::socket socket, std::string peer,
          const LinkOptions& options);

  /// Starts reading; called once. Null events: closes.
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
  enum class Writer { idle, busy, waiting };  // waiting: for the loop's thread and the socket
  enum class Progress { more, full, broken };
  enum class Rest { flush, drop };  // of the frames not written yet

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
  std::atomic<bool> closing_ = false;        // set under the mutex; no sends from then on
  std::atomic<uint64_t> queued_ = 0;         // bytes
  std::atomic<uint64_t> posted_ = 0;         // frames that the loop's thread is to send
  std::vector<Outgoing> writing_;            // the writer's
  size_t first_ = 0, first_done_ = 0;        // next frame of writing_, its bytes written

  // Used by the loop's thread only, and the socket by a busy writer after hang_up().
  asio::ip::tcp::socket socket_;
  std::shared_ptr<LinkEvents> events_;
  bool waiting_to_read_ = false;
  std::vector<std::byte> ahead_;
  size_t ahead_end_ = 0;
  FrameHeader header_;
  std::shared_ptr<Buffer> payload_;  // null: a header is next
  size_t filled_ = 0;                // bytes of the payload received
  size_t largest_ = 0;               // payload delivered so far
  asio::steady_timer linger_;
  bool finished_ = false, half_closed_ = false, gone_ = false;
  uint64_t queued_at_linger_ = 0;
};

}  // namespace argosy
