#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "argosy/doctor/surroundings.h"
#include "argosy/net/endpoint.h"

namespace argosy {

/// Something that will hurt a job on this machine.
struct Finding {
  enum class Severity : uint8_t { error, warning, note };  // error: the job cannot work
  Severity severity;
  std::string what, why;
  std::string fix = {};  // a command line, or ""
  auto operator<=>(const Finding&) const = default;
};
using Findings = std::vector<Finding>;

/// A job's requirements on this machine; everything may be left empty.
struct Needs {
  std::vector<Endpoint> listen = {};      // addresses that local servers will bind; port 0: any
  std::vector<std::string> hosts = {};    // all machines of the job, names or addresses
  size_t processes = 0;                   // to be started here
  size_t servers = 0, workers = 0;        // of the whole job
  std::vector<std::string> folders = {};  // written to: logs, models
  std::vector<std::string> command = {};  // what is run
  std::chrono::milliseconds budget{
      180};  // for everything together; checks that are not done then are cut off
};

/// Looks at the machine, the worst first. Takes a few ms unless a name look-up hangs (cut off after
/// 100 ms) or `command` is a training of argosy: that is built and its data are looked at, in a
/// child, as long as the budget lasts. To be called while the process has one thread.
Findings examine(const Needs& needs, const Surroundings& here);

bool has_errors(const Findings& findings);

/// Whether a host of a job's lists is this machine: by name, by address, or because POD_IP says so.
bool is_here(const std::string& host, const Surroundings& here);

/// A line about the machine.
struct Fact {
  std::string name, value;
};
std::vector<Fact> facts(const Surroundings& here);

/// For people.
std::string text(const std::vector<Fact>& facts);
std::string text(const Findings& findings);
/// {"machine": {"cpu": ...}, "findings": [{"severity": "error", "what": ..., "why": ..., "fix":
/// ...}]}
std::string json(const std::vector<Fact>& facts, const Findings& findings);

}  // namespace argosy
