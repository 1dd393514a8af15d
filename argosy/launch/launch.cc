#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>

#include "argosy/base/error.h"
#include "argosy/doctor/doctor.h"
#include "argosy/launch/cards.h"
#include "argosy/launch/status.h"
#include "argosy/launch/supervise.h"

namespace argosy::launch {
namespace {

/// "2026-01-31 06:09:36,185", as Python's loggers write it.
std::string time_now() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
  std::tm local{};
  localtime_r(&seconds, &local);
  return fmt::format("{:%Y-%m-%d %H:%M:%S},{:03}", local, since.count() % 1000);
}

/// Lists every member's address, for people and scripts to read later.
void write_endpoints(const Job& job) {
  std::ofstream out(job.log_dir + "/endpoints.log");
  const auto write = [&](const char* name, ProcessKind kind) {
    if (job.count(kind) == 0) return;
    out << name << ": \n";
    for (const Member& member : job.of(kind)) out << member.at.text() << "\n";
  };
  write("PADDLE_TRAINER_ENDPOINTS", ProcessKind::worker);
  write("PADDLE_PSERVERS_IP_PORT_LIST", ProcessKind::server);
  write("PADDLE_HETER_TRAINER_IP_PORT_LIST", ProcessKind::heter_worker);
  write("PADDLE_COORDINATOR_ENDPOINTS", ProcessKind::coordinator);
  if (!out.flush())
    fmt::print(stderr, "fleetrun: cannot write {}/endpoints.log; the job goes on\n", job.log_dir);
}

void dry_run(const Job& job, bool json) {
  const std::vector<Process> processes = plan_processes(job);
  if (json)
    fmt::print("{}", plan_json(job, processes));
  else
    fmt::print("{}\n{}", summary(job), plan_text(processes));
}

/// Reports problems of this machine; false if the job cannot work.
bool preflight(const Job& job) {
  Needs needs{.servers = job.count(ProcessKind::server),
              .workers = job.count(ProcessKind::worker),
              .folders = {job.log_dir},
              .command = job.command};
  for (const Member& member : job.members) {
    const std::string& host = member.at.host;
    if (!host.empty() && std::ranges::find(needs.hosts, host) == needs.hosts.end())
      needs.hosts.push_back(host);
    if (!job.is_here(member)) continue;
    ++needs.processes;
    if (!host.empty() && listens(job, member)) needs.listen.push_back(member.at);
  }
  Findings findings = examine(needs, this_surroundings());
  std::erase_if(findings,
                [](const Finding& finding) { return finding.severity == Finding::Severity::note; });
  if (!findings.empty()) fmt::print(stderr, "{}", text(findings));
  return !has_errors(findings);
}

}  // namespace

int run(Flags flags, const Machine& machine) {
  // If mpirun is killed, the processes it started on its own machine live on.
  const int parent = machine.variable("OMPI_COMM_WORLD_SIZE").empty() ? 0 : ::getppid();
  Job job = make_job(flags, machine);
  job.command = find_command(flags.command);
  if (flags.dry_run) {
    dry_run(job, flags.json);
    return 0;
  }
  if (cards_are_emulated(flags, machine)) {
    flags.gpus += " (emulated)";  // as the banner shows them
    fmt::print(stderr, "fleetrun: ARGOSY_EMULATED_DEVICES={}: devices are emulated on the CPU\n",
               machine.variable("ARGOSY_EMULATED_DEVICES"));
  }
  if (job.mode == Mode::collective && flags.gpus.empty())
    flags.gpus = visible_cards(machine);  // as the banner shows them
  plan_processes(job);                    // throws before anything is touched
  const bool talks = !flags.json && (flags.log_level == "INFO" || flags.log_level == "DEBUG");
  prepare_log_dir(job.log_dir);
  if (!preflight(job)) return kNothingStarted;
  if (talks) fmt::print(stderr, "{}", configuration_text(flags));
  Reservation reserved = reserve_ports(std::move(job));
  Launchers launchers(reserved, [&](const std::string& line) {
    if (talks) fmt::print(stderr, "fleetrun: {}\n", line);
  });
  const Job& ready = reserved.job;
  const std::vector<Process> processes = plan_processes(ready);
  write_endpoints(ready);
  if (talks) {
    fmt::print(stderr, "{}", environment_text(processes, time_now()));
    fmt::print(stderr, "fleetrun: {}\n", summary(ready));
  }
  const bool others = ready.meeting && ready.nodes > 1;
  return supervise(processes, std::move(reserved.sockets),
                   {.grace = ready.grace,
                    .patience = ready.tolerance.patience,
                    .max_restart = ready.max_restart,
                    .log_all = flags.log_all,
                    .json = flags.json,
                    .log_dir = ready.log_dir,
                    .host = host_name() + (others ? fmt::format(".{}", ready.here.front()) : ""),
                    .job = ready.id,
                    .launchers = others ? &launchers : nullptr,
                    .parent = parent});
}

}  // namespace argosy::launch
