#include <ifaddrs.h>
#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "argosy/base/error.h"
#include "argosy/launch/launcher.h"

namespace argosy {
namespace {

constexpr int kFirstPort = 6170;  // workers without ports get this + servers, and those behind it
constexpr const char* kLoopback = "127.0.0.1";

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// Repeats f's ConfigError with the flag it is about.
template <class F>
auto named(const char* flag, F f) {
  try {
    return f();
  } catch (const ConfigError& e) {
    fail<ConfigError>(flag, ": ", e.what());
  }
}

bool has_port(const std::string& text) {
  return text.starts_with('[') ? text.find("]:") != std::string::npos
                               : std::ranges::count(text, ':') == 1;
}

/// Hosts alone get ports that follow each other, the same on every machine.
std::vector<Endpoint> parse_workers(const std::string& list, size_t servers) {
  std::vector<std::string> parts = split(list);
  const auto with_port = static_cast<size_t>(std::ranges::count_if(parts, has_port));
  if (with_port == parts.size()) return parse_endpoints(list);
  check<ConfigError>(with_port == 0, "'", list, "' has ports for ", with_port, " of ", parts.size(),
                     " workers, expected all or none");
  std::vector<Endpoint> workers;
  for (const std::string& host : parts) {
    const size_t port = kFirstPort + servers + workers.size();
    check<ConfigError>(port <= UINT16_MAX, "more workers than ports, expected fewer");
    workers.push_back(parse_endpoint(Endpoint{host, static_cast<uint16_t>(port)}.text()));
  }
  return workers;
}

/// The one machine of a list that a number is added to.
std::string only_host(const std::vector<Endpoint>& others, const char* number, const char* list) {
  if (others.empty()) return kLoopback;
  for (const Endpoint& other : others)
    check<ConfigError>(other.host == others.front().host, number,
                       " counts processes of one machine, ", "but there are ", others.front().host,
                       " and ", other.host, ", expected ", list);
  return others.front().host;
}

void check_number(const std::optional<int>& number, const char* flag) {
  check<ConfigError>(!number || *number > 0, flag, " is ", number.value_or(0),
                     ", expected at least 1");
}

void check_length(const std::vector<Endpoint>& list, const std::optional<int>& number,
                  const char* list_flag, const char* number_flag) {
  check<ConfigError>(!number || list.size() == static_cast<size_t>(*number), list_flag, " lists ",
                     list.size(), " but ", number_flag, " is ", number.value_or(0),
                     ", expected the same number");
}

void read_lists(const LaunchFlags& flags, Job& job) {
  check_number(flags.server_num, "--server_num");
  check_number(flags.worker_num, "--worker_num");
  const bool servers = flags.server_num || !flags.servers.empty(),
             workers = flags.worker_num || !flags.workers.empty();
  check<ConfigError>(servers || workers,
                     "nothing says what to start, expected --server_num and --worker_num, or "
                     "--servers and --workers; jobs without servers are not there yet");
  check<ConfigError>(servers, "no servers, expected --server_num or --servers");
  check<ConfigError>(workers, "no workers, expected --worker_num or --workers");
  if (!flags.servers.empty()) {
    job.servers = named("--servers", [&] { return parse_endpoints(flags.servers); });
    check_length(job.servers, flags.server_num, "--servers", "--server_num");
  }
  if (!flags.workers.empty()) {
    const size_t before = job.servers.empty() ? static_cast<size_t>(flags.server_num.value_or(0))
                                              : job.servers.size();
    job.workers = named("--workers", [&] { return parse_workers(flags.workers, before); });
    check_length(job.workers, flags.worker_num, "--workers", "--worker_num");
  }
  if (job.servers.empty())
    job.servers.assign(static_cast<size_t>(*flags.server_num),
                       {only_host(job.workers, "--server_num", "--servers"), 0});
  if (job.workers.empty())
    job.workers.assign(static_cast<size_t>(*flags.worker_num),
                       {only_host(job.servers, "--worker_num", "--workers"), 0});
}

/// One machine is this one. Of several, POD_IP says which, or else our own addresses.
std::vector<std::string> find_hosts_here(const Job& job, const Machine& machine) {
  std::vector<std::string> hosts;
  for (const auto* list : {&job.servers, &job.workers})
    for (const Endpoint& endpoint : *list)
      if (std::ranges::find(hosts, endpoint.host) == hosts.end()) hosts.push_back(endpoint.host);
  if (hosts.size() == 1) return hosts;

  const auto contains = [](const std::vector<std::string>& list, const std::string& host) {
    return std::ranges::find(list, host) != list.end();
  };
  std::string all;
  for (const std::string& host : hosts) all += (all.empty() ? "" : ", ") + host;
  const auto pod = machine.environment.find("POD_IP");
  if (pod != machine.environment.end() && !pod->second.empty()) {
    check<ConfigError>(contains(hosts, pod->second), "POD_IP is '", pod->second,
                       "', expected one of the job's machines: ", all);
    return {pod->second};
  }
  std::erase_if(hosts, [&](const std::string& host) { return !contains(machine.hosts, host); });
  check<ConfigError>(!hosts.empty(), "none of the job's machines (", all,
                     ") is this one, expected POD_IP to say which is");
  return hosts;
}

/// Other machines could not know a port that is chosen at the start.
void check_ports(const std::vector<Endpoint>& list, const char* flag) {
  for (const Endpoint& endpoint : list)
    check<ConfigError>(endpoint.port != 0, flag, " has ", endpoint.text(),
                       ", expected a port that the other machines can know");
}

Variables read_env(const std::vector<std::string>& settings) {
  Variables env;
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    check<ConfigError>(equals != std::string::npos && equals > 0, "--env is '", setting,
                       "', expected NAME=VALUE");
    env[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  return env;
}

}  // namespace

Machine this_machine() {
  Machine machine;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos)
      machine.environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  machine.hosts = {"localhost"};
  std::array<char, NI_MAXHOST> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0) machine.hosts.emplace_back(name.data());
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return machine;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, &::freeifaddrs);
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr) continue;
    const bool v4 = at->ifa_addr->sa_family == AF_INET, v6 = at->ifa_addr->sa_family == AF_INET6;
    if (!v4 && !v6) continue;
    const socklen_t size = v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (::getnameinfo(at->ifa_addr, size, name.data(), name.size(), nullptr, 0, NI_NUMERICHOST) ==
        0)
      machine.hosts.emplace_back(name.data());
  }
  return machine;
}

