#include "argosy/net/tcp_link.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/hash.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;

constexpr size_t kPieces = 256;                 // of one gathered write
constexpr int kWrites = 8;                      // in a row, then others have their turn
constexpr int kReads = 16;                      // likewise
constexpr size_t kUnproven = size_t{16} << 20;  // bytes allocated on a header's word alone
constexpr auto kLinger = 2s;                    // without progress, then a closed link is cut

/// The pieces of one system call.
class Gather {
 public:
  bool full() const { return count_ == kPieces; }
  void add(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    pieces_[count_++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
    size_ += bytes.size();
  }
  size_t size() const { return size_; }
  msghdr message() {
    msghdr message{};
    message.msg_iov = pieces_.data();
    message.msg_iovlen = count_;
    return message;
  }

 private:
  std::array<iovec, kPieces> pieces_;
  size_t count_ = 0, size_ = 0;
};

uint64_t sum_of(const std::vector<std::span<const std::byte>>& parts) {
  if (parts.size() == 1) return hash64(parts.front());
  RunningHash sum;
  for (const auto& part : parts) sum.add(part);
  return sum.digest();
}

}  // namespace

void TcpLoop::end() {
  ended = true;
  const auto all = std::exchange(members, {});
  for (const auto& member : all) member->shut();
  // The members' pending operations fail first: their handlers are queued ahead of this.
  asio::post(io, [this] { io.stop(); });
}

TcpLink::TcpLink(TcpLoop& loop, asio::ip::tcp::socket socket, std::string peer,
                 const LinkOptions& options)
    : loop_(loop.shared_from_this()),
      peer_(std::move(peer)),
      options_(options),
      fd_(socket.native_handle()),
      socket_(std::move(socket)),
      ahead_(kAhead),
      linger_(loop.io) {}

void TcpLink::start(std::shared_ptr<LinkEvents> events) {
  loop_->add(shared_from_this());
  events_ = std::move(events);
  if (events_ == nullptr) return end("nobody listens to it", Rest::flush);
  wait_readable();
}

// Sending.

TcpLink::Outgoing TcpLink::encode(OutFrame frame) const {
  FrameHeader header{.kind = frame.kind, .id = frame.id};
  for (const auto& part : frame.parts) header.length += part.size();
  if (options_.sum_payloads) {
    header.flags = FrameHeader::kSummed;
    header.payload_sum = sum_of(frame.parts);
  }
  seal(header);
  return {header, std::move(frame)};
}

void TcpLink::send(OutFrame frame) {
  uint64_t size = 0;
  for (const auto& part : frame.parts) size += part.size();
  // Behind one that was left to the loop's thread comes no other.
  if (size <= options_.inline_limit && posted_ == 0) return send_now(std::move(frame));
  ++posted_;
  asio::post(loop_->io, [self = shared_from_this(), frame = std::move(frame)]() mutable {
    self->send_now(std::move(frame));
    --self->posted_;
  });
}

void TcpLink::send_now(OutFrame frame) {
  if (closing_) return;
  Outgoing outgoing = encode(std::move(frame));
  const uint64_t length = outgoing.header.length;
  if (length > options_.max_frame)
    return close("frame of " + std::to_string(length) + " bytes to send, expected at most " +
                 std::to_string(options_.max_frame));
  {
    Lock lock(mutex_);
    if (closing_ || broken_) return;
    queued_ += sizeof(FrameHeader) + length;
    outbox_.push_back(std::move(outgoing));
    if (writer_ == Writer::waiting) close_if_slow();
    if (writer_ != Writer::idle) return;
    writer_ = Writer::busy;
  }
  flush();
}

void TcpLink::close_if_slow() {
  if (queued_ <= options_.max_queued || closing_) return;
  closing_ = true;
  const std::string reason = "slow reader: " + std::to_string(queued_) +
                             " bytes wait to be sent to " + peer_ + ", expected at most " +
                             std::to_string(options_.max_queued);
  asio::post(loop_->io, [self = shared_from_this(), reason] { self->finish(reason, Rest::drop); });
}

/// Writes until nothing is left or the socket is full. The caller has made itself the writer.
void TcpLink::flush() {
  for (int writes = 0; writes < kWrites; ++writes) {
    if (first_ == writing_.size() && !next_batch()) return;
    const Progress progress = write_once();
    if (progress == Progress::broken) return write_failed(errno);
    if (progress == Progress::full) return pass_to_loop(Progress::full);
  }
  pass_to_loop(Progress::more);
}

/// Takes the outbox as the next batch. False: it is empty, and there is no writer any more.
bool TcpLink::next_batch() {
  writing_.clear();
  first_ = 0;
  Lock lock(mutex_);
  if (hung_up_) return close_socket(), false;
  if (!outbox_.empty()) return writing_.swap(outbox_), true;
  writer_ = Writer::idle;
  if (closing_) asio::post(loop_->io, [self = shared_from_this()] { self->on_flushed(); });
  return false;
}

