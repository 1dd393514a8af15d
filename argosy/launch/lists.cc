#include "argosy/launch/lists.h"

#include "argosy/launch/flag_values.h"

namespace argosy::launch {
namespace {

bool has_port(const std::string& text) {
  return text.starts_with('[') ? text.find("]:") != std::string::npos
                               : std::ranges::count(text, ':') == 1;
}

/// Hosts alone get ports that follow each other, the same on every machine.
std::vector<Endpoint> parse_places(const std::string& list, size_t first_port) {
  std::vector<std::string> parts = split(list);
  const auto with_port = static_cast<size_t>(std::ranges::count_if(parts, has_port));
  if (with_port == parts.size()) return parse_endpoints(list);
  check<ConfigError>(with_port == 0, "'", list, "' has ports for ", with_port, " of ", parts.size(),
                     " workers, expected all or none");
  std::vector<Endpoint> places;
  for (const std::string& host : parts) {
    const size_t port = first_port + places.size();
    check<ConfigError>(port <= UINT16_MAX, "more workers than ports, expected fewer");
    places.push_back(parse_endpoint(Endpoint{host, static_cast<uint16_t>(port)}.text()));
  }
  return places;
}

void check_length(const std::vector<Endpoint>& list, const std::optional<int>& number,
                  const char* list_flag, const char* number_flag) {
  check<ConfigError>(!number || list.size() == static_cast<size_t>(*number), list_flag, " lists ",
                     list.size(), " but ", number_flag, " is ", number.value_or(0),
                     ", expected the same number");
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

}  // namespace

void Lists::read_servers_and_workers() {
  check_number(flags_.server_num, "--server_num");
  check_number(flags_.worker_num, "--worker_num");
  check_number(flags_.coordinator_num, "--coordinator_num");
  check<ConfigError>(flags_.server_num || !flags_.servers.empty(),
                     "no servers, expected --server_num or --servers");
  check<ConfigError>(flags_.worker_num || !flags_.workers.empty(),
                     "no workers, expected --worker_num or --workers");
  std::vector<Endpoint> servers, workers;
  if (!flags_.servers.empty()) {
    servers = named("--servers", [&] { return parse_endpoints(flags_.servers); });
    check_length(servers, flags_.server_num, "--servers", "--server_num");
  }
  const size_t server_count =
      servers.empty() ? static_cast<size_t>(*flags_.server_num) : servers.size();
  const size_t first_port = static_cast<size_t>(flags_.start_port.value_or(kServerPort));
  if (!flags_.workers.empty()) {
    workers =
        named("--workers", [&] { return parse_places(flags_.workers, first_port + server_count); });
    check_length(workers, flags_.worker_num, "--workers", "--worker_num");
  }
  if (servers.empty())
    servers = counted(server_count, only_host(workers, "--server_num", "--servers"), 0);
  if (workers.empty())
    workers = counted(static_cast<size_t>(*flags_.worker_num),
                      only_host(servers, "--worker_num", "--workers"), server_count);
  add(ProcessKind::server, servers);
  add(ProcessKind::worker, workers);
}

void Lists::read_heter_workers() {
  const auto stages = split(flags_.heter_workers, ';'),
             numbers = split(flags_.heter_worker_num, ';'),
             devices = split(flags_.heter_devices, ';');
  const bool listed = !flags_.heter_workers.empty();
  check<ConfigError>(listed || !flags_.heter_worker_num.empty(),
                     "no heterogeneous workers, expected --heter_worker_num or --heter_workers");
  const size_t count = listed ? stages.size() : numbers.size();
  check<ConfigError>(!listed || flags_.heter_worker_num.empty() || numbers.size() == count,
                     "--heter_workers has ", count, " stages but --heter_worker_num ",
                     numbers.size(), ", expected the same number");
  check<ConfigError>(flags_.heter_devices.empty() || devices.size() == count,
                     "--heter_devices has ", devices.size(), " stages, expected ", count);
  for (size_t stage = 0; stage < count; ++stage) {
    const std::string device = flags_.heter_devices.empty() ? "gpu" : devices[stage];
    check<ConfigError>(device == "cpu" || device == "gpu", "--heter_devices is '",
                       flags_.heter_devices, "', expected cpu or gpu for each stage");
    std::optional<int> number;
    if (!flags_.heter_worker_num.empty())
      number = number_in("--heter_worker_num", numbers[stage], 1);
    std::vector<Endpoint> places;
    if (listed) {
      places = named("--heter_workers", [&] { return parse_endpoints(stages[stage]); });
      check_length(places, number, "--heter_workers", "--heter_worker_num");
    } else {
      places = counted(static_cast<size_t>(*number),
                       only_host(endpoints(), "--heter_worker_num", "--heter_workers"),
                       job_.members.size());
    }
    constexpr int kFirstStage = 2;
    add(ProcessKind::heter_worker, places, kFirstStage + static_cast<int>(stage), device);
  }
}

void Lists::read_coordinators() {
  if (!flags_.coordinators.empty()) {
    const auto places =
        named("--coordinators", [&] { return parse_endpoints(flags_.coordinators); });
    check_length(places, flags_.coordinator_num, "--coordinators", "--coordinator_num");
    add(ProcessKind::coordinator, places);
  } else if (flags_.coordinator_num) {
    add(ProcessKind::coordinator,
        counted(static_cast<size_t>(*flags_.coordinator_num),
                only_host(endpoints(), "--coordinator_num", "--coordinators"),
                job_.members.size()));
  }
}

void Lists::read_ranks(const std::vector<std::string>& hosts, size_t on_each, int first_port) {
  const bool alone = hosts.size() == 1;
  std::vector<Endpoint> ranks;
  for (const std::string& host : hosts)
    for (size_t local = 0; local < on_each; ++local) {
      const size_t port = alone && !flags_.start_port ? 0 : static_cast<size_t>(first_port) + local;
      check<ConfigError>(port <= UINT16_MAX, "more ranks than ports, expected fewer");
      ranks.push_back(parse_endpoint(Endpoint{host, static_cast<uint16_t>(port)}.text()));
    }
  add(ProcessKind::worker, ranks);
}

void Lists::add(ProcessKind kind, const std::vector<Endpoint>& places, int stage,
                const std::string& device) {
  for (const Endpoint& at : places)
    job_.members.push_back({.kind = kind, .at = at, .stage = stage, .device = device});
}

std::vector<Endpoint> Lists::counted(size_t count, const std::string& host, size_t before) const {
  std::vector<Endpoint> places(count, {host, 0});
  if (!flags_.start_port) return places;
  size_t port = static_cast<size_t>(*flags_.start_port) + before;
  check<ConfigError>(port + count <= UINT16_MAX + size_t{1}, "--start_port is ", *flags_.start_port,
                     ": more processes than ports behind it");
  for (Endpoint& place : places) place.port = static_cast<uint16_t>(port++);
  return places;
}
std::vector<Endpoint> Lists::endpoints() const {
  std::vector<Endpoint> all;
  for (const Member& member : job_.members) all.push_back(member.at);
  return all;
}

}  // namespace argosy::launch