bool Job::is_here(const Endpoint& endpoint) const {
  return std::ranges::find(hosts_here, endpoint.host) != hosts_here.end();
}

Job make_job(const LaunchFlags& flags, const Machine& machine) {
  check<ConfigError>(!flags.command.empty(), "no command, expected a program behind the flags");
  check<ConfigError>(flags.grace >= 0 && std::isfinite(flags.grace), "--grace is ", flags.grace,
                     ", expected seconds");
  check<ConfigError>(!flags.log_dir.empty(), "--log_dir is empty, expected a folder");
  Job job;
  read_lists(flags, job);
  job.hosts_here = find_hosts_here(job, machine);
  const bool all_here =
      std::ranges::all_of(job.servers, [&](const Endpoint& each) { return job.is_here(each); }) &&
      std::ranges::all_of(job.workers, [&](const Endpoint& each) { return job.is_here(each); });
  if (!all_here) {
    check_ports(job.servers, "--servers");
    check_ports(job.workers, "--workers");
  }
  job.log_dir = flags.log_dir;
  job.env = read_env(flags.env);
  job.command = flags.command;
  const auto cards = machine.environment.find("CUDA_VISIBLE_DEVICES");
  if (cards != machine.environment.end() && !cards->second.empty())
    job.cards = split(cards->second);
  job.grace = std::chrono::milliseconds(std::llround(flags.grace * 1000));
  return job;
}

}  // namespace argosy
