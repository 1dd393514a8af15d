#include "argosy/launch/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdlib>

#include "argosy/base/error.h"
#include "argosy/base/hash.h"

namespace argosy::launch {
namespace {

/// Below the ports that systems give to outgoing connections.
constexpr uint64_t kFirstMeetingPort = 10000, kMeetingPorts = 20000;

int number(const Machine& machine, const std::string& name, int otherwise) {
  const std::string text = machine.variable(name);
  if (text.empty()) return otherwise;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check<ConfigError>(error == std::errc() && end == text.data() + text.size() && value >= 0, name,
                     " is '", text, "', expected a number");
  return value;
}

/// All launchers of a job come to the same one, and two jobs hardly ever do.
uint16_t meeting_port(std::string_view job) {
  const uint64_t hash = hash64(job);
  return static_cast<uint16_t>(kFirstMeetingPort + hash % kMeetingPorts);
}

std::optional<ClusterEngine> slurm(const Machine& machine) {
  const std::string job = machine.variable("SLURM_JOB_ID");
  if (job.empty()) return std::nullopt;
  const std::string step = machine.variable("SLURM_STEP_ID");
  const int nodes = number(machine, "SLURM_JOB_NUM_NODES", 1);
  check<ConfigError>(!step.empty() || nodes == 1, "Slurm's job ", job, " has ", nodes,
                     " nodes, but this launcher was not started by srun and runs on one of them, "
                     "expected srun fleetrun ...");
  if (step.empty()) return std::nullopt;
  ClusterEngine engine{.name = "Slurm",
                       .tasks = number(machine, "SLURM_STEP_NUM_TASKS", 1),
                       .rank = number(machine, "SLURM_PROCID", 0),
                       .nodes = number(machine, "SLURM_STEP_NUM_NODES", 1),
                       .node = number(machine, "SLURM_NODEID", 0),
                       .one_each = number(machine, "SLURM_NTASKS_PER_NODE", 0) == 1};
  const std::string list = machine.variable("SLURM_STEP_NODELIST");
  check<ConfigError>(!list.empty(), "SLURM_STEP_NODELIST is not set, expected the nodes of job ",
                     job);
  engine.meet = {expand_node_list(list).front(), meeting_port("slurm " + job + "." + step)};
  engine.head = engine.node == 0 && number(machine, "SLURM_LOCALID", 0) == 0;
  return engine;
}

/// The machine of mpirun, known to every process: "1234.0;tcp://10.0.0.1,192.168.0.1:4567".
std::string mpirun_host(const Machine& machine) {
  const std::string uri = machine.variable("OMPI_MCA_orte_hnp_uri");
  const size_t begin = uri.find("tcp://");
  if (begin == std::string::npos) return "";
  const std::string rest = uri.substr(begin + 6);
  return rest.substr(0, rest.find_first_of(",:"));
}

/// Whether mpirun's machine is one of the job's. Daemons are numbered from mpirun's, which is 0:
/// "1234.0;tcp://...". If that machine has no tasks, the last number is one too high.
bool mpirun_has_tasks(const Machine& machine) {
  const std::string uri = machine.variable("OMPI_MCA_orte_local_daemon_uri");
  const size_t dot = uri.find('.');
  const int daemon = dot == std::string::npos ? 0 : std::atoi(uri.c_str() + dot + 1);
  return daemon < number(machine, "OMPI_MCA_orte_num_nodes", INT_MAX);
}

std::optional<ClusterEngine> openmpi(const Machine& machine) {
  if (machine.variable("OMPI_COMM_WORLD_SIZE").empty()) return std::nullopt;
  ClusterEngine engine{.name = "OpenMPI",
                       .tasks = number(machine, "OMPI_COMM_WORLD_SIZE", 1),
                       .rank = number(machine, "OMPI_COMM_WORLD_RANK", 0)};
  const int local = number(machine, "OMPI_COMM_WORLD_LOCAL_RANK", 0),
            together = std::max(1, number(machine, "OMPI_COMM_WORLD_LOCAL_SIZE", 1));
  engine.nodes = (engine.tasks + together - 1) / together;
  engine.node = engine.rank / together;
  engine.one_each = number(machine, "OMPI_MCA_rmaps_ppr_n_pernode", 0) == 1 ||
                    machine.variable("OMPI_MCA_rmaps_base_mapping_policy") == "ppr:1:node";
  const std::string host = engine.nodes == 1 ? "127.0.0.1" : mpirun_host(machine);
  if (host.empty() || !mpirun_has_tasks(machine)) return engine;
  std::string job = machine.variable("PMIX_NAMESPACE");
  if (job.empty()) job = machine.variable("OMPI_MCA_ess_base_jobid");
  engine.meet = {host, meeting_port("openmpi " + job)};
  engine.head = local == 0 && machine.is(host);
  return engine;
}

/// The text between brackets: "1-3,07".
std::vector<std::string> expand_ranges(std::string_view ranges, std::string_view list) {
  std::vector<std::string> result;
  while (!ranges.empty()) {
    const std::string_view range = ranges.substr(0, ranges.find(','));
    ranges.remove_prefix(std::min(ranges.size(), range.size() + 1));
    const size_t dash = range.find('-');
    const std::string_view first = range.substr(0, dash),
                           last = dash == std::string_view::npos ? first : range.substr(dash + 1);
    unsigned from = 0, to = 0;
    const auto whole = [](std::string_view text, unsigned& value) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      return error == std::errc() && end == text.data() + text.size();
    };
    constexpr unsigned kMost = 100000;
    check<ConfigError>(whole(first, from) && whole(last, to) && from <= to && to - from < kMost,
                       "'", list, "' is no list of nodes: '", range, "' is no range");
    for (unsigned n = from; n <= to; ++n) result.push_back(fmt::format("{:0{}}", n, first.size()));
  }
  return result;
}

/// One name with any number of brackets.
std::vector<std::string> expand_name(std::string_view name, std::string_view list) {
  const size_t open = name.find('['), close = name.find(']');
  if (open == std::string_view::npos) return {std::string(name)};
  check<ConfigError>(close != std::string_view::npos && open < close, "'", list,
                     "' is no list of nodes: brackets do not match");
  const auto tails = expand_name(name.substr(close + 1), list);
  std::vector<std::string> result;
  for (const std::string& number : expand_ranges(name.substr(open + 1, close - open - 1), list))
    for (const std::string& tail : tails)
      result.push_back(fmt::format("{}{}{}", name.substr(0, open), number, tail));
  return result;
}

}  // namespace

std::vector<std::string> expand_node_list(std::string_view list) {
  std::vector<std::string> result;
  size_t begin = 0;
  int depth = 0;
  for (size_t at = 0; at <= list.size(); ++at) {
    const char c = at < list.size() ? list[at] : ',';
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c != ',' || (depth > 0 && at < list.size())) continue;
    for (std::string& name : expand_name(list.substr(begin, at - begin), list)) {
      check<ConfigError>(!name.empty(), "'", list, "' is no list of nodes: a name is empty");
      result.push_back(std::move(name));
    }
    begin = at + 1;
  }
  return result;
}

std::optional<ClusterEngine> find_engine(const Machine& machine) {
  auto engine = slurm(machine);
  if (!engine) engine = openmpi(machine);
  if (!engine || engine->tasks == 1) return std::nullopt;
  check<ConfigError>(engine->rank < engine->tasks, engine->name, " says that this is task ",
                     engine->rank, " of ", engine->tasks);
  return engine;
}

}  // namespace argosy::launch