TcpLink::Progress TcpLink::write_once() {
  Gather gather;
  size_t skip = first_done_;
  const auto add = [&](std::span<const std::byte> bytes) {
    const size_t skipped = std::min(skip, bytes.size());
    skip -= skipped;
    gather.add(bytes.subspan(skipped));
    return !gather.full();
  };
  for (size_t i = first_; i < writing_.size() && !gather.full(); ++i) {
    if (!add(std::as_bytes(std::span(&writing_[i].header, 1)))) break;
    for (const auto& part : writing_[i].frame.parts)
      if (!add(part)) break;
  }
  const msghdr message = gather.message();
  const ssize_t n = ::sendmsg(fd_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0) {
    if (errno == EINTR) return Progress::more;
    return errno == EAGAIN || errno == EWOULDBLOCK ? Progress::full : Progress::broken;
  }
  const auto written = static_cast<size_t>(n);
  retire(written);
  return written == gather.size() ? Progress::more : Progress::full;
}

/// Lets go of the frames that these bytes complete.
void TcpLink::retire(size_t bytes) {
  queued_ -= bytes;
  first_done_ += bytes;
  while (first_ < writing_.size()) {
    const size_t size = sizeof(FrameHeader) + writing_[first_].header.length;
    if (first_done_ < size) return;
    first_done_ -= size;
    writing_[first_++].frame = {};
  }
}

void TcpLink::pass_to_loop(Progress progress) {
  std::vector<Outgoing> unsent;  // freed without the lock
  Lock lock(mutex_);
  if (hung_up_) {
    unsent.swap(writing_);
    return close_socket();
  }
  writer_ = Writer::waiting;
  if (progress == Progress::full) close_if_slow();
  asio::post(loop_->io, [self = shared_from_this()] { self->wait_writable(); });
}

void TcpLink::wait_writable() {
  if (gone_) return;
  socket_.async_wait(asio::ip::tcp::socket::wait_write,
                     [self = shared_from_this()](const asio::error_code& error) {
                       if (error || self->gone_) return;
                       {
                         Lock lock(self->mutex_);
                         self->writer_ = Writer::busy;
                       }
                       self->flush();
                     });
}

/// The peer may have sent a reason before it went, so read the input first.
void TcpLink::write_failed(int error) {
  std::vector<Outgoing> unsent;
  writing_.clear();
  first_ = 0;
  Lock lock(mutex_);
  if (hung_up_) return close_socket();
  unsent.swap(outbox_);
  writer_ = Writer::idle;
  broken_ = true;
  asio::post(loop_->io, [self = shared_from_this(), error] {
    if (self->finished_) return self->hang_up();
    while (!self->closing_ && !self->read_all()) continue;
    self->end("lost the connection to " + self->peer_ + ": " + std::strerror(error), Rest::drop);
  });
}

// Receiving, on the loop's thread.

void TcpLink::wait_readable() {
  if (gone_ || waiting_to_read_) return;
  waiting_to_read_ = true;
  socket_.async_wait(asio::ip::tcp::socket::wait_read,
                     [self = shared_from_this()](const asio::error_code& error) {
                       self->waiting_to_read_ = false;
                       if (!error && !self->gone_) self->on_readable();
                     });
}

void TcpLink::on_readable() {
  if (finished_) return discard_input();
  if (read_all()) return wait_readable();
  if (closing_) return;  // finish() is on its way
  waiting_to_read_ = true;
  asio::post(loop_->io, [self = shared_from_this()] {
    self->waiting_to_read_ = false;
    if (!self->gone_) self->on_readable();
  });
}

/// True if the socket is empty, false if it was enough for now or the link has ended.
bool TcpLink::read_all() {
  try {
    for (int reads = 0; reads < kReads && !closing_; ++reads)
      if (!receive()) return true;
  } catch (const std::exception& e) {
    send(text_frame(FrameKind::error, 0, e.what()));
    close(e.what());
  }
  return false;
}

/// One read and the frames it completes. False if the socket has been emptied.
bool TcpLink::receive() {
  const std::span<std::byte> missing =
      payload_ == nullptr ? std::span<std::byte>{} : payload_->bytes().subspan(filled_);
  Gather gather;
  gather.add(missing);
  gather.add(std::span(ahead_).subspan(ahead_end_));
  msghdr message = gather.message();
  const ssize_t n = ::recvmsg(fd_, &message, MSG_DONTWAIT);
  if (n < 0 && errno == EINTR) return true;
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (n < 0) {
    end("lost the connection to " + peer_ + ": " + std::strerror(errno), Rest::drop);
    return true;
  }
  if (n == 0) {
    const bool inside = payload_ != nullptr || ahead_end_ > 0;
    end(peer_ + " closed the connection" + (inside ? " inside a frame" : ""), Rest::drop);
    return true;
  }
  const auto bytes = static_cast<size_t>(n), direct = std::min(bytes, missing.size());
  filled_ += direct;
  ahead_end_ += bytes - direct;
  take_frames();
  return bytes == gather.size();
}

