#include "argosy/plan/role.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/data/file_list.h"
#include "argosy/net/tolerance.h"
#include "argosy/plan/ranks.h"

namespace argosy {
namespace {

constexpr const char* kServerPort = "6174";  // of all servers, by default
constexpr const char* kListenFd = "ARGOSY_LISTEN_FD";
constexpr const char* kRestart = "ARGOSY_RESTART";
constexpr const char* kLaunch = "ARGOSY_LAUNCH";
constexpr const char* kResume = "ARGOSY_RESUME";
constexpr const char* kAway = "ARGOSY_AWAY";
constexpr const char* kNotes = "ARGOSY_NOTES";
constexpr const char* kDurability = "ARGOSY_DURABILITY";
constexpr const char* kLogPath = "ARGOSY_LOG_PATH";
constexpr const char* kJob = "PADDLE_JOB_ID";

/// Variable names of one generation of releases. A variable that is not set falls back to the other
/// generations' names: published scripts mix them.
struct Names {
  const char* servers;
  const char* port;  // of every server; of this one, where `servers` has ports
  const char* worker_num;
  const char* index;
  const char* role;
  const char* ip;  // of this process
  bool servers_have_ports, role_required;
};

constexpr std::array kGenerations = {
    // 2.x and late 1.x: what fleetrun sets
    Names{"PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_PORT", "PADDLE_TRAINERS_NUM", "PADDLE_TRAINER_ID",
          "TRAINING_ROLE", "POD_IP", true, true},
    // 1.5
    Names{"PADDLE_PSERVERS", "PADDLE_PORT", "PADDLE_TRAINERS_NUM", "PADDLE_TRAINER_ID",
          "TRAINING_ROLE", "POD_IP", false, false},
    // 0.14 and its fit_a_line
    Names{"PADDLE_PSERVER_IPS", "PADDLE_PSERVER_PORT", "PADDLE_TRAINERS", "PADDLE_TRAINER_ID",
          "PADDLE_TRAINING_ROLE", "PADDLE_CURRENT_IP", false, false},
    // 0.12 and 0.13
    Names{"PADDLE_INIT_PSERVERS", "PADDLE_INIT_PORT", "TRAINERS", "PADDLE_INIT_TRAINER_ID",
          "TRAINING_ROLE", "POD_IP", false, false},
};

/// A variable that is set, with the name it was found under.
struct Variable {
  std::string name, value;
};

[[noreturn]] void refuse(const Variable& variable, std::string_view expected) {
  fail<ConfigError>(variable.name, " is '", variable.value, "', expected ", expected);
}

std::optional<Variable> find(const Getenv& get, std::string_view name) {
  std::optional<std::string> value = get(name);
  if (!value || value->empty()) return std::nullopt;
  return Variable{std::string(name), *value};
}

/// By this generation's name, else by another's.
std::optional<Variable> find(const Getenv& get, const Names& names, const char* Names::*what) {
  if (auto found = find(get, names.*what)) return found;
  for (const Names& other : kGenerations)
    if (auto found = find(get, other.*what)) return found;
  return std::nullopt;
}

Variable require(std::optional<Variable> found, const char* name, std::string_view expected) {
  check<ConfigError>(found.has_value(), name, " is not set, expected ", expected);
  return *found;
}

int number(const Variable& variable, int least, int most, std::string_view expected) {
  const std::string& text = variable.value;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || value < least || value > most) refuse(variable, expected);
  return value;
}

uint16_t port_number(const Variable& variable) {
  return static_cast<uint16_t>(
      number(variable, 1, std::numeric_limits<uint16_t>::max(), "a port number from 1 to 65535"));
}

/// Repeats f's ConfigError with the name of the variable it is about.
template <class F>
auto named(const std::string& name, F f) {
  try {
    return f();
  } catch (const ConfigError& e) {
    fail<ConfigError>(name, ": ", e.what());
  }
}

/// "10.0.0.1,10.0.0.2", and one port for all.
std::vector<Endpoint> with_port(const Variable& hosts, uint16_t port, const char* port_name) {
  std::string list;
  for (size_t begin = 0; begin <= hosts.value.size();) {
    const size_t end = std::min(hosts.value.find(',', begin), hosts.value.size());
    const std::string host = hosts.value.substr(begin, end - begin);
    if (host.empty() || host.front() == '[' || std::ranges::count(host, ':') == 1)
      refuse(hosts,
             fmt::format("addresses without ports, separated by commas; {} is the port of all",
                         port_name));
    list += (list.empty() ? "" : ",") + Endpoint{host, port}.text();
    begin = end + 1;
  }
  return named(hosts.name, [&] { return parse_endpoints(list); });
}

/// Compares names as written: resolving them could make two hosts one.
bool same_place(const Endpoint& a, const Endpoint& b) {
  const auto written = [](const Endpoint& endpoint) -> std::string_view {
    return endpoint.host == "localhost" ? "127.0.0.1" : std::string_view(endpoint.host);
  };
  return a.port == b.port && written(a) == written(b);
}

std::string joined(const std::vector<Endpoint>& endpoints) {
  std::string text;
  for (const Endpoint& endpoint : endpoints) text += (text.empty() ? "" : ",") + endpoint.text();
  return text;
}

void check_distinct(const std::vector<Endpoint>& servers, std::string_view where) {
  for (auto later = servers.begin(); later != servers.end(); ++later)
    for (auto earlier = servers.begin(); earlier != later; ++earlier)
      check<ConfigError>(!same_place(*earlier, *later), where, ": ", earlier->text(), " and ",
                         later->text(), " are the same server");
}

RoleKind kind_of(const Variable& role) {
  if (role.value == "TRAINER") return RoleKind::worker;
  if (role.value == "PSERVER") return RoleKind::server;
  if (role.value == "HETER_TRAINER")
    fail<ConfigError>(role.name,
                      " is 'HETER_TRAINER', a role that is not there yet, expected TRAINER or "
                      "PSERVER");
  refuse(role, "TRAINER or PSERVER");
}

RoleKind read_kind(const Getenv& get, const Names& names) {
  const auto found = find(get, names, &Names::role);
  if (!found && !names.role_required) return RoleKind::worker;
  return kind_of(require(found, names.role, "TRAINER or PSERVER"));
}

std::vector<Endpoint> read_servers(const Getenv& get, const Names& names) {
  const Variable list = *find(get, names.servers);
  std::vector<Endpoint> servers;
  if (names.servers_have_ports) {
    servers = named(list.name, [&] { return parse_endpoints(list.value); });
  } else {
    const auto port = find(get, names.port).value_or(Variable{names.port, kServerPort});
    servers = with_port(list, port_number(port), names.port);
  }
  check_distinct(servers, list.name);
  return servers;
}

struct Workers {
  std::vector<Endpoint> endpoints;  // empty if unknown
  int number;
};

Workers read_workers(const Getenv& get, const Names& names) {
  const auto list = find(get, "PADDLE_TRAINER_ENDPOINTS");
  std::vector<Endpoint> endpoints;
  if (list) endpoints = named(list->name, [&] { return parse_endpoints(list->value); });
  const int listed = static_cast<int>(endpoints.size());
  const auto declared = find(get, names, &Names::worker_num);
  if (list && !declared) return {std::move(endpoints), listed};

  const std::string expected = "the number of workers, at least 1";
  const int workers = number(require(declared, names.worker_num, expected), 1,
                             std::numeric_limits<int>::max(), expected);
  if (list && workers != listed)
    refuse(*declared, fmt::format("{}, as PADDLE_TRAINER_ENDPOINTS lists so many", listed));
  return {std::move(endpoints), workers};
}

int read_worker_index(const Getenv& get, const Names& names, int worker_num) {
  const std::string expected = fmt::format("a worker's number from 0 to {}", worker_num - 1);
  return number(require(find(get, names, &Names::index), names.index, expected), 0, worker_num - 1,
                expected);
}

/// This server's address, and the variables that give it.
struct Address {
  std::string names;
  Endpoint endpoint;
};

Address read_own_address(const Getenv& get, const Names& names) {
  const auto ip = find(get, names, &Names::ip);
  auto port = find(get, names.port);
  if (!port && !names.servers_have_ports) port = Variable{names.port, kServerPort};
  const auto whole = find(get, "PADDLE_CURRENT_ENDPOINT");
  if (whole && !(ip && port))
    return {whole->name, named(whole->name, [&] { return parse_endpoint(whole->value); })};
  const Variable host = require(ip, names.ip, "this server's address");
  const Variable at = require(port, names.port, "this server's port");
  return {host.name + ":" + at.name, {host.value, port_number(at)}};
}

int read_server_index(const Getenv& get, const Names& names, const std::vector<Endpoint>& servers) {
  const auto [variables, own] = read_own_address(get, names);
  const auto found = std::ranges::find_if(
      servers, [&own = own](const Endpoint& server) { return same_place(server, own); });
  if (found == servers.end())
    refuse({variables, own.text()},
           fmt::format("one of the servers in {}: {}", names.servers, joined(servers)));
  return static_cast<int>(found - servers.begin());
}

std::optional<int> read_listen_fd(const Getenv& get) {
  const auto fd = find(get, kListenFd);
  if (!fd) return std::nullopt;
  return number(*fd, 0, std::numeric_limits<int>::max(), "a file descriptor's number");
}

void check_own_endpoint(const Getenv& get, const comm::GroupOptions& options) {
  const auto own = find(get, "PADDLE_CURRENT_ENDPOINT");
  if (!own) return;
  const Endpoint given = named(own->name, [&] { return parse_endpoint(own->value); });
  const Endpoint& listed = options.ranks[static_cast<size_t>(options.rank)];
  if (!same_place(given, listed))
    refuse(*own, fmt::format("{}, which PADDLE_TRAINER_ENDPOINTS has for rank {}", listed.text(),
                             options.rank));
}

/// Meeting place of ranks that do not know each other's addresses; absent if no variable is set.
std::optional<comm::MeetingPlace> read_meeting_place(const Getenv& get, int ranks) {
  const auto kind = find(get, "PADDLE_GLOO_RENDEZVOUS");
  if (!kind) return std::nullopt;
  comm::MeetingPlace place{.ranks = ranks};
  if (const auto host = find(get, "POD_IP")) place.host = host->value;
  if (kind->value == "2") {
    const char* const name = "PADDLE_GLOO_FS_PATH";
    place.folder = require(find(get, name), name, "a folder that all ranks see").value;
  } else if (kind->value == "3") {
    const char* const name = "PADDLE_GLOO_HTTP_ENDPOINT";
    const Variable at = require(find(get, name), name, "host:port, where rank 0 serves");
    place.http = named(at.name, [&] { return parse_endpoint(at.value); });
  } else {
    refuse(*kind, "2 (files in PADDLE_GLOO_FS_PATH) or 3 (PADDLE_GLOO_HTTP_ENDPOINT)");
  }
  return place;
}

std::string read_backend(const Getenv& get) {
  const auto backend = find(get, "ARGOSY_BACKEND");
  if (!backend) return "auto";
  constexpr std::array kNames = {"auto", "shm", "tcp", "hierarchical", "mpi", "nccl"};
  if (std::ranges::find(kNames, backend->value) == kNames.end())
    refuse(*backend, fmt::format("{}", fmt::join(kNames, ", ")));
  return backend->value;
}

/// The first of its cards.
std::string read_device(const Getenv& get) {
  const auto cards = find(get, "FLAGS_selected_gpus");
  return cards ? cards->value.substr(0, cards->value.find(',')) : "";
}

/// A rank or a lone local process, unless the role is that of a missing server.
Role without_servers(const Getenv& get) {
  const auto role = find(get, kGenerations.front(), &Names::role);
  if (role && kind_of(*role) == RoleKind::server)
    fail<ConfigError>(role->name, " is '", role->value, "' but ", kGenerations.front().servers,
                      " is not set, expected the addresses of all servers");
  const auto options = group_from_env(get);
  if (!options) {
    const auto declared = find(get, kGenerations.front().worker_num);
    if (declared && declared->value != "1")
      refuse(*declared,
             "1, as neither PADDLE_TRAINER_ENDPOINTS nor PADDLE_PSERVERS_IP_PORT_LIST is set");
    return {};
  }
  if (!options->meeting) check_own_endpoint(get, *options);
  Role rank;
  rank.kind = RoleKind::rank;
  rank.index = options->rank;
  rank.workers = options->ranks;
  rank.worker_num =
      options->meeting ? options->meeting->ranks : static_cast<int>(options->ranks.size());
  rank.listen_fd = options->listen_fd;
  rank.job = options->job;
  rank.meeting = options->meeting;
  rank.backend = options->backend;
  rank.device = options->device;
  return rank.worker_num == 1 ? Role{} : rank;
}

}  // namespace

