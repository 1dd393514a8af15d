#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "argosy/base/descriptor.h"

namespace argosy::e2e {

/// A socket that listens on a free port of this machine.
class Loopback {
 public:
  Loopback() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    constexpr int kWaiting = 16;
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(at);
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    if (::bind(fd(), address, size) != 0 || ::listen(fd(), kWaiting) != 0 ||
        ::getsockname(fd(), address, &size) != 0)
      throw std::system_error(errno, std::generic_category(), "a socket that listens");
    port_ = std::to_string(ntohs(at.sin_port));
  }

  int fd() const { return socket_.get(); }
  const std::string& port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + port_; }
  void close() { socket_.reset(); }

 private:
  Descriptor socket_;
  std::string port_;
};

}  // namespace argosy::e2e
