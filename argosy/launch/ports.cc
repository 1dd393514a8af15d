#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "argosy/base/error.h"
#include "argosy/launch/launcher.h"

namespace argosy {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const Endpoint& at) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &wanted, &found);
  check<IoError>(error == 0, "cannot listen on ", at.text(), ": ",
                 error == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(error));
  return {found, &::freeaddrinfo};
}

Descriptor bind_to(const Endpoint& at) {
  const Addresses addresses = resolve(at);
  const auto require = [&](bool ok) {
    check<IoError>(ok, "cannot listen on ", at.text(), ": ", std::strerror(errno));
  };
  Descriptor socket(::socket(addresses->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  require(socket.get() >= 0);
  // Connections of an earlier job that wind down do not keep the address; one that listens does.
  const int yes = 1;
  require(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0);
  require(::bind(socket.get(), addresses->ai_addr, addresses->ai_addrlen) == 0);
  return socket;
}

uint16_t port_of(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  check<IoError>(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0,
                 "the port of a socket is not known: ", std::strerror(errno));
  // At the same place for both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace

Reservation reserve_ports(Job job) {
  std::vector<Descriptor> sockets(job.servers.size());
  for (size_t index = 0; index < sockets.size(); ++index) {
    Endpoint& server = job.servers[index];
    if (!job.is_here(server)) continue;
    Descriptor socket = bind_to(server);
    check<IoError>(::listen(socket.get(), SOMAXCONN) == 0, "cannot listen on ", server.text(), ": ",
                   std::strerror(errno));
    server.port = port_of(socket);
    sockets[index] = std::move(socket);
  }
  // Workers only have names that differ: nobody listens there. All are held until all are known.
  std::vector<Descriptor> held;
  for (Endpoint& worker : job.workers) {
    if (worker.port != 0) continue;
    held.push_back(bind_to(worker));
    worker.port = port_of(held.back());
  }
  return {std::move(job), std::move(sockets)};
}

}  // namespace argosy
