#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argosy/doctor/group_limits.h"
#include "argosy/doctor/short_child.h"
#include "argosy/net/port_owner.h"

namespace argosy {

/// Result of looking up a host name.
struct LookUp {
  enum class Outcome : uint8_t { found, unknown, slow };
  Outcome outcome = Outcome::slow;
  std::vector<std::string> addresses = {};  // as numbers, in the resolver's order
  std::string error = {};                   // of an unknown name
};

/// The folder of a path, or the nearest around it that exists.
struct FolderState {
  std::string existing;
  std::string problem = {};  // why it is not writable; "": it is
  bool read_only = false;    // the whole file system
  uint64_t free_bytes = 0;
  std::optional<uint64_t> free_inodes = {};  // absent: this file system does not count them
};

/// A command's location, or why it cannot be run.
struct FoundProgram {
  std::string path = {}, problem = {};
  bool exists = false;  // although it may not be something to run
};

/// The inputs of the checks of doctor.h: values, and functions for inputs that depend on the job.
/// Tests make up all of it. An absent optional: unknown, or without a limit.
struct Surroundings {
  std::map<std::string, std::string> environment =
      {};  // proxies and POD_IP; empty ones are left out
  std::string host_name = {};
  std::vector<std::string> addresses = {};  // of this machine's interfaces
  std::time_t now = 0;
  std::string kernel = {}, libc = {}, cpu_model = {};

  std::optional<std::pair<uint16_t, uint16_t>> outgoing_ports = {};  // first and last
  std::string reserved_ports = {};  // as in the sysctl: "6170-6180,8000"

  std::optional<uint64_t> open_files = {}, most_open_files = {};  // the soft and the hard limit
  std::optional<uint64_t> user_processes = {};                    // RLIMIT_NPROC
  std::optional<uint64_t> address_space = {};                     // RLIMIT_AS, bytes
  uint64_t memory = 0, memory_available = 0;                      // bytes
  std::optional<uint64_t> commit_left = {};  // bytes; only where overcommit is forbidden
  int cores = 0;                             // that this process may run on
  GroupLimits group = {};

  std::function<std::vector<LookUp>(const std::vector<std::string>& names, Deadline)> look_up = {};
  std::function<std::string()> try_loopback = {};  // why it does not work; "": it does
  /// Listens for a moment. An errno, 0: that worked.
  std::function<int(const std::string& address, uint16_t port)> try_to_listen = {};
  std::function<std::optional<PortOwner>(const Endpoint&)> port_owner = {};
  std::function<FolderState(const std::string& folder)> folder = {};
  std::function<FoundProgram(const std::string& name)> program = {};
  std::function<ShortChild(const std::vector<std::string>& command, Deadline)> run = {};
};

/// `root` is prefixed to /proc and /sys, for tests.
Surroundings this_surroundings(const std::string& root = "");

}  // namespace argosy
