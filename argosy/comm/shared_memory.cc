#include "argosy/comm/shared_memory.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "argosy/base/error.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 20ms;

void require(bool ok, const char* what) {
  check<IoError>(ok, "shared memory: ", what, ": ", std::strerror(errno));
}

/// An abstract address: it is no file, and ends with the socket.
struct Address {
  explicit Address(uint64_t nonce) {
    const std::string name = fmt::format("argosy-{:016x}", nonce);
    std::memcpy(at.sun_path + 1, name.data(), name.size());
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&at); }

  sockaddr_un at{.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t size;
};

Descriptor unix_socket() {
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  require(socket.get() >= 0, "socket");
  return socket;
}

/// f() until it is true; looks after the other ranks meanwhile.
template <class F>
void wait_until(Peers& peers, int fd, const char* what, const F& f) {
  const Env::Time until = peers.env().now() + peers.options().join_within;
  while (!f()) {
    peers.check();
    check<IoError>(peers.env().now() < until, "shared memory: ", what, " takes too long");
    pollfd ready{fd, POLLIN, 0};
    ::poll(&ready, 1, static_cast<int>(std::chrono::milliseconds(kLook).count()));
  }
}

bool same_user(const Descriptor& socket) {
  ucred other{};
  socklen_t size = sizeof(other);
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 &&
         other.uid == ::geteuid();
}

std::shared_ptr<std::byte> mapped(const Descriptor& memory, size_t bytes) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  require(at != MAP_FAILED, "mmap");
  return {static_cast<std::byte*>(at), [bytes](std::byte* last) { ::munmap(last, bytes); }};
}

}  // namespace

SharedMemory::SharedMemory(Peers& peers) : peers_(peers) {
  if (peers.size() == 1) return;
  if (peers.rank() == 0)
    let_members_in();
  else
    connect_to_first();
}

void SharedMemory::let_members_in() {
  const Descriptor listening = unix_socket();
  const Address at(peers_.nonce(0));
  require(::bind(listening.get(), at.get(), at.size) == 0, "bind");
  require(::listen(listening.get(), SOMAXCONN) == 0, "listen");
  wait_until(peers_, listening.get(), "a rank to connect", [&] {
    Descriptor member(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (member.get() >= 0 && same_user(member)) members_.push_back(std::move(member));
    return static_cast<int>(members_.size()) == peers_.size() - 1;
  });
}

void SharedMemory::connect_to_first() {
  const Address at(peers_.nonce(0));
  wait_until(peers_, -1, "rank 0 to listen", [&] {
    first_ = unix_socket();
    return ::connect(first_.get(), at.get(), at.size) == 0;
  });
}

std::shared_ptr<std::byte> SharedMemory::make(size_t bytes) {
  if (peers_.rank() != 0) return mapped(take(), bytes);
  const Descriptor memory(::memfd_create("argosy", MFD_CLOEXEC));
  require(memory.get() >= 0, "memfd_create");
  require(::ftruncate(memory.get(), static_cast<off_t>(bytes)) == 0, "ftruncate");
  hand_out(memory);
  return mapped(memory, bytes);
}

namespace {

/// One byte that carries a descriptor.
struct RightsMessage {
  RightsMessage() {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
  }

  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
};

}  // namespace

void SharedMemory::hand_out(const Descriptor& memory) const {
  for (const Descriptor& member : members_) {
    RightsMessage sent;
    cmsghdr* const rights = CMSG_FIRSTHDR(&sent.message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = memory.get();
    std::memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
    if (::sendmsg(member.get(), &sent.message, MSG_NOSIGNAL) == 1) continue;
    peers_.check();
    require(false, "sendmsg");
  }
}

Descriptor SharedMemory::take() const {
  Descriptor memory;
  wait_until(peers_, first_.get(), "rank 0 to make it", [&] {
    RightsMessage sent;
    if (::recvmsg(first_.get(), &sent.message, MSG_CMSG_CLOEXEC) != 1) return false;
    const cmsghdr* const rights = CMSG_FIRSTHDR(&sent.message);
    check<IoError>(rights != nullptr && rights->cmsg_type == SCM_RIGHTS,
                   "shared memory: rank 0 has sent none");
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(rights), sizeof(fd));
    memory = Descriptor(fd);
    return true;
  });
  return memory;
}

}  // namespace argosy::comm
