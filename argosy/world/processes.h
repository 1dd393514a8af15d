#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

/// Other processes of this machine, as far as this one may look at them. `proc`: another folder
/// than /proc, for tests.
namespace argosy {

/// Its command line, cut where it is long; "": there is none.
std::string command_of(pid_t pid, const std::string& proc = "/proc");

/// Words of /proc/PID/stat behind the name: the state is the first, the parent the second. None:
/// there is no such process.
std::vector<std::string> stat_of(pid_t pid, const std::string& proc = "/proc");

/// Stopped by SIGSTOP or a debugger.
bool is_stopped(pid_t pid, const std::string& proc = "/proc");

/// Processes that have this open: "pipe:[4711]", "socket:[4711]".
std::vector<pid_t> holders_of(const std::string& link, const std::string& proc = "/proc");

}  // namespace argosy
