#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "argosy/launch/launcher.h"
#include "argosy/launch/meeting.h"

namespace argosy::launch {

/// How the end of a job is brought about and where it is shown.
struct Supervision {
  std::chrono::milliseconds grace;  // between asking a process to end and killing it
  /// A process that has been stopped for longer, or that others have waited for, is spoken of.
  Env::Duration patience = Tolerance().patience;
  int max_restart = 0;      // how often each process is started again when it fails
  bool log_all = false;     // show all logs, each line with its process, not only worker 0's
  bool json = false;        // what is said, as lines of JSON
  std::FILE* out = stdout;  // logs, and the progress of all
  std::FILE* errors = stderr;
  std::string log_dir = {};        // where the status of all is kept; "": nowhere
  std::string host = {};           // what this launcher is called there
  std::string job = "default";     // --job_id
  Launchers* launchers = nullptr;  // of the other machines; null: there are none
  int parent = 0;  // the process that started this one, where its end ends the job; else 0
};

/// Starts all, waits, and returns the exit code of the job; no process is left then, nor if the
/// launcher itself is killed. The first that fails ends the others and gives its code (128 +
/// signal), also where it ran on another machine; one that is killed comes before those that fail
/// for want of it. When the workers of all machines are done, servers have a moment to end by
/// themselves and are asked to then. Who is stopped, or is left when others have ended, is named
/// again and again. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on; a second
/// one kills. `sockets` are those of Reservation. To be called from the main thread.
int supervise(const std::vector<Process>& processes, std::vector<Descriptor> sockets,
              const Supervision& supervision);

/// The exit code for bad input: a flag, a script, a folder.
inline constexpr int kNothingStarted = 2;

/// From flags to the end of the job: what `fleetrun` does. Throws ConfigError for what deserves
/// kNothingStarted.
int run(Flags flags, const Machine& machine);

}  // namespace argosy::launch
