#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "argosy/world/proc_files.h"
#include "argosy/world/processes.h"

/// What tests share that start processes and look for those that are left.
namespace argosy {

/// Waits for a condition; throws where it takes far longer than it should.
inline void await(const std::function<bool()>& condition, const std::string& what,
                  std::chrono::milliseconds within = std::chrono::seconds(60)) {
  const auto deadline = std::chrono::steady_clock::now() + within;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("waited too long for " + what);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

/// A process, found by the variables in its environment.
struct Found {
  pid_t pid;
  std::string command;  // as /proc has it: the first 15 characters of the program's name
};

/// Those that live and have all of these "NAME=VALUE"; those that only wait to be reaped have none.
inline std::vector<Found> processes_with(const std::vector<std::string>& variables) {
  std::vector<Found> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string environment = '\0' + content_of(entry.path() / "environ");
    bool all = true;
    for (const std::string& variable : variables)
      all = all && environment.find('\0' + variable + '\0') != std::string::npos;
    if (!all) continue;
    std::string command = content_of(entry.path() / "comm");
    if (!command.empty()) command.pop_back();
    found.push_back({std::stoi(name), std::move(command)});
  }
  return found;
}

/// "S" sleeps, "T" is stopped, "Z" only waits to be reaped; "": there is none.
inline std::string state_of(pid_t pid) {
  const auto words = stat_of(pid);
  return words.empty() ? "" : words[0];
}
inline bool is_gone(pid_t pid) { return state_of(pid).empty() || state_of(pid) == "Z"; }

/// -1: there is no such process.
inline pid_t parent_of(pid_t pid) {
  const auto words = stat_of(pid);
  return words.size() < 2 ? -1 : std::stoi(words[1]);
}

/// Those that live and that `parent` has started itself.
inline std::vector<Found> children_of(pid_t parent) {
  std::vector<Found> all = processes_with({});
  std::erase_if(all, [&](const Found& process) {
    return is_gone(process.pid) || parent_of(process.pid) != parent;
  });
  return all;
}

}  // namespace argosy