/// Parses the bytes read so far.
void TcpLink::take_frames() {
  size_t begin = 0;
  while (!closing_) {
    if (payload_ == nullptr) {
      if (ahead_end_ - begin < sizeof(FrameHeader)) break;
      std::memcpy(&header_, ahead_.data() + begin, sizeof(FrameHeader));
      begin += sizeof(FrameHeader);
      begin_payload();
    }
    const size_t copied = std::min(ahead_end_ - begin, payload_->size() - filled_);
    if (copied > 0) std::memcpy(payload_->bytes().data() + filled_, ahead_.data() + begin, copied);
    begin += copied;
    filled_ += copied;
    if (filled_ < payload_->size()) break;
    if (filled_ < header_.length)
      grow_payload();
    else
      deliver();
  }
  std::memmove(ahead_.data(), ahead_.data() + begin, ahead_end_ - begin);
  ahead_end_ -= begin;
  if (payload_ != nullptr && !closing_) events_->on_part();
}

void TcpLink::begin_payload() {
  check_header(header_, options_.max_frame);
  payload_ = loop_->pool.take(std::min(header_.length, std::max(largest_, kUnproven)));
  if (payload_->capacity() >= header_.length) payload_->resize(header_.length);
  filled_ = 0;
}

void TcpLink::grow_payload() {
  auto larger = loop_->pool.take(std::min(header_.length, 2 * payload_->size()));
  std::memcpy(larger->bytes().data(), payload_->bytes().data(), filled_);
  payload_ = std::move(larger);
}

void TcpLink::deliver() {
  check_payload(header_, payload_->bytes());
  largest_ = std::max(largest_, header_.length);
  events_->on_frame({.kind = header_.kind, .id = header_.id, .payload = std::move(payload_)});
  payload_ = nullptr;
}

// Closing.

void TcpLink::close(std::string reason) {
  Lock lock(mutex_);
  if (closing_) return;
  closing_ = true;
  asio::post(loop_->io, [self = shared_from_this(), reason = std::move(reason)] {
    self->finish(reason, Rest::flush);
  });
}

void TcpLink::end(const std::string& reason, Rest rest) {
  {
    Lock lock(mutex_);
    if (closing_) return;  // for another reason, which finish() is about to tell
    closing_ = true;
  }
  finish(reason, rest);
}

/// Calls on_close, then waits until the outbox is flushed and the peer has closed too: closing with
/// unread input would reset the connection, and the peer would lose our last frames.
void TcpLink::finish(const std::string& reason, Rest rest) {
  finished_ = true;
  if (const auto events = std::move(events_)) events->on_close(reason);
  if (gone_) return;
  if (rest == Rest::drop) return hang_up();
  arm_linger();
  bool flushed = false;
  {
    Lock lock(mutex_);
    flushed = writer_ == Writer::idle;
  }
  if (flushed) on_flushed();
  payload_ = nullptr;
  discard_input();
}

void TcpLink::on_flushed() {
  if (!finished_ || half_closed_ || gone_) return;
  half_closed_ = true;
  ::shutdown(fd_, SHUT_WR);
}

void TcpLink::discard_input() {
  for (int reads = 0; reads < kReads; ++reads) {
    const ssize_t n = ::recv(fd_, ahead_.data(), ahead_.size(), MSG_DONTWAIT);
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return hang_up();
    break;
  }
  wait_readable();
}

void TcpLink::arm_linger() {
  queued_at_linger_ = queued_;
  linger_.expires_after(kLinger);
  linger_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (error || self->gone_) return;
    const bool progress = !self->half_closed_ && self->queued_ < self->queued_at_linger_;
    progress ? self->arm_linger() : self->hang_up();
  });
}

void TcpLink::shut() {
  events_ = nullptr;
  finished_ = true;
  hang_up();
}

void TcpLink::hang_up() {
  if (gone_) return;
  gone_ = true;
  asio::error_code ignored;
  linger_.cancel();
  socket_.cancel(ignored);
  ::shutdown(fd_, SHUT_RDWR);
  loop_->remove(shared_from_this());
  payload_ = nullptr;

  std::vector<Outgoing> unsent, half_sent;  // freed without the lock
  Lock lock(mutex_);
  closing_ = true;
  hung_up_ = true;
  unsent.swap(outbox_);
  if (writer_ == Writer::busy) return;  // another thread: it closes when it is done
  half_sent.swap(writing_);
  close_socket();
}

void TcpLink::close_socket() {
  asio::error_code ignored;
  socket_.close(ignored);
}

}  // namespace argosy
