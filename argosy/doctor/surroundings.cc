#include "argosy/doctor/surroundings.h"

#include <gnu/libc-version.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "argosy/doctor/probes.h"
#include "argosy/world/proc_files.h"

namespace argosy {
namespace {

constexpr uint64_t kKibibyte = 1024;

std::map<std::string, std::string> read_environment() {
  std::map<std::string, std::string> environment;
  for (const char* name : {"http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY",
                           "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "POD_IP"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') environment[name] = value;
  }
  return environment;
}

std::string read_host_name() {
  std::array<char, NI_MAXHOST> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::vector<std::string> read_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, &::freeifaddrs);
  std::vector<std::string> addresses;
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr) continue;
    const int family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(at->ifa_addr, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) ==
        0)
      addresses.emplace_back(text.data());
  }
  return addresses;
}

/// The value of the first line "NAME: VALUE". Reads no further: there may be one for each of many
/// cores.
std::string field(std::istream& lines, const std::string& name) {
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || !line.starts_with(name)) continue;
    if (line.find_first_not_of(" \t", name.size()) != colon) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

void read_memory(const std::string& root, Surroundings& here) {
  const std::string info = content_of(root + "/proc/meminfo");
  const auto bytes = [&](const char* name) {
    std::istringstream lines(info);
    return leading_number(field(lines, name)).value_or(0) * kKibibyte;
  };
  here.memory = bytes("MemTotal");
  here.memory_available = bytes("MemAvailable");
  constexpr const char* kForbidden = "2\n";
  if (content_of(root + "/proc/sys/vm/overcommit_memory") != kForbidden) return;
  const uint64_t limit = bytes("CommitLimit");
  here.commit_left = limit - std::min(limit, bytes("Committed_AS"));
}

void read_ports(const std::string& root, Surroundings& here) {
  const std::string folder = root + "/proc/sys/net/ipv4/";
  const std::vector<std::string> range = words_of(content_of(folder + "ip_local_port_range"));
  if (range.size() == 2) {
    const auto first = leading_number(range[0]), last = leading_number(range[1]);
    if (first && last)
      here.outgoing_ports = {static_cast<uint16_t>(*first), static_cast<uint16_t>(*last)};
  }
  const std::vector<std::string> reserved =
      words_of(content_of(folder + "ip_local_reserved_ports"));
  if (!reserved.empty()) here.reserved_ports = reserved.front();
}

std::optional<uint64_t> finite(rlim_t limit) {
  return limit == RLIM_INFINITY ? std::nullopt : std::optional<uint64_t>(limit);
}

void read_limits(Surroundings& here) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    here.open_files = finite(limit.rlim_cur);
    here.most_open_files = finite(limit.rlim_max);
  }
  constexpr uid_t kRoot = 0;  // is not bound by it
  if (::getuid() != kRoot && ::getrlimit(RLIMIT_NPROC, &limit) == 0)
    here.user_processes = finite(limit.rlim_cur);
  if (::getrlimit(RLIMIT_AS, &limit) == 0) here.address_space = finite(limit.rlim_cur);
}

int count_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return CPU_COUNT(&allowed);
  return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));  // more cores than the set has room for
}

std::string read_cpu_model(const std::string& root) {
  std::ifstream lines(root + "/proc/cpuinfo");
  return field(lines, "model name");
}

std::string read_kernel() {
  utsname name{};
  return ::uname(&name) == 0 ? name.release : "";
}

}  // namespace

Surroundings this_surroundings(const std::string& root) {
  Surroundings here;
  here.environment = read_environment();
  here.host_name = read_host_name();
  here.addresses = read_addresses();
  here.now = std::time(nullptr);
  here.kernel = read_kernel();
  here.libc = ::gnu_get_libc_version();
  here.cpu_model = read_cpu_model(root);
  here.cores = count_cores();
  read_memory(root, here);
  read_ports(root, here);
  read_limits(here);
  here.group = read_group_limits(root);
  here.look_up = look_up_names;
  here.try_loopback = try_loopback;
  here.try_to_listen = try_to_listen;
  here.port_owner = [](const Endpoint& at) { return find_port_owner(at); };
  here.folder = look_at_folder;
  here.program = find_program;
  here.run = run_command;
  return here;
}

}  // namespace argosy
