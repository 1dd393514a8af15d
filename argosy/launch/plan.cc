#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/launch/launcher.h"

namespace argosy {
namespace {

std::string joined(const std::vector<Endpoint>& endpoints) {
  std::string text;
  for (const Endpoint& endpoint : endpoints) text += (text.empty() ? "" : ",") + endpoint.text();
  return text;
}

/// What both kinds are told.
Variables shared_env(const Job& job, const Endpoint& self) {
  return {{"PADDLE_PSERVERS_IP_PORT_LIST", joined(job.servers)},
          {"PADDLE_TRAINER_ENDPOINTS", joined(job.workers)},
          {"PADDLE_TRAINERS_NUM", std::to_string(job.workers.size())},
          {"POD_IP", self.host},
          {"PADDLE_PORT", std::to_string(self.port)},
          {"ARGOSY_PROGRESS_FD", std::to_string(kProgressFd)}};
}

Variables server_env(const Job& job, const Endpoint& self) {
  Variables env = shared_env(job, self);
  env["TRAINING_ROLE"] = "PSERVER";
  env["ARGOSY_LISTEN_FD"] = std::to_string(kListenFd);
  return env;
}

Variables worker_env(const Job& job, const Endpoint& self, size_t index) {
  Variables env = shared_env(job, self);
  env["TRAINING_ROLE"] = "TRAINER";
  env["PADDLE_TRAINER_ID"] = std::to_string(index);
  env["FLAGS_selected_gpus"] = "0";  // of those it sees
  if (!job.cards.empty()) env["CUDA_VISIBLE_DEVICES"] = job.cards[index % job.cards.size()];
  return env;
}

std::vector<std::string> argv_of(const std::vector<std::string>& command) {
  if (!command.front().ends_with(".py")) return command;
  std::vector<std::string> argv = {"python3", "-u"};
  argv.insert(argv.end(), command.begin(), command.end());
  return argv;
}

Process make_process(const Job& job, ProcessKind kind, size_t index, Variables env) {
  for (const auto& [name, value] : job.env)
    check<ConfigError>(env.emplace(name, value).second, "--env ", name, "=", value,
                       ": fleetrun sets this one itself");
  const char* log = kind == ProcessKind::server ? "serverlog" : "workerlog";
  return {.kind = kind,
          .index = static_cast<int>(index),
          .log_file = fmt::format("{}/{}.{}", job.log_dir, log, index),
          .env = std::move(env),
          .unset = {"http_proxy", "https_proxy", "ARGOSY_LISTEN_FD", "ARGOSY_PROGRESS_FD"},
          .argv = argv_of(job.command)};
}

/// As a shell would take it.
std::string quoted(const std::string& word) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-+=:,./@%[]").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

std::string counted(const Job& job, const std::vector<Endpoint>& all, const char* what) {
  const auto here = static_cast<size_t>(
      std::ranges::count_if(all, [&](const Endpoint& each) { return job.is_here(each); }));
  const std::string part = here == all.size() ? "" : fmt::format("{} of ", here);
  return fmt::format("{}{} {}{}", part, all.size(), what, all.size() == 1 ? "" : "s");
}

}  // namespace

std::string Process::name() const {
  return fmt::format("{} {}", kind == ProcessKind::server ? "server" : "worker", index);
}

std::vector<Process> plan_processes(const Job& job) {
  std::vector<Process> processes;
  for (size_t index = 0; index < job.servers.size(); ++index)
    if (job.is_here(job.servers[index]))
      processes.push_back(
          make_process(job, ProcessKind::server, index, server_env(job, job.servers[index])));
  for (size_t index = 0; index < job.workers.size(); ++index)
    if (job.is_here(job.workers[index]))
      processes.push_back(make_process(job, ProcessKind::worker, index,
                                       worker_env(job, job.workers[index], index)));
  return processes;
}

std::string plan_text(const std::vector<Process>& processes) {
  std::string all;
  for (const Process& process : processes) {
    all += fmt::format("{} > {}\n", process.name(), process.log_file);
    for (const auto& [name, value] : process.env)
      all += fmt::format("  {}={}\n", name, quoted(value));
    std::string line;
    for (const std::string& word : process.argv) line += (line.empty() ? "" : " ") + quoted(word);
    all += fmt::format("  {}\n", line);
  }
  return all;
}

std::string banner(const Job& job) {
  return fmt::format("{}, {}; logs in {}/", counted(job, job.servers, "server"),
                     counted(job, job.workers, "worker"), job.log_dir);
}

}  // namespace argosy
