#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "argosy/base/hash.h"
#include "argosy/net/frame.h"
#include "argosy/net/test_links.h"

/// For tests that speak to a transport without one.
namespace argosy {

/// A plain blocking TCP socket on loopback; every wait has a deadline.
class RawSocket {
 public:
  RawSocket() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    EXPECT_GE(fd_, 0);
    const timeval limit{.tv_sec = std::chrono::seconds(kTestDeadline).count(), .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  }
  RawSocket(RawSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~RawSocket() {
    if (fd_ >= 0) ::close(fd_);
  }

  /// Bound to a port, but not listening.
  static RawSocket bound() {
    RawSocket socket;
    const sockaddr_in at = loopback(0);
    EXPECT_EQ(::bind(socket.fd_, reinterpret_cast<const sockaddr*>(&at), sizeof(at)), 0);
    return socket;
  }
  static RawSocket connected(uint16_t port) {
    RawSocket socket;
    const sockaddr_in at = loopback(port);
    EXPECT_EQ(::connect(socket.fd_, reinterpret_cast<const sockaddr*>(&at), sizeof(at)), 0)
        << std::strerror(errno);
    return socket;
  }

  int fd() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  uint16_t port() const {
    sockaddr_in at{};
    socklen_t size = sizeof(at);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    return ntohs(at.sin_port);
  }

  /// Stops without a word when the peer has gone.
  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  /// Fewer if the peer closes before.
  std::string receive(size_t bytes) const {
    std::string text(bytes, '\0');
    size_t done = 0;
    while (done < bytes) {
      const ssize_t n = ::recv(fd_, text.data() + done, bytes - done, 0);
      EXPECT_FALSE(n < 0 && errno == EAGAIN) << "the peer neither sends nor closes";
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
    text.resize(done);
    return text;
  }
  struct Frame {
    FrameHeader header;
    std::string payload;
  };
  /// Absent once the peer has closed.
  std::optional<Frame> receive_frame() const {
    Frame frame;
    const std::string bytes = receive(sizeof(FrameHeader));
    if (bytes.size() < sizeof(FrameHeader)) return std::nullopt;
    std::memcpy(&frame.header, bytes.data(), sizeof(FrameHeader));
    check_header(frame.header, uint64_t{1} << 30);
    frame.payload = receive(frame.header.length);
    return frame;
  }
  /// Closes so that the peer gets a reset.
  void abort() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    ::close(release());
  }

 private:
  static sockaddr_in loopback(uint16_t port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
  }

  int fd_;
};

inline FrameHeader header_for(std::string_view payload) {
  return {.kind = FrameKind::exchange,
          .id = 9,
          .length = payload.size(),
          .payload_sum = hash64(payload),
          .flags = FrameHeader::kSummed};
}

inline std::string bytes_of(const FrameHeader& header) {
  return {reinterpret_cast<const char*>(&header), sizeof(header)};
}

inline std::string encoded(std::string_view payload) {
  FrameHeader header = header_for(payload);
  seal(header);
  return bytes_of(header) + std::string(payload);
}

}  // namespace argosy
