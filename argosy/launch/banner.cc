#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "argosy/base/json.h"
#include "argosy/launch/launcher.h"

namespace argosy::launch {
namespace {

// The table as Paddle's launcher draws it.
constexpr size_t kNameColumn = 40, kValueColumn = 45;

std::string counted(const Job& job, ProcessKind kind, const char* what) {
  const std::vector<Member> all = job.of(kind);
  if (all.empty()) return "";
  const auto here = static_cast<size_t>(
      std::ranges::count_if(all, [&](const Member& each) { return job.is_here(each); }));
  const std::string part = here == all.size() ? "" : fmt::format("{} of ", here);
  return fmt::format("{}{} {}{}", part, all.size(), what, all.size() == 1 ? "" : "s");
}

std::string or_none(const std::optional<int>& number) {
  return number ? std::to_string(*number) : "None";
}

/// "['-m', 'config.yaml']"
std::string python_list(std::span<const std::string> words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "'" : ", '") + word + "'";
  return "[" + text + "]";
}

/// The end of a long value says more than its beginning.
std::string shortened(const std::string& value) {
  constexpr std::string_view kDots = "... ";
  if (value.size() < kValueColumn) return value;
  return std::string(kDots) + value.substr(value.size() - (kValueColumn - kDots.size()));
}

std::string table(const Variables& variables) {
  size_t names = kNameColumn;
  for (const auto& [name, value] : variables) names = std::max(names, name.size());
  const std::string line(names + 2 + kValueColumn, '-'), border(line.size(), '=');
  std::string text =
      border + "\n" + fmt::format("{:^{}}  {}\n", "Distributed Envs", names, "Value") + line + "\n";
  for (const auto& [name, value] : variables)
    text += fmt::format("{:<{}}  {}\n", name, names, shortened(value));
  return text + border + "\n";
}

std::string json_object(const Variables& variables) {
  std::string out;
  for (const auto& [name, value] : variables)
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", json_string(name), json_string(value));
  return "{" + out + "}";
}

}  // namespace

std::string summary(const Job& job) {
  std::vector<std::string> parts;
  for (const ProcessKind kind : {ProcessKind::server, ProcessKind::worker,
                                 ProcessKind::heter_worker, ProcessKind::coordinator})
    if (std::string part = counted(job, kind, name_of(kind)); !part.empty())
      parts.push_back(std::move(part));
  return fmt::format("{}; logs in {}/", fmt::join(parts, ", "), job.log_dir);
}

std::string configuration_text(const Flags& flags) {
  const Flags defaults;
  const std::span<const std::string> command(flags.command);
  Variables shown = {
      {"gpus", flags.gpus.empty() ? "None" : flags.gpus},
      {"ips", flags.ips.empty() ? "127.0.0.1" : flags.ips},
      {"log_dir", flags.log_dir},
      {"server_num", or_none(flags.server_num)},
      {"servers", flags.servers},
      {"training_script", command.empty() ? "" : command.front()},
      {"training_script_args", python_list(command.empty() ? command : command.subspan(1))},
      {"worker_num", or_none(flags.worker_num)},
      {"workers", flags.workers}};
  const auto add = [&](const char* name, const auto& value, const auto& otherwise) {
    if (value != otherwise) shown[name] = fmt::format("{}", value);
  };
  const auto add_number = [&](const char* name, const std::optional<int>& value) {
    if (value) shown[name] = std::to_string(*value);
  };
  add("heter_worker_num", flags.heter_worker_num, defaults.heter_worker_num);
  add("heter_workers", flags.heter_workers, defaults.heter_workers);
  add("heter_devices", flags.heter_devices, defaults.heter_devices);
  add("coordinators", flags.coordinators, defaults.coordinators);
  add("run_mode", flags.run_mode, defaults.run_mode);
  add("master", flags.master, defaults.master);
  add("backend", flags.backend, defaults.backend);
  add("job_id", flags.job_id, defaults.job_id);
  add("log_level", flags.log_level, defaults.log_level);
  add("max_restart", flags.max_restart, defaults.max_restart);
  add("resume", flags.resume, defaults.resume);
  add("durability", flags.durability, defaults.durability);
  add("log_path", flags.log_path, defaults.log_path);
  add("timeout", flags.timeout, defaults.timeout);
  add("grace", flags.grace, defaults.grace);
  add_number("nproc_per_node", flags.nproc_per_node);
  add_number("coordinator_num", flags.coordinator_num);
  add_number("http_port", flags.http_port);
  add_number("start_port", flags.start_port);
  add_number("nnodes", flags.nnodes);
  add_number("rank", flags.rank);
  if (!flags.env.empty()) shown["env"] = python_list(flags.env);
  std::string text = "-----------  Configuration Arguments -----------\n";
  for (const auto& [name, value] : shown)
    text += fmt::format("{}:{}{}\n", name, value.empty() ? "" : " ", value);
  return text + "------------------------------------------------\n";
}

std::string environment_text(const std::vector<Process>& processes, std::string_view time) {
  std::map<ProcessKind, std::vector<const Process*>> kinds;
  for (const Process& process : processes) kinds[process.kind].push_back(&process);
  std::string text;
  for (const auto& [kind, members] : kinds) {
    const bool ranks = !members.front()->env.contains("TRAINING_ROLE");
    text += fmt::format(
        "INFO {} fleetrun] Local {}start {} processes. First process distributed environment info "
        "(Only For Debug):\n{}",
        time, ranks ? "" : std::string(name_of(kind)) + " ", members.size(),
        table(members.front()->env));
  }
  return text;
}

std::string plan_json(const Job& job, const std::vector<Process>& processes) {
  constexpr std::array kModes = {"collective", "ps", "ps-heter"};
  std::string all;
  for (const Process& process : processes)
    all += fmt::format(
        "{}    {{\"kind\": \"{}\", \"index\": {}, \"log\": {}, \"argv\": {},\n     \"env\": {}}}",
        all.empty() ? "" : ",\n", name_of(process.kind), process.index,
        json_string(process.log_file), json_list(process.argv), json_object(process.env));
  return fmt::format("{{\"mode\": \"{}\", \"job\": {}, \"processes\": [\n{}]}}\n",
                     kModes[static_cast<size_t>(job.mode)], json_string(job.id), all);
}

}  // namespace argosy::launch
