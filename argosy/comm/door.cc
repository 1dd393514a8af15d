#include "argosy/comm/door.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "argosy/net/sockets.h"

namespace argosy {

bool is_complete(const Door::Guest& guest) { return guest.received == sizeof(Hello); }

bool read_hello(Door::Guest& guest) {
  while (!is_complete(guest)) {
    auto* const at = reinterpret_cast<std::byte*>(&guest.hello) + guest.received;
    const ssize_t n = ::recv(guest.socket.get(), at, sizeof(Hello) - guest.received, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) return false;
    guest.received += static_cast<size_t>(n);
  }
  guest.hello.job[sizeof(Hello::job) - 1] = guest.hello.refusal[sizeof(Hello::refusal) - 1] = 0;
  return guest.hello.magic == Hello::kMagic && guest.hello.version == Hello::kVersion;
}

void Door::accept_all() {
  while (auto socket = accept_one(listening_)) guests_.push_back({.socket = std::move(*socket)});
}

void Door::read_hellos() {
  std::erase_if(guests_, [](Guest& guest) { return !is_complete(guest) && !read_hello(guest); });
}

std::optional<Door::Guest> Door::take(const std::function<bool(const Hello&)>& wanted) {
  const Lock lock(mutex_);
  accept_all();
  read_hellos();
  const auto found = std::ranges::find_if(
      guests_, [&](const Guest& guest) { return is_complete(guest) && wanted(guest.hello); });
  if (found == guests_.end()) return std::nullopt;
  Guest guest = std::move(*found);
  guests_.erase(found);
  return guest;
}

}  // namespace argosy
