#pragma once

#include <string>
#include <vector>

#include "argosy/launch/status.h"

namespace argosy::launch {

/// A process silent for longer is not asked for its waits; seconds.
inline constexpr double kSilent = 3;
/// A launcher that has not written for longer has something wrong with it; seconds.
inline constexpr double kOld = 5;
/// Shorter waits are how a job runs; seconds.
inline constexpr double kLongWait = 1;

/// Why processes wait, one text per reason: the chain of waits from process to process, up to one
/// that works by itself, has ended, is silent, or has occurred in the chain before.
std::vector<std::string> wait_chains(const std::vector<StatusFile>& files);

/// The problems of a launcher, one text each.
std::vector<std::string> launcher_troubles(const std::vector<StatusFile>& files, double now);

/// All of it for people: a table of the processes, then chains and troubles. `now`: Unix time.
std::string status_text(const std::vector<StatusFile>& files, double now);
/// For programs: one JSON object, on one line.
std::string status_json(const std::vector<StatusFile>& files, double now);

}  // namespace argosy::launch
