#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <sstream>

#include "argosy/base/shell_word.h"
#include "argosy/doctor/doctor_checks.h"
#include "argosy/world/proc_files.h"

namespace argosy {
namespace {

using Severity = Finding::Severity;
using Names = std::map<std::string, LookUp>;

template <class List>
bool contains(const List& list, const std::string& item) {
  return std::ranges::find(list, item) != std::ranges::end(list);
}

bool is_number(const std::string& host) {
  std::array<std::byte, sizeof(in6_addr)> ignored;
  const std::string without_zone = host.substr(0, host.find('%'));
  return ::inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
         ::inet_pton(AF_INET6, without_zone.c_str(), ignored.data()) == 1;
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

/// Each once.
std::vector<std::string> hosts_of(const Needs& needs) {
  std::vector<std::string> hosts;
  const auto add = [&](const std::string& host) {
    if (!contains(hosts, host)) hosts.push_back(host);
  };
  for (const std::string& host : needs.hosts) add(host);
  for (const Endpoint& endpoint : needs.listen) add(endpoint.host);
  return hosts;
}

Names look_up(const Needs& needs, const Surroundings& here, Deadline deadline) {
  Names names;
  std::vector<std::string> wanted = hosts_of(needs), asked;
  if (!here.host_name.empty()) wanted.push_back(here.host_name);
  for (const std::string& host : wanted) {
    if (is_number(host))
      names[host] = {.outcome = LookUp::Outcome::found, .addresses = {host}};
    else if (!contains(asked, host))
      asked.push_back(host);
  }
  const std::vector<LookUp> found = here.look_up(asked, deadline);
  for (size_t i = 0; i < asked.size(); ++i) names[asked[i]] = found.at(i);
  return names;
}

/// The first address is the one that is taken.
bool leads_to_loopback(const LookUp& found) {
  return !found.addresses.empty() && is_loopback(found.addresses.front());
}

/// Whether another machine takes part.
bool has_others(const Needs& needs, const Surroundings& here, const Names& names) {
  return std::ranges::any_of(needs.hosts, [&](const std::string& host) {
    const LookUp& found = names.at(host);
    return !is_here(host, here) && !leads_to_loopback(found) &&
           std::ranges::none_of(found.addresses, [&](const std::string& address) {
             return contains(here.addresses, address);
           });
  });
}

Finding slow(const std::string& host) {
  return {.severity = Severity::warning,
          .what = fmt::format("looking up {} is slow, it was given up after 100 ms", host),
          .why = "every process of the job waits for such a look-up before it connects",
          .fix = "getent ahosts " + host};
}

/// Command that moves the name from the loopback lines to a new one. The machine itself knows best
/// which address the others use for it.
std::string fix_own_name(const std::string& host) {
  return fmt::format(
      "sudo sed -i -E \"/^127/s/\\s{0}(\\s|\\$)/ /; 1i $(hostname -I | cut -d' ' -f1) {0}\" "
      "/etc/hosts",
      host);
}

Findings check_own_name(const Needs& needs, const Surroundings& here, const Names& names) {
  const std::string& host = here.host_name;
  if (host.empty() || contains(needs.hosts, host))
    return {};  // a host of the job is checked as such
  const LookUp& found = names.at(host);
  const bool others = has_others(needs, here, names);
  if (found.outcome == LookUp::Outcome::slow) return {slow(host)};
  if (found.outcome == LookUp::Outcome::unknown)
    return {{.severity = others ? Severity::warning : Severity::note,
             .what = fmt::format("{}, the name of this machine, does not resolve: {}", host,
                                 found.error),
             .why = "programs that look for their own address by name fail or wait; argosy does "
                    "not, it takes the addresses of --servers and --workers",
             .fix = fix_own_name(host)}};
  if (!others || !leads_to_loopback(found)) return {};
  return {{.severity = Severity::warning,
           .what = fmt::format("{}, the name of this machine, resolves to {}, which is loopback",
                               host, found.addresses.front()),
           .why = "a program that tells the others its address by name sends them to themselves",
           .fix = fix_own_name(host)}};
}

Findings check_hosts(const Needs& needs, const Surroundings& here, const Names& names) {
  const bool others = has_others(needs, here, names);
  Findings findings;
  for (const std::string& host : hosts_of(needs)) {
    const LookUp& found = names.at(host);
    if (found.outcome == LookUp::Outcome::slow) findings.push_back(slow(host));
    if (found.outcome == LookUp::Outcome::unknown)
      findings.push_back({.severity = Severity::error,
                          .what = fmt::format("{} does not resolve: {}", host, found.error),
                          .why = "it is a machine of the job that nobody here can connect to",
                          .fix = "getent ahosts " + host});
    if (others && leads_to_loopback(found))
      findings.push_back(
          {.severity = Severity::error,
           .what = is_number(host) ? host + " is in a job of several machines"
                                   : fmt::format("{} resolves to {}, in a job of several machines",
                                                 host, found.addresses.front()),
           .why = "it is loopback: each machine would look for that process on itself",
           .fix = is_number(host)          ? "hostname -I"
                  : host == here.host_name ? fix_own_name(host)
                                           : "getent ahosts " + host});
  }
  return findings;
}

Findings check_loopback(const Surroundings& here) {
  const std::string problem = here.try_loopback();
  if (problem.empty()) return {};
  return {{.severity = Severity::error,
           .what = "loopback does not work: " + problem,
           .why = "servers and workers of one machine speak over it",
           .fix = "sudo ip link set lo up"}};
}

Finding taken(const Endpoint& at, const Surroundings& here) {
  const auto owner = here.port_owner(at);
  return {.severity = Severity::error,
          .what = fmt::format("{} is taken by {}", at.text(),
                              owner ? owner->text() : "a process that cannot be seen from here"),
          .why = "the server that is to listen there cannot start",
          .fix = owner && owner->pid != 0 ? fmt::format("kill {}", owner->pid)
                                          : fmt::format("sudo ss -ltnp 'sport = :{}'", at.port)};
}

Findings check_port(const Endpoint& at, const Surroundings& here, const Names& names) {
  const LookUp& found = names.at(at.host);
  if (found.addresses.empty()) return {};  // reported with the host
  switch (const int error = here.try_to_listen(found.addresses.front(), at.port)) {
    case 0:
      return {};
    case EADDRINUSE:
      return {taken({found.addresses.front(), at.port}, here)};
    case EACCES:
      return {
          {.severity = Severity::error,
           .what = fmt::format("port {} is for root only", at.port),
           .why = "the server that is to listen there cannot start; take a port above 1023, or "
                  "open the lower ones to all",
           .fix = fmt::format("sudo sysctl -w net.ipv4.ip_unprivileged_port_start={}", at.port)}};
    case EADDRNOTAVAIL:
      return {{.severity = Severity::error,
               .what = fmt::format("{} is no address of this machine ({})", at.host,
                                   fmt::join(here.addresses, ", ")),
               .why = "a server is to listen there; which machine this is goes by its addresses "
                      "and by POD_IP",
               .fix = "hostname -I"}};
    default:
      return {{.severity = Severity::error,
               .what = fmt::format("cannot listen on {}: {}", at.text(), std::strerror(error)),
               .why = "the server that is to listen there cannot start"}};
  }
}

/// A list such as "6170-6180,8000".
bool in_ranges(const std::string& ranges, uint16_t port) {
  std::istringstream parts(ranges);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto first = leading_number(part);
    const size_t dash = part.find('-');
    const auto last = dash == std::string::npos ? first : leading_number(part.substr(dash + 1));
    if (first && last && *first <= port && port <= *last) return true;
  }
  return false;
}

Findings check_outgoing_ports(const Needs& needs, const Surroundings& here) {
  if (!here.outgoing_ports) return {};
  const auto [first, last] = *here.outgoing_ports;
  std::vector<uint16_t> inside;
  for (const Endpoint& at : needs.listen)
    if (first <= at.port && at.port <= last && !in_ranges(here.reserved_ports, at.port) &&
        std::ranges::find(inside, at.port) == inside.end())
      inside.push_back(at.port);
  if (inside.empty()) return {};
  const std::string ports = fmt::format("{}", fmt::join(inside, ","));
  // The sysctl takes the whole list.
  const std::string reserved =
      here.reserved_ports.empty() ? ports : here.reserved_ports + "," + ports;
  return {{.severity = Severity::warning,
           .what = fmt::format("port {} is one of those for outgoing connections ({} to {})", ports,
                               first, last),
           .why = "any program that connects to somewhere may have it when the job starts",
           .fix = "sudo sysctl -w net.ipv4.ip_local_reserved_ports=" + reserved}};
}

/// The numbers of an IPv4 address as one.
std::optional<uint32_t> ipv4_of(const std::string& text) {
  in_addr address{};
  if (::inet_pton(AF_INET, text.c_str(), &address) != 1) return std::nullopt;
  return ntohl(address.s_addr);
}

/// "10.0.0.0/8"
bool in_network(const std::string& host, const std::string& network) {
  constexpr uint64_t kBits = 32;
  const size_t slash = network.find('/');
  if (slash == std::string::npos) return false;
  const auto address = ipv4_of(host), base = ipv4_of(network.substr(0, slash));
  const auto bits = leading_number(network.substr(slash + 1));
  if (!address || !base || !bits || *bits > kBits) return false;
  const uint64_t unlike = *address ^ *base;
  return unlike >> (kBits - *bits) == 0;
}

/// An entry of no_proxy: a host, the end of host names, a network, or * for all.
bool covers(std::string entry, const std::string& host) {
  std::erase_if(entry, [](unsigned char c) { return std::isspace(c) != 0; });
  if (entry == "*" || entry == host || in_network(host, entry)) return true;
  if (entry.starts_with('*')) entry.erase(0, 1);
  if (!entry.starts_with('.')) entry.insert(0, 1, '.');
  return entry.size() > 1 && ("." + host).ends_with(entry);
}

bool no_proxy_covers(const Surroundings& here, const std::string& host) {
  for (const char* name : {"no_proxy", "NO_PROXY"}) {
    const auto found = here.environment.find(name);
    if (found == here.environment.end()) continue;
    std::istringstream entries(found->second);
    for (std::string entry; std::getline(entries, entry, ',');)
      if (covers(entry, host)) return true;
  }
  return false;
}

Findings check_proxies(const Needs& needs, const Surroundings& here) {
  std::vector<std::string> taken_out, left;
  for (const char* name : {"http_proxy", "https_proxy"})
    if (here.environment.contains(name)) taken_out.emplace_back(name);
  for (const char* name : {"all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"})
    if (here.environment.contains(name)) left.emplace_back(name);
  if (taken_out.empty() && left.empty()) return {};

  std::vector<std::string> hosts = hosts_of(needs);
  if (hosts.empty()) hosts = {"localhost", "127.0.0.1"};
  std::erase_if(hosts, [&](const std::string& host) { return no_proxy_covers(here, host); });
  if (hosts.empty()) return {};

  std::vector<std::string> all = taken_out;
  all.insert(all.end(), left.begin(), left.end());
  const std::string uncovered = fmt::format("{}", fmt::join(hosts, ","));
  const bool harmless = left.empty() || is_argosy(needs.command);
  return {{.severity = harmless ? Severity::note : Severity::warning,
           .what = fmt::format("{} set, and no_proxy does not cover {}", fmt::join(all, ", "),
                               uncovered),
           .why = fmt::format(
               "programs that speak HTTP or gRPC send what is for the job to the proxy and hang; "
               "argosy's own servers and workers do not, and fleetrun takes http_proxy and "
               "https_proxy out of the environment of what it starts{}",
               left.empty() ? "" : fmt::format(", but not {}", fmt::join(left, ", "))),
           .fix = fmt::format("export no_proxy=\"${{no_proxy:+$no_proxy,}}{0}\" "
                              "NO_PROXY=\"${{NO_PROXY:+$NO_PROXY,}}{0}\"",
                              uncovered)}};
}

}  // namespace

bool is_here(const std::string& host, const Surroundings& here) {
  const auto pod = here.environment.find("POD_IP");
  if (pod != here.environment.end() && pod->second == host) return true;
  return is_loopback(host) || host == here.host_name || contains(here.addresses, host);
}

Findings check_network(const Needs& needs, const Surroundings& here, Deadline look_ups) {
  const Names names = look_up(needs, here, look_ups);
  Findings all;
  const auto add = [&](const Findings& some) { all.insert(all.end(), some.begin(), some.end()); };
  add(check_proxies(needs, here));
  add(check_own_name(needs, here, names));
  add(check_hosts(needs, here, names));
  add(check_loopback(here));
  for (const Endpoint& at : needs.listen)
    if (at.port != 0) add(check_port(at, here, names));
  add(check_outgoing_ports(needs, here));
  return all;
}

}  // namespace argosy