std::optional<Endpoint> Role::current_endpoint() const {
  const std::vector<Endpoint>& all = is_server() ? servers : workers;
  if (static_cast<size_t>(index) >= all.size()) return std::nullopt;
  return all[static_cast<size_t>(index)];
}

std::string Role::text() const {
  const auto counted = [](size_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  if (kind == RoleKind::local) return "local";
  const std::string of_job = job == Role().job ? "" : fmt::format(", job '{}'", job);
  const auto current = current_endpoint();
  const std::string place = current ? " at " + current->text() : "";
  if (is_server())
    return fmt::format("server {} of {}{}, {}{}", index, servers.size(), place,
                       counted(static_cast<size_t>(worker_num), "worker"), of_job);
  if (is_rank()) return fmt::format("rank {} of {}{}{}", index, worker_num, place, of_job);
  return fmt::format("worker {} of {}{}, {}{}", index, worker_num, place,
                     counted(servers.size(), "server"), of_job);
}

Getenv process_environment() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

Role role_from_env(const Getenv& get) {
  const auto names = std::ranges::find_if(kGenerations, [&](const Names& generation) {
    return find(get, generation.servers).has_value();
  });
  if (names == kGenerations.end()) return without_servers(get);
  Role role;
  role.kind = read_kind(get, *names);
  role.servers = read_servers(get, *names);
  Workers workers = read_workers(get, *names);
  role.workers = std::move(workers.endpoints);
  role.worker_num = workers.number;
  if (const auto job = find(get, kJob)) role.job = job->value;
  if (const auto restarts = find(get, kRestart))
    role.restarts = number(*restarts, 0, std::numeric_limits<int>::max(), "how often it restarted");
  if (const auto resume = find(get, kResume))
    role.resume = number(*resume, 0, 1, "1 to go on from journals") == 1;
  if (const auto away = find(get, kAway))
    role.away = number(*away, 0, std::numeric_limits<int>::max(), "a number of seconds");
  if (const auto launch = find(get, kLaunch)) role.launch = launch->value;
  if (const auto notes = find(get, kNotes)) role.notes = notes->value;
  if (const auto durability = find(get, kDurability)) role.durability = durability->value;
  if (const auto path = find(get, kLogPath)) role.log_path = path->value;
  if (!role.is_server()) {
    role.index = read_worker_index(get, *names, role.worker_num);
    return role;
  }
  role.index = read_server_index(get, *names, role.servers);
  role.listen_fd = read_listen_fd(get);
  return role;
}

std::optional<comm::GroupOptions> group_from_env(const Getenv& get) {
  const bool has_servers = std::ranges::any_of(
      kGenerations, [&](const Names& names) { return find(get, names.servers).has_value(); });
  const Names& names = kGenerations.front();
  const bool listed = find(get, "PADDLE_TRAINER_ENDPOINTS").has_value();
  const bool meet = find(get, names.worker_num) && find(get, "PADDLE_GLOO_RENDEZVOUS");
  if (has_servers || !(listed || meet)) return std::nullopt;
  Workers workers = read_workers(get, names);
  if (!listed && workers.number == 1) return std::nullopt;
  comm::GroupOptions options;
  options.rank = read_worker_index(get, names, workers.number);
  options.ranks = std::move(workers.endpoints);
  if (!listed) options.meeting = read_meeting_place(get, workers.number);
  options.listen_fd = read_listen_fd(get);
  options.backend = read_backend(get);
  options.device = read_device(get);
  if (const auto job = find(get, kJob)) options.job = job->value;
  return options;
}

comm::GroupOptions group_options(const Role& role) {
  check<ConfigError>(role.is_rank(), "this process is ", role.text(), ", expected a rank");
  comm::GroupOptions options;
  options.rank = role.index;
  options.ranks = role.workers;
  options.meeting = role.meeting;
  options.listen_fd = role.listen_fd;
  options.job = role.job;
  options.backend = role.backend;
  options.device = role.device;
  const Tolerance tolerance = tolerance_from_env();
  options.join_within = options.deadline = tolerance.give_up;
  options.patience = tolerance.patience;
  options.quiet = tolerance.quiet;
  options.log = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  return options;
}

/// Scripts may set variables for themselves, so inconsistent ones are ignored.
Role with_handed_down(Role said, const Getenv& get) {
  Role told;
  try {
    told = role_from_env(get);
  } catch (const ConfigError&) {
    return said;
  }
  if (told.kind != said.kind || told.index != said.index || told.servers != said.servers)
    return said;
  said.listen_fd = told.listen_fd;
  said.restarts = told.restarts;
  said.launch = told.launch;
  said.resume = told.resume;
  said.away = told.away;
  said.notes = told.notes;
  said.durability = told.durability;
  said.log_path = told.log_path;
  return said;
}

Role user_defined_role(RoleKind kind, int index, std::vector<Endpoint> workers,
                       std::vector<Endpoint> servers) {
  Role role = user_defined_role(kind, index, static_cast<int>(workers.size()), std::move(servers));
  role.workers = std::move(workers);
  return role;
}

Role user_defined_role(RoleKind kind, int index, int worker_num, std::vector<Endpoint> servers) {
  check<ConfigError>(worker_num > 0, "a role needs at least 1 worker, got ", worker_num);
  check<ConfigError>(kind != RoleKind::rank, "a rank needs the addresses of all ranks");
  check<ConfigError>((kind == RoleKind::local) == servers.empty(),
                     kind == RoleKind::local ? "a local role has no servers, got "
                                             : "workers and servers need servers, got none",
                     joined(servers));
  check<ConfigError>(kind != RoleKind::local || worker_num == 1,
                     "a local role is its only worker, got ", worker_num);
  check_distinct(servers, "servers");
  const int count = kind == RoleKind::server ? static_cast<int>(servers.size()) : worker_num;
  check<ConfigError>(index >= 0 && index < count, kind == RoleKind::server ? "server" : "worker",
                     " index ", index, " but the last one is ", count - 1);
  Role role;
  role.kind = kind;
  role.index = index;
  role.servers = std::move(servers);
  role.worker_num = worker_num;
  return role;
}

std::vector<std::string> file_shard(std::span<const std::string> files, int index, int count) {
  check<ConfigError>(index >= 0 && index < count, "worker ", index, " of ", count,
                     " has no share of files");
  const auto share = files_of_worker(files, static_cast<size_t>(index), static_cast<size_t>(count));
  return {share.begin(), share.end()};
}

}  // namespace argosy
