#include <ifaddrs.h>
#include <netdb.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>

#include "argosy/launch/cards.h"
#include "argosy/launch/launcher.h"

namespace argosy::launch {
namespace {

std::string text_of(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> name{};
  if (::getnameinfo(address, size, name.data(), name.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return "";
  return name.data();
}

std::vector<std::string> own_names() {
  std::vector<std::string> names = {"localhost"};
  std::array<char, NI_MAXHOST> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0) names.emplace_back(name.data());
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return names;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, &::freeifaddrs);
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr) continue;
    const bool v4 = at->ifa_addr->sa_family == AF_INET, v6 = at->ifa_addr->sa_family == AF_INET6;
    if (v4 || v6)
      names.push_back(text_of(at->ifa_addr, v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)));
  }
  return names;
}

/// Whether one of a name's addresses is ours.
bool resolves_to(const std::string& host, const std::vector<std::string>& ours) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const std::string address = text_of(at->ai_addr, at->ai_addrlen);
    // Debian gives a machine's own name the address 127.0.1.1, which no interface lists.
    if (address.starts_with("127.") || std::ranges::find(ours, address) != ours.end()) return true;
  }
  return false;
}

/// How many processes may still be started; a large number if nothing limits it.
size_t processes_left() {
  constexpr size_t kSane = 10000;
  size_t left = kSane;
  rlimit limit{};
  if (::geteuid() != 0 && ::getrlimit(RLIMIT_NPROC, &limit) == 0)
    left = std::min<size_t>(left, limit.rlim_cur);
  size_t most = 0, now = 0;
  std::ifstream("/sys/fs/cgroup/pids.max") >> most;  // "max" does not parse, which leaves 0
  std::ifstream("/sys/fs/cgroup/pids.current") >> now;
  if (most > 0) left = std::min(left, most - std::min(most, now));
  return left;
}

}  // namespace

bool Machine::is(const std::string& host) const {
  return std::ranges::find(hosts, host) != hosts.end() || (resolves_here && resolves_here(host));
}

std::string Machine::variable(const std::string& name) const {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

Machine this_machine() {
  Machine machine;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos)
      machine.environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  machine.hosts = own_names();
  machine.process_limit = processes_left();
  machine.resolves_here = [ours = machine.hosts](const std::string& host) {
    return resolves_to(host, ours);
  };
  machine.count_devices = cuda_device_count;
  return machine;
}

}  // namespace argosy::launch
