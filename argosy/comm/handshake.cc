#include "argosy/comm/handshake.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "argosy/net/sockets.h"

namespace argosy::comm {

bool is_complete(const RankListener::Connection& connection) {
  return connection.received == sizeof(Hello);
}

bool read_hello(RankListener::Connection& connection) {
  while (!is_complete(connection)) {
    auto* const at = reinterpret_cast<std::byte*>(&connection.hello) + connection.received;
    const ssize_t n =
        ::recv(connection.socket.get(), at, sizeof(Hello) - connection.received, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) return false;
    connection.received += static_cast<size_t>(n);
  }
  connection.hello.job[sizeof(Hello::job) - 1] =
      connection.hello.refusal[sizeof(Hello::refusal) - 1] = 0;
  return connection.hello.magic == Hello::kMagic && connection.hello.version == Hello::kVersion;
}

void RankListener::accept_all() {
  while (auto socket = accept_one(listening_))
    connections_.push_back({.socket = std::move(*socket)});
}

void RankListener::read_hellos() {
  std::erase_if(connections_, [](Connection& connection) {
    return !is_complete(connection) && !read_hello(connection);
  });
}

std::optional<RankListener::Connection> RankListener::take(
    const std::function<bool(const Hello&)>& wanted) {
  const Lock lock(mutex_);
  accept_all();
  read_hellos();
  const auto found = std::ranges::find_if(connections_, [&](const Connection& connection) {
    return is_complete(connection) && wanted(connection.hello);
  });
  if (found == connections_.end()) return std::nullopt;
  Connection connection = std::move(*found);
  connections_.erase(found);
  return connection;
}

}  // namespace argosy::comm
