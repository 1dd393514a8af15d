#include "argosy/net/sockets.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "argosy/base/error.h"
#include "argosy/net/port_owner.h"

namespace argosy {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// Null if the name does not resolve.
Addresses resolve(const std::string& host, uint16_t port, int& error, int flags = 0) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  addrinfo* found = nullptr;
  error = ::getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(),
                        &wanted, &found);
  return {error == 0 ? found : nullptr, &::freeaddrinfo};
}

Addresses resolve_to_bind(const Endpoint& at) {
  int error = 0;
  Addresses found = resolve(at.host, at.port, error);
  check<IoError>(found != nullptr, "cannot listen on ", at.text(), ": ",
                 error == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(error));
  return found;
}

Descriptor bind_address(const sockaddr* address, socklen_t size, const Endpoint& at) {
  const auto require = [&](bool ok) {
    check<IoError>(ok, "cannot listen on ", at.text(), ": ", std::strerror(errno));
  };
  Descriptor socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  require(socket.get() >= 0);
  // Connections of an earlier job that wind down do not keep the address; one that listens does.
  const int yes = 1;
  require(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0);
  if (::bind(socket.get(), address, size) != 0 && errno == EADDRINUSE) {
    const auto owner = find_port_owner(at);
    fail<IoError>("cannot listen on ", at.text(), ": it is taken",
                  owner ? " by " + owner->text() : "");
  }
  require(port_of(socket) != 0);
  return socket;
}

std::string text_of(const sockaddr_storage& address, socklen_t size, bool with_port) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host.data(), host.size(),
                    port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "an unknown address";
  return with_port ? Endpoint{host.data(), static_cast<uint16_t>(std::stoi(port.data()))}.text()
                   : host.data();
}

bool becomes_writable(const Descriptor& socket, std::chrono::milliseconds time) {
  pollfd ready{socket.get(), POLLOUT, 0};
  if (::poll(&ready, 1, static_cast<int>(time.count())) != 1) return false;
  int error = 0;
  socklen_t size = sizeof(error);
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

}  // namespace

Descriptor bind_to(const Endpoint& at) {
  const Addresses addresses = resolve_to_bind(at);
  return bind_address(addresses->ai_addr, addresses->ai_addrlen, at);
}

Descriptor bind_everywhere(const Endpoint& like, uint16_t port) {
  const Addresses addresses = resolve_to_bind(like);
  const Endpoint at{addresses->ai_family == AF_INET6 ? "::" : "0.0.0.0", port};
  return bind_to(at);
}

void start_listening(const Descriptor& socket, const Endpoint& at) {
  check<IoError>(::listen(socket.get(), SOMAXCONN) == 0, "cannot listen on ", at.text(), ": ",
                 std::strerror(errno));
}

uint16_t port_of(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  check<IoError>(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0,
                 "the port of a socket is not known: ", std::strerror(errno));
  // At the same place for both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

std::string own_address(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return text_of(address, size, false);
}

std::string peer_address(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  ::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return text_of(address, size, true);
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address == "localhost";
}

std::optional<Descriptor> accept_one(const Descriptor& listening) {
  pollfd ready{listening.get(), POLLIN, 0};
  if (::poll(&ready, 1, 0) != 1) return std::nullopt;
  Descriptor accepted(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (accepted.get() < 0) return std::nullopt;
  return accepted;
}

std::optional<Descriptor> connect_within(const Endpoint& to, std::chrono::milliseconds time) {
  int error = 0;
  const Addresses addresses = resolve(to.host, to.port, error);
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    Descriptor socket(::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket.get() < 0) continue;
    const int yes = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    if (::connect(socket.get(), at->ai_addr, at->ai_addrlen) != 0 && errno != EINPROGRESS) continue;
    if (becomes_writable(socket, time)) return socket;
  }
  return std::nullopt;
}

}  // namespace argosy
