#include "argosy/net/port_owner.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "argosy/world/proc_files.h"
#include "argosy/world/processes.h"

namespace argosy {
namespace {

/// IPv4 addresses in their IPv6 form, ::ffff:1.2.3.4.
using Address = std::array<uint8_t, 16>;

constexpr Address kAny = {};
constexpr Address kMappedV4 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr size_t kV4At = 12;  // in the mapped form

std::optional<Address> parse_address(const std::string& text) {
  Address address = kMappedV4;
  if (::inet_pton(AF_INET, text.c_str(), address.data() + kV4At) == 1) return address;
  const std::string without_zone = text.substr(0, text.find('%'));
  if (::inet_pton(AF_INET6, without_zone.c_str(), address.data()) == 1) return address;
  return std::nullopt;
}

std::optional<uint32_t> hex(std::string_view digits) {
  constexpr int kBase = 16;
  uint32_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, value, kBase);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(value) : std::nullopt;
}

/// As the kernel prints it: words of 8 digits, each a number of this machine's byte order.
std::optional<Address> kernel_address(std::string_view digits) {
  constexpr size_t kWord = 8, kV4 = kWord, kV6 = 4 * kWord;
  if (digits.size() != kV4 && digits.size() != kV6) return std::nullopt;
  Address address = kMappedV4;
  uint8_t* at = address.data() + (digits.size() == kV4 ? kV4At : 0);
  for (; !digits.empty(); digits.remove_prefix(kWord), at += sizeof(uint32_t)) {
    const auto word = hex(digits.substr(0, kWord));
    if (!word) return std::nullopt;
    std::memcpy(at, &*word, sizeof(*word));
  }
  return address;
}

/// Whether a listener on `address` also gets connections to `other`.
bool covers(const Address& address, const Address& other) {
  if (address == other || address == kAny) return true;
  return address == kMappedV4 && std::equal(other.begin(), other.begin() + kV4At, address.begin());
}

struct Socket {
  Address address;
  uint16_t port;
  bool listens;
  unsigned user;
  std::string inode;
};

/// One line of /proc/net/tcp or tcp6; absent for the heading and for sockets without an owner.
std::optional<Socket> parse_socket(const std::string& line) {
  constexpr size_t kLocal = 1, kState = 3, kUser = 7, kInode = 9;
  const std::vector<std::string> words = words_of(line);
  if (words.size() <= kInode || words[kInode] == "0") return std::nullopt;
  const std::string_view local = words[kLocal];
  const size_t colon = local.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto address = kernel_address(local.substr(0, colon));
  const auto port = hex(local.substr(colon + 1));
  const auto user = leading_number(words[kUser]);
  if (!address || !port || !user) return std::nullopt;
  return Socket{.address = *address,
                .port = static_cast<uint16_t>(*port),
                .listens = words[kState] == "0A",
                .user = static_cast<unsigned>(*user),
                .inode = words[kInode]};
}

/// One that listens before one that is only connected from this port.
std::optional<Socket> find_socket(const Endpoint& at, const std::string& proc) {
  const auto wanted = parse_address(at.host);
  std::optional<Socket> found;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream lines(proc + table);
    for (std::string line; std::getline(lines, line);) {
      const auto socket = parse_socket(line);
      if (!socket || socket->port != at.port) continue;
      const bool conflict =
          !wanted || covers(*wanted, socket->address) || covers(socket->address, *wanted);
      if (!conflict || (found && !socket->listens)) continue;
      found = socket;
      if (socket->listens) return found;
    }
  }
  return found;
}

}  // namespace

std::string PortOwner::text() const {
  if (pid != 0) return fmt::format("process {} ({})", pid, command);
  if (user != ::getuid()) return fmt::format("another user's process (user {})", user);
  return "a process that cannot be seen from here, of another container perhaps";
}

std::optional<PortOwner> find_port_owner(const Endpoint& at, const std::string& proc) {
  const auto socket = find_socket(at, proc);
  if (!socket) return std::nullopt;
  const std::vector<pid_t> holders = holders_of("socket:[" + socket->inode + "]", proc);
  if (!holders.empty())
    return PortOwner{
        .pid = holders.front(), .command = command_of(holders.front(), proc), .user = socket->user};
  return PortOwner{.user = socket->user};
}

}  // namespace argosy
