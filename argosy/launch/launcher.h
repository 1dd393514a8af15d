#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "argosy/launch/descriptor.h"
#include "argosy/net/endpoint.h"

namespace argosy {

using Variables = std::map<std::string, std::string>;

/// The command line of fleetrun as it was typed.
struct LaunchFlags {
  std::optional<int> server_num = {}, worker_num = {};
  std::string servers = {}, workers = {};  // "host:port,host:port"; workers may come without ports
  std::string log_dir = "log";
  std::vector<std::string> env = {};  // "NAME=VALUE", for every process
  double grace = 10;                  // seconds
  std::vector<std::string> command = {};
};

/// What a job depends on besides its flags.
struct Machine {
  Variables environment;
  std::vector<std::string> hosts;  // names and addresses of this machine
};
Machine this_machine();

/// A job that has been checked. Every machine of it has the same lists and starts its own part.
struct Job {
  std::vector<Endpoint> servers, workers;  // a port of 0: any that is free
  std::vector<std::string> hosts_here;     // those of the lists that are this machine
  std::string log_dir;
  Variables env;
  std::vector<std::string> cards;  // CUDA_VISIBLE_DEVICES; the workers take turns
  std::chrono::milliseconds grace;
  std::vector<std::string> command;

  bool is_here(const Endpoint& endpoint) const;
};

/// Pure. Throws ConfigError naming the flag.
Job make_job(const LaunchFlags& flags, const Machine& machine);

/// The sockets of this machine's servers, listening; by server, closed ones elsewhere.
struct Reservation {
  Job job;  // with all ports known
  std::vector<Descriptor> sockets;
};
/// Binds, so that nobody can take a port between its choice and its use: the servers inherit the
/// sockets. Throws IoError naming the address that cannot be had.
Reservation reserve_ports(Job job);

enum class ProcessKind : uint8_t { server, worker };

/// One process to start.
struct Process {
  ProcessKind kind;
  int index;  // among all of its kind, here or elsewhere
  std::string log_file;
  Variables env;                   // on top of the launcher's own environment
  std::vector<std::string> unset;  // taken out of it before
  std::vector<std::string> argv;

  std::string name() const;  // "worker 1"
};

/// The descriptors that a process inherits: a server its socket (ARGOSY_LISTEN_FD), everyone the
/// pipe for reports (ARGOSY_PROGRESS_FD, lines of progress_view.h).
inline constexpr int kListenFd = 3, kProgressFd = 4;

/// This machine's part of the job. Pure. Throws ConfigError for --env of a variable that is set
/// here.
std::vector<Process> plan_processes(const Job& job);
/// What --dry-run prints.
std::string plan_text(const std::vector<Process>& processes);
/// "2 servers, 2 workers; logs in log/"
std::string banner(const Job& job);

/// How the end of a job is brought about and where it is shown.
struct Supervision {
  std::chrono::milliseconds grace;  // between asking a process to end and killing it
  bool workers_elsewhere = false;   // then servers end by themselves, they may be needed yet
  std::FILE* out = stdout;          // the first worker's log, and the progress of all
  std::FILE* errors = stderr;
};

/// Starts all, waits, and returns the exit code of the job; no process is left then, nor if the
/// launcher itself is killed. The first that fails ends the others and gives its code (128 +
/// signal). When the workers are done, servers have `grace` to end by themselves. SIGINT, SIGTERM,
/// SIGHUP and SIGQUIT are passed on; a second one kills. To be called from the main thread.
int supervise(const std::vector<Process>& processes, std::vector<Descriptor> sockets,
              const Supervision& supervision);

/// All of the above.
int run_job(Job job);

}  // namespace argosy
