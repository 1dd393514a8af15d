#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "argosy/launch/launcher.h"
#include "argosy/launch/meeting.h"

namespace argosy::launch {

/// How a job is ended and where it is shown.
struct Supervision {
  std::chrono::milliseconds grace;  // between asking a process to end and killing it
  /// A process that is stopped, or waited for, longer than this is reported.
  Env::Duration patience = Tolerance().patience;
  int max_restart = 0;      // how often each process is started again when it fails
  bool log_all = false;     // show all logs, each line with its process, not only worker 0's
  bool json = false;        // messages as lines of JSON
  std::FILE* out = stdout;  // logs, and the progress of all
  std::FILE* errors = stderr;
  std::string log_dir = {};        // for the status of all processes; "": none
  std::string host = {};           // what this launcher is called there
  std::string job = "default";     // --job_id
  Launchers* launchers = nullptr;  // of the other machines; null: there are none
  int parent = 0;  // the process that started this one, where its end ends the job; else 0
};

/// Starts all processes, waits, and returns the job's exit code; no process is left then, nor if
/// the launcher itself is killed. The first failure ends the others and gives the code (128 +
/// signal), also if it is on another machine; a killed process is blamed before those that fail for
/// want of it. Once the workers of all machines are done, servers may end on their own for a
/// moment, then are asked to. Processes that are stopped, or left when others have ended, are named
/// repeatedly. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on; a second one kills. `sockets` are
/// those of Reservation. To be called from the main thread.
int supervise(const std::vector<Process>& processes, std::vector<Descriptor> sockets,
              const Supervision& supervision);

/// The exit code for bad input: a flag, a script, a folder.
inline constexpr int kNothingStarted = 2;

/// The whole of `fleetrun`, from flags to the end of the job. Throws ConfigError for bad input,
/// which means kNothingStarted.
int run(Flags flags, const Machine& machine);

}  // namespace argosy::launch
