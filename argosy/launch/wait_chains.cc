#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "argosy/launch/status_view.h"

namespace argosy::launch {
namespace {

using ByName = std::map<std::string, const ProcessRecord*>;

std::string name_of(const std::string& role, uint32_t index) {
  return fmt::format("{} {}", role, index);
}

std::string peers_text(const Wait& wait) {
  const bool one = wait.peers.listed.size() == 1 && !wait.peers.more;
  std::string numbers = format_numbers({wait.peers.listed});
  for (size_t at = 0; (at = numbers.find(',', at)) != std::string::npos; at += 2)
    numbers.replace(at, 1, ", ");
  return fmt::format("{}{} {}{}", wait.role, one ? "" : "s", numbers,
                     wait.peers.more ? " and more" : "");
}

/// How a chain ends if nothing more can be learned; absent: follow it.
std::optional<std::string> dead_end(const std::string& name, const ProcessRecord* process) {
  if (process == nullptr) return name + " is in no status file here";
  if (process->ended) return fmt::format("{} has ended: {}", name, process->ended->how);
  if (process->stopped)
    return fmt::format("{} is stopped: kill -CONT {} lets it go on", name, process->pid);
  if (!process->report)
    return fmt::format("{} has not reported since it was started {:.1f} s ago", name, process->up);
  if (process->report->seconds > kSilent)
    return fmt::format("{} has not reported for {:.1f} s", name, process->report->seconds);
  return std::nullopt;
}

/// The longest wait that holds up worker `on_behalf`, or the process itself.
const Wait* wait_of(const ProcessStatus& status, std::optional<uint32_t> on_behalf) {
  if (needs_nobody(status.doing)) return nullptr;
  const Wait* longest = nullptr;
  for (const Wait& wait : status.waits) {
    const bool concerns = !on_behalf || wait.held.may_have(*on_behalf);
    if (concerns && (longest == nullptr || wait.seconds > longest->seconds)) longest = &wait;
  }
  return longest;
}

/// The less a process waits itself, the more it explains.
int explains(const std::string& name, const ProcessRecord* process) {
  if (process != nullptr && process->ended) return 0;
  if (dead_end(name, process)) return 1;
  return needs_nobody(process->report->status.doing) ? 2 : 3;
}

std::string next_of(const Wait& wait, const ByName& processes, const std::set<std::string>& seen) {
  std::string next;
  int best = 0;
  for (const uint32_t peer : wait.peers.listed) {
    const std::string name = name_of(wait.role, peer);
    const auto found = processes.find(name);
    constexpr int kSeen = 4;
    const int rank = seen.contains(name)
                         ? kSeen
                         : explains(name, found == processes.end() ? nullptr : found->second);
    if (next.empty() || rank < best) {
      next = name;
      best = rank;
    }
  }
  return next;
}

struct Chain {
  std::string first;  // the process
  double seconds = 0;
  std::vector<std::string> links = {};
  std::set<std::string> names = {};
};

Chain follow(const std::string& first, const ByName& processes) {
  Chain chain{.first = first};
  std::string name = first;
  std::optional<uint32_t> on_behalf;
  while (true) {
    if (!chain.names.insert(name).second) {
      chain.links.push_back(fmt::format("that is a circle: {} waits for itself", name));
      return chain;
    }
    const auto found = processes.find(name);
    const ProcessRecord* const process = found == processes.end() ? nullptr : found->second;
    if (const auto end = dead_end(name, process)) {
      chain.links.push_back(*end);
      return chain;
    }
    const ProcessStatus& status = process->report->status;
    const Wait* const wait = wait_of(status, on_behalf);
    if (wait == nullptr) {
      chain.links.push_back(status.doing == Doing::serving
                                ? fmt::format("{} waits for nobody", name)
                                : fmt::format("{} {} for {:.1f} s{}", name, phrase(status.doing),
                                              status.since,
                                              status.note.empty() ? "" : " (" + status.note + ")"));
      return chain;
    }
    if (chain.links.empty()) chain.seconds = wait->seconds;
    chain.links.push_back(fmt::format("{} waits {:.1f} s for {} ({})", name, wait->seconds,
                                      peers_text(*wait), wait->what));
    // A server holds back the answers of some; ranks wait for each other.
    on_behalf = wait->role == "server" ? std::optional(status.index) : std::nullopt;
    name = next_of(*wait, processes, chain.names);
    if (name.empty()) return chain;
  }
}

bool waits_long(const ProcessRecord& process) {
  if (dead_end(process.name, &process)) return false;
  const Wait* const wait = wait_of(process.report->status, std::nullopt);
  return wait != nullptr && wait->seconds >= kLongWait;
}

/// Chains that differ in their first process only are one, told of the one that waits longest.
std::vector<std::string> merged(std::vector<Chain> chains) {
  std::ranges::stable_sort(chains, std::ranges::greater{}, &Chain::seconds);
  std::vector<std::string> texts;
  std::set<std::vector<std::string>> told;
  for (const Chain& chain : chains) {
    const std::vector<std::string> tail(chain.links.begin() + 1, chain.links.end());
    if (!told.insert(tail).second) continue;
    std::string text = fmt::format("{}", fmt::join(chain.links, "; "));
    std::vector<std::string> others;
    for (const Chain& other : chains)
      if (other.first != chain.first &&
          std::equal(other.links.begin() + 1, other.links.end(), tail.begin(), tail.end()))
        others.push_back(other.first);
    if (!others.empty()) text += fmt::format("; likewise {}", fmt::join(others, ", "));
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace

std::vector<std::string> wait_chains(const std::vector<StatusFile>& files) {
  ByName processes;
  for (const StatusFile& file : files)
    for (const ProcessRecord& process : file.processes) processes[process.name] = &process;
  std::vector<Chain> chains;
  std::set<std::string> told;
  // Workers first: a server somebody waits for then becomes part of their chain.
  for (const std::string_view role : {"worker ", "server "}) {
    for (const auto& [name, process] : processes) {
      if (!name.starts_with(role) || told.contains(name) || !waits_long(*process)) continue;
      chains.push_back(follow(name, processes));
    }
    for (const Chain& chain : chains) told.insert(chain.names.begin(), chain.names.end());
  }
  return merged(std::move(chains));
}

}  // namespace argosy::launch
