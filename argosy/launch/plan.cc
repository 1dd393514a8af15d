#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "argosy/base/error.h"
#include "argosy/base/shell_word.h"
#include "argosy/launch/launcher.h"

namespace argosy::launch {
namespace {

/// Endpoints of one kind; with `stage`, of that stage only.
std::string endpoints(const Job& job, ProcessKind kind, int stage = 0) {
  std::string text;
  for (const Member& member : job.members)
    if (member.kind == kind && (stage == 0 || member.stage == stage))
      text += (text.empty() ? "" : ",") + member.at.text();
  return text;
}

int last_stage(const Job& job) { return std::ranges::max(job.members, {}, &Member::stage).stage; }

/// By stage, separated by semicolons.
std::string all_heter_workers(const Job& job) {
  std::string text;
  for (int stage = 2; stage <= last_stage(job); ++stage)
    text += (text.empty() ? "" : ";") + endpoints(job, ProcessKind::heter_worker, stage);
  return text;
}

/// Those of a stage; the workers are the first one.
std::string of_stage(const Job& job, int stage) {
  return endpoints(job, stage == 1 ? ProcessKind::worker : ProcessKind::heter_worker, stage);
}

std::string stage_sizes(const Job& job) {
  std::vector<size_t> sizes(static_cast<size_t>(last_stage(job)));
  for (const Member& member : job.members)
    if (member.kind == ProcessKind::worker || member.kind == ProcessKind::heter_worker)
      ++sizes[static_cast<size_t>(member.stage - 1)];
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

void add_gloo(const Job& job, Variables& env) {
  env["PADDLE_WITH_GLOO"] = job.with_gloo;
  env["PADDLE_GLOO_RENDEZVOUS"] = "3";
  env["PADDLE_GLOO_FS_PATH"] = job.log_dir + "/gloo";
  if (job.http) env["PADDLE_GLOO_HTTP_ENDPOINT"] = job.http->text();
}

void add_stage(const Job& job, const Member& self, Variables& env) {
  const int stages = last_stage(job);
  env["STAGE_ID"] = std::to_string(self.stage);
  env["STAGE_NUM"] = std::to_string(stages);
  env["PADDLE_STAGE_TRAINERS_NUM"] = stage_sizes(job);
  env["HETER_DEVICE_TYPE"] = self.device.empty() ? "cpu" : self.device;
  env["PADDLE_PREVIOUS_HETER_TRAINER_IP_PORT_LIST"] =
      self.stage > 1 ? of_stage(job, self.stage - 1) : "";
  env["PADDLE_NEXT_HETER_TRAINER_IP_PORT_LIST"] =
      self.stage < stages ? of_stage(job, self.stage + 1) : "";
}

/// The names of the first releases, which had one port for all servers and no list of both.
void add_first_names(const Job& job, const Member& self, size_t index, Variables& env) {
  const bool server = self.kind == ProcessKind::server;
  env["PADDLE_TRAINING_ROLE"] = server ? "PSERVER" : "TRAINER";
  env["PADDLE_TRAINERS"] = env["TRAINERS"] = std::to_string(job.count(ProcessKind::worker));
  env["PADDLE_CURRENT_IP"] = self.at.host;
  if (!server) env["PADDLE_INIT_TRAINER_ID"] = std::to_string(index);
  const std::vector<Member> servers = job.of(ProcessKind::server);
  if (servers.empty()) return;  // remote ones are known after the meeting
  std::string hosts;
  for (const Member& each : servers) {
    if (each.at.port == 0 || each.at.port != servers.front().at.port) return;
    hosts += (hosts.empty() ? "" : ",") + each.at.host;
  }
  env["PADDLE_PSERVER_IPS"] = env["PADDLE_INIT_PSERVERS"] = hosts;
  env["PADDLE_PSERVER_PORT"] = env["PADDLE_INIT_PORT"] = std::to_string(servers.front().at.port);
}

/// Environment of a process in a job with servers.
Variables role_env(const Job& job, const Member& self, size_t index) {
  Variables env = {{"TRAINING_ROLE", names_of(self.kind).role},
                   {"PADDLE_PSERVERS_IP_PORT_LIST", endpoints(job, ProcessKind::server)},
                   {"PADDLE_TRAINER_ENDPOINTS", endpoints(job, ProcessKind::worker)},
                   {"PADDLE_TRAINERS_NUM", std::to_string(job.count(ProcessKind::worker))},
                   {"POD_IP", self.at.host},
                   {"PADDLE_PORT", std::to_string(self.at.port)}};
  add_gloo(job, env);
  if (job.count(ProcessKind::coordinator) > 0)
    env["PADDLE_COORDINATOR_ENDPOINTS"] = endpoints(job, ProcessKind::coordinator);
  if (job.mode == Mode::heterogeneous) {
    env["PADDLE_HETER_TRAINER_IP_PORT_LIST"] = endpoints(job, ProcessKind::heter_worker);
    env["PADDLE_ALL_HETER_TRAINER_IP_PORT_LIST"] = all_heter_workers(job);
  } else {
    env["PADDLE_HETER_TRAINER_IP_PORT_LIST"] = "";
  }
  if (self.kind == ProcessKind::worker || self.kind == ProcessKind::heter_worker) {
    if (self.kind == ProcessKind::worker) env["PADDLE_TRAINER_ID"] = std::to_string(index);
    const std::string card = self.cards.empty() ? "0" : self.cards.front();
    env["CUDA_VISIBLE_DEVICES"] = env["XPU_VISIBLE_DEVICES"] = card;
    env["FLAGS_selected_gpus"] = env["FLAGS_selected_xpus"] = "0";  // of those it sees
    if (job.mode == Mode::heterogeneous) add_stage(job, self, env);
  }
  if (self.kind == ProcessKind::server || self.kind == ProcessKind::worker)
    add_first_names(job, self, index, env);
  return env;
}

/// Environment of a rank in a job without servers.
Variables rank_env(const Job& job, const Member& self, size_t rank) {
  const auto on_node = [&](const Member& each) { return each.node == self.node; };
  const auto before = std::ranges::count_if(
      job.members.begin(), job.members.begin() + static_cast<std::ptrdiff_t>(rank), on_node);
  std::string world;
  for (const Member& each : job.members) {
    if (!world.empty()) world += ",";
    world += each.cards.empty() ? "0" : fmt::format("{}", fmt::join(each.cards, ":"));
  }
  const std::string cards = fmt::format("{}", fmt::join(self.cards, ","));
  const std::string number = std::to_string(rank), ranks = std::to_string(job.members.size());
  Variables env = {
      {"PADDLE_TRAINER_ID", number},
      {"PADDLE_CURRENT_ENDPOINT", self.at.text()},
      {"PADDLE_TRAINERS_NUM", ranks},
      {"PADDLE_TRAINER_ENDPOINTS", endpoints(job, ProcessKind::worker)},
      {"PADDLE_RANK_IN_NODE", std::to_string(before)},
      {"PADDLE_LOCAL_DEVICE_IDS", cards.empty() ? "0" : cards},
      {"PADDLE_WORLD_DEVICE_IDS", world},
      {"PADDLE_DISTRI_BACKEND", cards.empty() ? "gloo" : "nccl"},
      {"PADDLE_GLOBAL_RANK", number},
      {"PADDLE_GLOBAL_SIZE", ranks},
      {"PADDLE_LOCAL_RANK", std::to_string(before)},
      {"PADDLE_LOCAL_SIZE", std::to_string(std::ranges::count_if(job.members, on_node))},
      {"PADDLE_NNODES", std::to_string(job.nodes)},
      {"PADDLE_MASTER", job.master.value_or(job.members.front().at).text()}};
  if (!job.backend.empty() && job.backend != "auto") {
    env["PADDLE_DISTRI_BACKEND"] = job.backend;
    env["ARGOSY_BACKEND"] = job.backend == "gloo" ? "tcp" : job.backend;
  }
  if (!cards.empty()) env["FLAGS_selected_gpus"] = env["FLAGS_selected_accelerators"] = cards;
  add_gloo(job, env);
  return env;
}

/// Seconds that the others wait for a process that is started again.
constexpr int kAway = 120;

/// Left over from a job around this one, they would be taken for this one's.
const std::vector<std::string> kUnset = {"http_proxy",
                                         "https_proxy",
                                         "ARGOSY_LISTEN_FD",
                                         "ARGOSY_PROGRESS_FD",
                                         "ARGOSY_RESTART",
                                         "ARGOSY_RESUME",
                                         "ARGOSY_LAUNCH",
                                         "ARGOSY_AWAY",
                                         "ARGOSY_NOTES",
                                         "ARGOSY_DURABILITY",
                                         "ARGOSY_LOG_PATH",
                                         "TRAINING_ROLE",
                                         "PADDLE_TRAINING_ROLE",
                                         "PADDLE_TRAINER_ID",
                                         "PADDLE_PSERVERS_IP_PORT_LIST",
                                         "PADDLE_PSERVERS",
                                         "PADDLE_PSERVER_IPS",
                                         "PADDLE_INIT_PSERVERS",
                                         "PADDLE_CURRENT_ENDPOINT",
                                         "FLAGS_selected_gpus"};

Process make_process(const Job& job, size_t place, size_t index) {
  const Member& self = job.members[place];
  const bool ranks = job.mode == Mode::collective;
  Variables env = ranks ? rank_env(job, self, index) : role_env(job, self, index);
  env["PADDLE_JOB_ID"] = job.id;
  env["ARGOSY_PROGRESS_FD"] = std::to_string(kProgressFd);
  if (job.max_restart > 0) env["ARGOSY_AWAY"] = std::to_string(kAway);
  if (job.max_restart > 0 || job.resume)
    env["ARGOSY_NOTES"] = std::filesystem::absolute(job.log_dir).string();
  if (job.resume) env["ARGOSY_RESUME"] = "1";
  if (!job.durability.empty()) env["ARGOSY_DURABILITY"] = job.durability;
  if (!job.log_path.empty())
    env["ARGOSY_LOG_PATH"] = std::filesystem::absolute(job.log_path).string();
  if (ranks || self.kind != ProcessKind::worker)
    env["ARGOSY_LISTEN_FD"] = std::to_string(kListenFd);
  for (const auto& [name, value] : job.env)
    check<ConfigError>(env.emplace(name, value).second, "--env ", name, "=", value,
                       ": fleetrun sets this one itself");
  return {.kind = self.kind,
          .index = static_cast<int>(index),
          .log_file = fmt::format("{}/{}.{}", job.log_dir, names_of(self.kind).log, index),
          .env = std::move(env),
          .unset = kUnset,
          .argv = job.command,
          .member = static_cast<int>(place)};
}

}  // namespace

std::string Process::name() const { return fmt::format("{} {}", name_of(kind), index); }

std::vector<Process> plan_processes(const Job& job) {
  std::vector<Process> processes;
  std::map<ProcessKind, size_t> next;
  for (size_t place = 0; place < job.members.size(); ++place) {
    const size_t index = next[job.members[place].kind]++;
    if (job.is_here(job.members[place])) processes.push_back(make_process(job, place, index));
  }
  return processes;
}

std::string plan_text(const std::vector<Process>& processes) {
  std::string all;
  for (const Process& process : processes) {
    all += fmt::format("{} > {}\n", process.name(), process.log_file);
    for (const auto& [name, value] : process.env)
      all += fmt::format("  {}={}\n", name, shell_word(value));
    all += fmt::format("  {}\n", shell_line(process.argv));
  }
  return all;
}

}  // namespace argosy::launch
