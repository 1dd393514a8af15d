#include "argosy/net/port_owner.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "argosy/base/descriptor.h"
#include "argosy/base/test_support.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

/// A socket that listens on any free port of an address, of either family.
struct Listener {
  explicit Listener(const in6_addr& address) {
    sockaddr_in6 at{};
    at.sin6_family = AF_INET6;
    at.sin6_addr = address;
    listen_on(at, at.sin6_port);
  }
  explicit Listener(in_addr_t address) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(address);
    listen_on(at, at.sin_port);
  }

  Descriptor socket;
  uint16_t port = 0;  // 0: there is no such address here

 private:
  template <class Address>
  void listen_on(Address& at, const in_port_t& port_of_address) {
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    socklen_t size = sizeof(at);
    socket = Descriptor(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(socket.get(), address, size) != 0 || ::listen(socket.get(), 1) != 0) return;
    EXPECT_EQ(::getsockname(socket.get(), address, &size), 0);
    port = ntohs(port_of_address);
  }
};

TEST(PortOwner, IsThisProcess) {
  const Listener one(INADDR_LOOPBACK);
  ASSERT_NE(one.port, 0);
  for (const char* host : {"127.0.0.1", "0.0.0.0", "a-name", "::ffff:127.0.0.1"}) {
    const auto owner = find_port_owner({host, one.port});
    ASSERT_TRUE(owner) << host;
    EXPECT_EQ(owner->pid, ::getpid());
    EXPECT_EQ(owner->user, ::getuid());
    EXPECT_FALSE(owner->command.empty());
    EXPECT_EQ(owner->text(), "process " + std::to_string(::getpid()) + " (" + owner->command + ")");
  }
  EXPECT_FALSE(find_port_owner({"127.0.0.2", one.port}));
}

TEST(PortOwner, OfAllAddressesHoldsEveryOne) {
  const Listener all(INADDR_ANY);
  ASSERT_NE(all.port, 0);
  EXPECT_TRUE(find_port_owner({"127.0.0.2", all.port}));
}

TEST(PortOwner, IsFoundAmongIpv6Sockets) {
  const Listener one(in6addr_loopback);
  if (one.port == 0) GTEST_SKIP() << "this machine has no IPv6";
  const auto owner = find_port_owner({"::1", one.port});
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->pid, ::getpid());
}

constexpr const char* kHeading =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n";

/// One socket of 127.0.0.1:6170 in /proc's form.
std::string line(const char* state, unsigned user, const char* inode) {
  return std::string("   0: 0100007F:181A 00000000:0000 ") + state +
         " 00000000:00000000 00:00000000 00000000 " + std::to_string(user) + " 0 " + inode +
         " 1 0 100 0 0 10 0\n";
}

TEST(PortOwner, OfOneFamilyLeavesTheOtherAlone) {
  const TestFolder proc;
  fs::create_directory(proc.path() + "/net");
  proc.write("net/tcp", line("0A", 0, "777"));
  const auto held = [&](const char* host, uint16_t port = 6170) {
    return find_port_owner({host, port}, proc.path()).has_value();
  };
  EXPECT_TRUE(held("127.0.0.1"));
  EXPECT_TRUE(held("0.0.0.0"));
  EXPECT_TRUE(held("::"));
  EXPECT_FALSE(held("::1"));
  EXPECT_FALSE(held("127.0.0.1", 6171));
  proc.write("net/tcp", line("0A", 0, "777").replace(6, 8, "00000000"));
  EXPECT_TRUE(held("10.0.0.1"));
  EXPECT_FALSE(held("::1"));
}

TEST(PortOwner, IsSomebodyElseWhereNoProcessCanBeRead) {
  const TestFolder proc;
  fs::create_directory(proc.path() + "/net");
  fs::create_directories(proc.path() + "/12/fd");
  const unsigned other = ::getuid() + 33;
  proc.write("net/tcp", kHeading + line("0A", other, "777"));
  const auto owner = find_port_owner({"127.0.0.1", 6170}, proc.path());
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->pid, 0);
  EXPECT_EQ(owner->text(), "another user's process (user " + std::to_string(other) + ")");
  proc.write("net/tcp", line("0A", ::getuid(), "777"));
  EXPECT_EQ(find_port_owner({"127.0.0.1", 6170}, proc.path())->text(),
            "a process that cannot be seen from here, of another container perhaps");
}

TEST(PortOwner, ListensRatherThanConnects) {
  const TestFolder proc;
  for (const char* folder : {"/net", "/12/fd", "/13/fd"})
    fs::create_directories(proc.path() + folder);
  fs::create_symlink("socket:[777]", proc.path() + "/12/fd/3");
  fs::create_symlink("socket:[778]", proc.path() + "/13/fd/3");
  proc.write("12/comm", "client\n");
  proc.write("13/cmdline", std::string("server\0--port\0"
                                       "6170\0",
                                       19));
  // The first has wound down already: nobody's any more.
  proc.write("net/tcp", kHeading + line("06", 0, "0") + line("01", 0, "777"));
  EXPECT_EQ(find_port_owner({"127.0.0.1", 6170}, proc.path())->text(), "process 12 (client)");
  proc.write("net/tcp", kHeading + line("01", 0, "777") + line("0A", 0, "778"));
  EXPECT_EQ(find_port_owner({"127.0.0.1", 6170}, proc.path())->text(),
            "process 13 (server --port 6170)");
}

}  // namespace
}  // namespace argosy
