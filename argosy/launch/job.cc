#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "argosy/launch/engine.h"
#include "argosy/launch/flag_values.h"
#include "argosy/launch/lists.h"

namespace argosy::launch {
namespace {

using Given = std::vector<std::pair<const char*, bool>>;

/// The first flag that was given, or null.
const char* first_of(const Given& flags) {
  const auto found = std::ranges::find_if(flags, [](const auto& flag) { return flag.second; });
  return found == flags.end() ? nullptr : found->first;
}

struct ModeFlags {
  const char *servers, *heterogeneous, *collective;  // one that asks for the mode, or null
};

/// The values of --run_mode.
constexpr std::array<std::pair<std::string_view, Mode>, 3> kRunModes = {
    {{"collective", Mode::collective}, {"ps", Mode::servers}, {"ps-heter", Mode::heterogeneous}}};

Mode named_mode(const std::string& name) {
  const auto found = std::ranges::find(kRunModes, name, &std::pair<std::string_view, Mode>::first);
  check<ConfigError>(found != kRunModes.end(), "--run_mode is '", name,
                     "', expected collective, ps or ps-heter");
  return found->second;
}

/// Ranks may meet by HTTP as well.
bool asks_for_ranks(const Flags& flags) {
  if (!flags.ips.empty() || flags.nproc_per_node) return true;
  return !flags.run_mode.empty() && named_mode(flags.run_mode) == Mode::collective;
}

ModeFlags mode_flags(const Flags& flags) {
  return {first_of({{"--servers", !flags.servers.empty()},
                    {"--server_num", flags.server_num.has_value()},
                    {"--workers", !flags.workers.empty()},
                    {"--worker_num", flags.worker_num.has_value()},
                    {"--coordinators", !flags.coordinators.empty()},
                    {"--coordinator_num", flags.coordinator_num.has_value()},
                    {"--http_port", flags.http_port && !asks_for_ranks(flags)}}),
          first_of({{"--heter_workers", !flags.heter_workers.empty()},
                    {"--heter_worker_num", !flags.heter_worker_num.empty()},
                    {"--heter_devices", !flags.heter_devices.empty()}}),
          first_of({{"--ips", !flags.ips.empty()},
                    {"--nproc_per_node", flags.nproc_per_node.has_value()},
                    {"--backend", !flags.backend.empty()}})};
}

Mode mode_of(const Flags& flags) {
  const auto [servers, heterogeneous, collective] = mode_flags(flags);
  const char* const ps = heterogeneous != nullptr ? heterogeneous : servers;
  const auto contradict = [](const auto& one, const auto& other) {
    fail<ConfigError>(one, " and ", other,
                      " contradict each other: a job has servers and workers, or ranks");
  };
  if (ps != nullptr && collective != nullptr) contradict(ps, collective);
  if (flags.run_mode.empty()) {
    if (heterogeneous != nullptr) return Mode::heterogeneous;
    return servers != nullptr ? Mode::servers : Mode::collective;
  }
  const Mode mode = named_mode(flags.run_mode);
  const std::string wanted = "--run_mode=" + flags.run_mode;
  if (mode == Mode::collective && ps != nullptr) contradict(wanted, ps);
  if (mode != Mode::collective && collective != nullptr) contradict(wanted, collective);
  if (mode == Mode::servers && heterogeneous != nullptr) contradict(wanted, heterogeneous);
  return mode;
}

std::string joined(const std::vector<std::string>& words, const char* between = ", ") {
  return fmt::format("{}", fmt::join(words, between));
}

/// With several machines, POD_IP says which one this is; else our own addresses do.
std::vector<int> nodes_here(const std::vector<std::string>& hosts, const Machine& machine) {
  if (hosts.size() == 1) return {0};
  const std::string pod = machine.variable("POD_IP");
  std::vector<int> here;
  for (size_t node = 0; node < hosts.size(); ++node)
    if (pod.empty() ? machine.is(hosts[node]) : hosts[node] == pod)
      here.push_back(static_cast<int>(node));
  check<ConfigError>(!here.empty() || pod.empty(), "POD_IP is '", pod,
                     "', expected one of the job's machines: ", joined(hosts));
  check<ConfigError>(!here.empty(), "none of the job's machines (", joined(hosts),
                     ") is this one, expected POD_IP to say which is");
  return here;
}

/// Assigns listed members to nodes, and nodes to this launcher.
void place_on_hosts(const Machine& machine, Job& job) {
  std::vector<std::string> hosts;
  for (Member& member : job.members) {
    const auto found = std::ranges::find(hosts, member.at.host);
    member.node = static_cast<int>(found - hosts.begin());
    if (found == hosts.end()) hosts.push_back(member.at.host);
  }
  job.nodes = static_cast<int>(hosts.size());
  job.here = nodes_here(hosts, machine);
  if (job.here.size() == hosts.size()) return;
  for (const Member& member : job.members)
    check<ConfigError>(member.at.port != 0, "the ", name_of(member.kind), " ", member.at.text(),
                       " has no port, expected one that the other machines can know");
  job.meeting = {
      .at = job.members.front().at, .head = job.is_here(job.members.front()), .nodes = hosts};
}

void check_distinct(const Job& job) {
  std::map<Endpoint, ProcessKind> seen;
  for (const Member& member : job.members) {
    const auto [earlier, added] = seen.emplace(member.at, member.kind);
    check<ConfigError>(added || member.at.port == 0, "a ", name_of(earlier->second), " and a ",
                       name_of(member.kind), " have the same address ", member.at.text(),
                       ", expected different ones");
  }
}

/// The devices that processes of this machine may use.
struct Cards {
  std::vector<std::string> names;    // as CUDA_VISIBLE_DEVICES has them
  std::vector<std::string> indices;  // among those that a process sees
};

constexpr const char *kVisible = "CUDA_VISIBLE_DEVICES", *kEmulated = "ARGOSY_EMULATED_DEVICES";

Cards find_cards(const Flags& flags, const Machine& machine) {
  const std::string visible_text = visible_cards(machine);
  const auto visible = visible_text.empty() ? std::vector<std::string>() : split(visible_text);
  Cards cards;
  cards.names = flags.gpus.empty() ? visible : split(flags.gpus);
  for (const std::string& card : cards.names) {
    if (visible.empty()) {
      number_in("--gpus", card, 0);
      cards.indices.push_back(card);
      continue;
    }
    const auto found = std::ranges::find(visible, card);
    check<ConfigError>(found != visible.end(), "--gpus has card ", card, ", expected one of ",
                       machine.variable(kVisible).empty() ? kEmulated : kVisible, ": ",
                       visible_text);
    cards.indices.push_back(std::to_string(found - visible.begin()));
  }
  return cards;
}

size_t ranks_here(const Flags& flags, const Cards& cards) {
  check_number(flags.nproc_per_node, "--nproc_per_node");
  if (!flags.nproc_per_node) return std::max<size_t>(1, cards.names.size());
  const auto ranks = static_cast<size_t>(*flags.nproc_per_node);
  check<ConfigError>(cards.names.size() % ranks == 0, "--nproc_per_node is ", ranks,
                     " but there are ", cards.names.size(),
                     " cards, expected a number that divides them");
  return ranks;
}

/// Ranks get equal parts of the cards; workers with servers take turns with them.
void deal_cards(const Cards& cards, Job& job) {
  if (cards.names.empty()) return;
  std::vector<Member*> takers;
  for (Member& member : job.members)
    if (job.is_here(member) &&
        (member.kind == ProcessKind::worker || member.kind == ProcessKind::heter_worker))
      takers.push_back(&member);
  if (job.mode == Mode::collective) {
    const size_t each = cards.indices.size() / takers.size();
    for (size_t rank = 0; rank < takers.size(); ++rank)
      takers[rank]->cards.assign(
          cards.indices.begin() + static_cast<std::ptrdiff_t>(rank * each),
          cards.indices.begin() + static_cast<std::ptrdiff_t>((rank + 1) * each));
    return;
  }
  std::array<size_t, 2> next{};
  for (Member* member : takers) {
    size_t& turn = next[member->kind == ProcessKind::worker ? 0 : 1];
    member->cards = {cards.names[turn++ % cards.names.size()]};
  }
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

void check_values(const Flags& flags) {
  check<ConfigError>(!flags.command.empty(), "no command, expected a program behind the flags");
  check<ConfigError>(flags.grace >= 0 && std::isfinite(flags.grace), "--grace is ", flags.grace,
                     ", expected seconds");
  check<ConfigError>(flags.timeout > 0 && std::isfinite(flags.timeout), "--timeout is ",
                     flags.timeout, ", expected seconds");
  check<ConfigError>(!flags.log_dir.empty(), "--log_dir is empty, expected a folder");
  constexpr size_t kLongestId = 63;  // bytes, as ranks tell it each other
  check<ConfigError>(!flags.job_id.empty() && flags.job_id.size() <= kLongestId, "--job_id has ",
                     flags.job_id.size(), " bytes, expected 1 to ", kLongestId);
  check<ConfigError>(flags.max_restart >= 0, "--max_restart is ", flags.max_restart,
                     ", expected a number of at least 0");
  check<ConfigError>(!flags.resume || flags.durability != "none",
                     "--resume and --durability=none contradict each other: without journals there "
                     "is nothing to go on from");
  constexpr std::array kDurabilities = {"", "none", "journal", "fsync"};
  check<ConfigError>(std::ranges::find(kDurabilities, flags.durability) != kDurabilities.end(),
                     "--durability is '", flags.durability, "', expected none, journal or fsync");
  check_port(flags.http_port, "--http_port");
  check_port(flags.start_port, "--start_port");
  constexpr std::array kLevels = {"DEBUG", "INFO", "WARNING", "ERROR"};
  check<ConfigError>(std::ranges::find(kLevels, flags.log_level) != kLevels.end(),
                     "--log_level is '", flags.log_level,
                     "', expected DEBUG, INFO, WARNING or ERROR");
}

/// PaddleCloud lists its machines in variables, which flags override.
Flags with_paddle_cloud(Flags flags, const Machine& machine) {
  for (const char* name : {"PADDLE_TRAINERS", "POD_IP", "PADDLE_TRAINER_ID", "TRAINER_PORTS_NUM"})
    if (machine.variable(name).empty()) return flags;
  if (!flags.ips.empty() || !flags.master.empty()) return flags;
  flags.ips = machine.variable("PADDLE_TRAINERS");
  if (!flags.start_port) flags.start_port = kServerPort;
  return flags;
}

/// Adds this launcher's own members, without hosts: it offers them at the meeting.
void offer(const Flags& flags, const Cards& cards, Job& job) {
  const auto add = [&](ProcessKind kind, const std::optional<int>& number, const char* flag) {
    check_number(number, flag, 0);
    for (int i = 0; i < number.value_or(0); ++i) job.members.push_back({.kind = kind});
  };
  if (job.mode == Mode::collective)
    return add(ProcessKind::worker, static_cast<int>(ranks_here(flags, cards)), "--nproc_per_node");
  add(ProcessKind::server, flags.server_num, "--server_num");
  add(ProcessKind::worker, flags.worker_num, "--worker_num");
  if (job.mode == Mode::heterogeneous)
    add(ProcessKind::heter_worker, number_in("--heter_worker_num", flags.heter_worker_num, 0),
        "--heter_worker_num");
  add(ProcessKind::coordinator, flags.coordinator_num, "--coordinator_num");
}

void refuse_lists(const Flags& flags, const std::string& who) {
  const char* const list = first_of({{"--ips", !flags.ips.empty()},
                                     {"--servers", !flags.servers.empty()},
                                     {"--workers", !flags.workers.empty()},
                                     {"--heter_workers", !flags.heter_workers.empty()},
                                     {"--coordinators", !flags.coordinators.empty()}});
  check<ConfigError>(list == nullptr, who, " finds the machines and ", list == nullptr ? "" : list,
                     " lists them, expected one of the two");
}

bool is_list(const Flags& flags) {
  return !flags.ips.empty() || !flags.servers.empty() || !flags.workers.empty();
}

std::vector<std::string> numbered(int count, const char* what) {
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) names.push_back(fmt::format("{} {}", what, i));
  return names;
}

void meet_at_master(const Flags& flags, const Machine& machine, const Cards& cards, Job& job) {
  refuse_lists(flags, "--master");
  check_number(flags.nnodes, "--nnodes");
  const int nodes = flags.nnodes.value_or(1);
  std::optional<int> rank = flags.rank;
  if (const std::string index = machine.variable("JOB_COMPLETION_INDEX"); !rank && !index.empty())
    rank = number_in("JOB_COMPLETION_INDEX", index, 0);
  check<ConfigError>(!rank || (*rank >= 0 && *rank < nodes), "--rank is ", rank.value_or(0),
                     ", expected 0 to ", nodes - 1, ", as --nnodes is ", nodes);
  job.master = named("--master", [&] { return parse_endpoint(flags.master); });
  check<ConfigError>(job.master->port != 0, "--master is ", flags.master,
                     ", expected a port that the other machines can know");
  job.nodes = nodes;
  offer(flags, cards, job);
  job.meeting = {.at = *job.master,
                 .head = machine.is(job.master->host) && rank.value_or(0) == 0,
                 .nodes = numbered(nodes, "node"),
                 .offers = true,
                 .rank = rank};
}

/// The kind of process that task `rank` runs: servers come first, then workers.
ProcessKind kind_of_task(const Flags& flags, int rank) {
  const int servers = flags.server_num.value_or(0), workers = flags.worker_num.value_or(0);
  if (rank < servers) return ProcessKind::server;
  return rank < servers + workers ? ProcessKind::worker : ProcessKind::heter_worker;
}

void meet_in_engine(const Flags& flags, const ClusterEngine& engine, const Cards& cards, Job& job) {
  refuse_lists(flags, engine.name);
  int total = flags.server_num.value_or(0) + flags.worker_num.value_or(0);
  if (job.mode == Mode::heterogeneous)
    total += number_in("--heter_worker_num", flags.heter_worker_num, 0);
  const bool ranks = job.mode == Mode::collective;
  const bool task_each = ranks ? !flags.nproc_per_node : total == engine.tasks && !engine.one_each;
  check<ConfigError>(task_each || engine.tasks == engine.nodes, engine.name, " has started ",
                     engine.tasks, " tasks on ", engine.nodes, " nodes, but the flags count ",
                     ranks ? flags.nproc_per_node.value_or(0) : total,
                     " processes, expected as many tasks, or one task for each node");
  check<ConfigError>(
      engine.meet.has_value(), engine.name,
      " does not say where its tasks can meet, expected --master HOST:PORT --nnodes N");
  if (task_each)
    job.members.push_back({.kind = ranks ? ProcessKind::worker : kind_of_task(flags, engine.rank)});
  else
    offer(flags, cards, job);
  job.nodes = engine.tasks;
  job.meeting = {.at = *engine.meet,
                 .head = engine.head,
                 .nodes = numbered(engine.tasks, "task"),
                 .offers = true,
                 .rank = engine.rank};
}

void list_members(const Flags& flags, const Machine& machine, const Cards& cards, Job& job) {
  Lists lists(flags, job);
  if (job.mode == Mode::collective) {
    const std::string endpoints = machine.variable("DISTRIBUTED_TRAINER_ENDPOINTS");
    const bool cloud = !endpoints.empty() && flags.ips == machine.variable("PADDLE_TRAINERS");
    if (cloud)
      lists.add(ProcessKind::worker,
                named("DISTRIBUTED_TRAINER_ENDPOINTS", [&] { return parse_endpoints(endpoints); }));
    else
      lists.read_ranks(split(flags.ips.empty() ? kLoopback : flags.ips), ranks_here(flags, cards),
                       flags.start_port.value_or(kRankPort));
  } else {
    lists.read_servers_and_workers();
    if (job.mode == Mode::heterogeneous) lists.read_heter_workers();
    lists.read_coordinators();
  }
  place_on_hosts(machine, job);
  check_distinct(job);
}

constexpr std::array kBackends = {"auto", "gloo", "shm", "tcp", "hierarchical", "mpi", "nccl"};

void check_backend(const std::string& backend) {
  check<ConfigError>(backend.empty() || std::ranges::find(kBackends, backend) != kBackends.end(),
                     "--backend is '", backend, "', expected ",
                     fmt::format("{}", fmt::join(kBackends, ", ")));
}

/// Rendezvous address for Gloo, in case a program uses it.
std::optional<Endpoint> http_endpoint(const Flags& flags, const Job& job) {
  const bool ranks = job.mode == Mode::collective;
  if ((ranks && !flags.http_port) || job.members.empty()) return std::nullopt;
  const Endpoint& first = job.members.front().at;
  if (flags.http_port) return Endpoint{first.host, static_cast<uint16_t>(*flags.http_port)};
  if (!job.meeting) return Endpoint{first.host, 0};
  const size_t port = kServerPort + job.members.size();
  return Endpoint{first.host, static_cast<uint16_t>(std::min<size_t>(port, UINT16_MAX))};
}

}  // namespace

std::string visible_cards(const Machine& machine) {
  std::string visible = machine.variable(kVisible);
  const std::string emulated = machine.variable(kEmulated);
  if (!visible.empty() || emulated.empty()) return visible;
  std::string cards;
  for (int card = 0; card < number_in(kEmulated, emulated, 0); ++card)
    cards += (card == 0 ? "" : ",") + std::to_string(card);
  return cards;
}

const KindNames& names_of(ProcessKind kind) {
  static constexpr std::array<KindNames, 4> kNames = {{
      {"server", "PSERVER", "serverlog"},
      {"worker", "TRAINER", "workerlog"},
      {"heter_worker", "HETER_TRAINER", "heterlog"},
      {"coordinator", "COORDINATOR", "coordinatorlog"},
  }};
  return kNames.at(static_cast<size_t>(kind));
}

bool Job::is_here(const Member& member) const {
  return std::ranges::find(here, member.node) != here.end();
}

std::vector<Member> Job::of(ProcessKind kind) const {
  std::vector<Member> found;
  std::ranges::copy_if(members, std::back_inserter(found),
                       [kind](const Member& member) { return member.kind == kind; });
  return found;
}

size_t Job::count(ProcessKind kind) const {
  return static_cast<size_t>(std::ranges::count(members, kind, &Member::kind));
}

Job make_job(const Flags& typed, const Machine& machine) {
  check_values(typed);
  Job job;
  job.mode = mode_of(typed);
  check_backend(typed.backend);
  job.backend = typed.backend;
  const Flags flags = job.mode == Mode::collective ? with_paddle_cloud(typed, machine) : typed;
  job.id = flags.job_id;
  job.log_dir = flags.log_dir;
  job.env = read_env(flags.env);
  job.command = flags.command;
  job.max_restart = flags.max_restart;
  check<ConfigError>(!flags.resume || job.mode != Mode::collective,
                     "--resume is for servers and their journals, expected --server_num or "
                     "--servers with it; ranks go on from saves");
  job.resume = flags.resume;
  job.durability = flags.durability;
  job.log_path = flags.log_path;
  job.grace = std::chrono::milliseconds(std::llround(flags.grace * 1000));
  job.tolerance =
      tolerance_from_env([&](const std::string& name) { return machine.variable(name); });
  if (const std::string gloo = machine.variable("PADDLE_WITH_GLOO"); !gloo.empty())
    job.with_gloo = gloo;
  const Cards cards = find_cards(flags, machine);
  const auto engine = is_list(flags) ? std::nullopt : find_engine(machine);
  if (!flags.master.empty()) {
    meet_at_master(flags, machine, cards, job);
  } else if (engine) {
    meet_in_engine(flags, *engine, cards, job);
  } else {
    check<ConfigError>(!flags.nnodes || *flags.nnodes == 1, "--nnodes is ",
                       flags.nnodes.value_or(1), ", expected --master to say where they meet");
    list_members(flags, machine, cards, job);
  }
  if (job.meeting)
    job.meeting->within = std::chrono::milliseconds(std::llround(flags.timeout * 1000));
  deal_cards(cards, job);
  job.http = http_endpoint(flags, job);
  const auto here = static_cast<size_t>(
      std::ranges::count_if(job.members, [&](const Member& each) { return job.is_here(each); }));
  check<ConfigError>(here > 0, "the flags start no process here, expected at least one");
  check<ConfigError>(here <= machine.process_limit, "the job starts ", here,
                     " processes here, but this machine allows ", machine.process_limit);
  return job;
}

}  // namespace argosy::launch
