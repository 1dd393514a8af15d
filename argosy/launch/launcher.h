#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/descriptor.h"
#include "argosy/launch/flags.h"
#include "argosy/net/endpoint.h"
#include "argosy/net/tolerance.h"

namespace argosy::launch {

using Variables = std::map<std::string, std::string>;

/// The inputs of a job besides its flags.
struct Machine {
  Variables environment = {};
  std::vector<std::string> hosts = {};  // names and addresses of this machine
  size_t process_limit = SIZE_MAX;      // that may still be started here
  /// Whether a name is one of this machine's; asked where `hosts` does not have it.
  std::function<bool(const std::string&)> resolves_here = {};
  /// CUDA devices; asked where --gpus names some.
  std::function<int()> count_devices = {};

  bool is(const std::string& host) const;
  /// "" if unset.
  std::string variable(const std::string& name) const;
};
Machine this_machine();
/// The devices that processes may use, "0,1": CUDA_VISIBLE_DEVICES, or those that
/// ARGOSY_EMULATED_DEVICES makes.
std::string visible_cards(const Machine& machine);

enum class Mode : uint8_t { collective, servers, heterogeneous };
enum class ProcessKind : uint8_t { server, worker, heter_worker, coordinator };

/// The name of a kind.
struct KindNames {
  const char* name;  // "server"
  const char* role;  // TRAINING_ROLE
  const char* log;   // "serverlog", before its number
};
const KindNames& names_of(ProcessKind kind);
inline const char* name_of(ProcessKind kind) { return names_of(kind).name; }

/// One process of a job, on any machine.
struct Member {
  ProcessKind kind = ProcessKind::worker;
  Endpoint at = {};                     // a port of 0: any that is free
  int node = 0;                         // the launcher that starts it
  int stage = 1;                        // of a heterogeneous job; workers are 1
  std::string device = {};              // of its stage: "cpu", "gpu"
  std::vector<std::string> cards = {};  // that it computes on

  bool operator==(const Member&) const = default;
};

/// How the launchers of a job meet before anything starts.
struct Meeting {
  Endpoint at = {};                       // of the launcher that takes the others in
  bool head = false;                      // that is this one
  std::vector<std::string> nodes = {};    // what each is called: "10.0.0.2", "node 1"
  bool offers = false;                    // addresses are found at the meeting, not listed before
  std::optional<int> rank = {};           // wanted, where ranks are not given by the lists
  std::chrono::milliseconds within = {};  // for all to come
};

/// A job that has been checked. Every machine of it has the same members and starts its own.
struct Job {
  Mode mode = Mode::collective;
  std::vector<Member> members = {};     // by kind; this node's only, before a meeting that offers
  std::vector<int> here = {0};          // nodes that this launcher is
  std::optional<Meeting> meeting = {};  // with several machines
  std::string id = "default";
  std::optional<Endpoint> master = {};  // --master, passed on to programs
  std::optional<Endpoint> http = {};    // of Gloo; a port of 0: any that is free
  int nodes = 1;
  std::string with_gloo = "0";
  std::string backend = {};  // of ranks, as in Paddle's flag; "": as it suits
  std::string log_dir = "log";
  Variables env = {};  // for all, by --env
  std::chrono::milliseconds grace = {};
  Tolerance tolerance = {};  // of silent processes and launchers
  int max_restart = 0;
  bool resume = false;
  std::string durability = {}, log_path = {};  // of servers' journals; "": as it suits
  std::vector<std::string> command = {};

  bool is_here(const Member& member) const;
  std::vector<Member> of(ProcessKind kind) const;
  size_t count(ProcessKind kind) const;
};

/// Pure. Throws ConfigError naming the flag.
Job make_job(const Flags& flags, const Machine& machine);

/// Workers with servers do not: their addresses are only names that differ.
bool listens(const Job& job, const Member& member);

/// This machine's listening sockets, by member; empty for members that have none.
struct Reservation {
  Job job;  // with the ports of this machine's members known
  std::vector<Descriptor> sockets;
};
/// Binds, so that no port is taken between its choice and its use: members that listen inherit the
/// sockets. Throws IoError naming an address that is taken, and by which process.
Reservation reserve_ports(Job job);

/// One process to start.
struct Process {
  ProcessKind kind = ProcessKind::worker;
  int index = 0;  // among all of its kind, here or elsewhere
  std::string log_file = {};
  Variables env = {};                   // on top of the launcher's own environment
  std::vector<std::string> unset = {};  // taken out of it before
  std::vector<std::string> argv = {};
  int member = -1;  // its place in Job::members

  std::string name() const;  // "worker 1"
};

/// The descriptors that a process inherits: one that listens its socket (ARGOSY_LISTEN_FD),
/// everyone the pipe for reports (ARGOSY_PROGRESS_FD, lines of progress_view.h).
inline constexpr int kListenFd = 3, kProgressFd = 4;

/// This machine's part of the job. Pure. Throws ConfigError for --env of a variable that is set
/// here.
std::vector<Process> plan_processes(const Job& job);
/// The output of --dry-run, for people or as JSON.
std::string plan_text(const std::vector<Process>& processes);
std::string plan_json(const Job& job, const std::vector<Process>& processes);

/// "2 servers, 1 of 2 workers": the members of a job, and how many of them start here.
std::string summary(const Job& job);
/// The flags as Paddle's launcher prints them.
std::string configuration_text(const Flags& flags);
/// The first process of each kind with its environment, as Paddle's launcher prints it.
std::string environment_text(const std::vector<Process>& processes, std::string_view time);

/// The argv to execute: Python runs .py files; a name is looked up beside fleetrun and in PATH; a
/// missing tools/NAME.py is the one shipped with argosy. Throws ConfigError.
std::vector<std::string> find_command(const std::vector<std::string>& command);

/// Makes the folder and checks that it can be written. Throws ConfigError.
void prepare_log_dir(const std::string& folder);

}  // namespace argosy::launch
