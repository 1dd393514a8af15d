#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "argosy/base/shell_word.h"
#include "argosy/doctor/doctor_checks.h"
#include "argosy/world/proc_files.h"

namespace argosy {
namespace {

using Severity = Finding::Severity;

constexpr uint64_t kMebibyte = uint64_t{1} << 20, kGibibyte = uint64_t{1} << 30;

size_t processes_of(const Needs& needs) { return std::max<size_t>(needs.processes, 1); }

Findings check_open_files(const Needs& needs, const Surroundings& here) {
  // A process has its own files, and a connection to each other one that may be made anew while the
  // old one winds down. The launcher has a log, a pipe and what it watches of each.
  constexpr uint64_t kOwn = 64, kEach = 2, kWatched = 4;
  const uint64_t wanted = kOwn + std::max(kEach * (needs.servers + needs.workers),
                                          kWatched * uint64_t{processes_of(needs)});
  if (!here.open_files || *here.open_files >= wanted) return {};
  const bool mine = !here.most_open_files || *here.most_open_files >= wanted;
  return {{.severity = Severity::error,
           .what = fmt::format("a process may open {} files, the job needs {}", *here.open_files,
                               wanted),
           .why = "connections are files: servers will refuse workers, with 'Too many open files'",
           .fix = mine ? fmt::format("ulimit -n {}", wanted)
                       : fmt::format("sudo prlimit --pid $$ --nofile={0}:{0}", wanted)}};
}

Findings check_processes(const Needs& needs, const Surroundings& here) {
  constexpr uint64_t kOwnThreads = 8;  // of a process, besides those that compute
  const uint64_t fewest = processes_of(needs),
                 wanted = fewest * (kOwnThreads + static_cast<uint64_t>(std::max(here.cores, 1)));
  const auto check = [&](uint64_t left, const char* whose, const std::string& fix) -> Findings {
    if (left >= wanted) return {};
    return {{.severity = left < fewest ? Severity::error : Severity::warning,
             .what = fmt::format("{} {} processes and threads, the job may have {}", whose, left,
                                 wanted),
             .why = "starting a process or a thread fails, with 'Resource temporarily unavailable'",
             .fix = fix}};
  };
  Findings all;
  if (here.user_processes)
    all = check(*here.user_processes, "this user may have",
                fmt::format("sudo prlimit --pid $$ --nproc={0}:{0}", wanted));
  if (!here.group.processes_left) return all;
  const Findings group = check(*here.group.processes_left, "the control group has room for", "");
  all.insert(all.end(), group.begin(), group.end());
  return all;
}

Findings check_memory(const Needs& needs, const Surroundings& here) {
  // A small model takes that much; less than `kFewest` not even starts.
  constexpr uint64_t kWanted = 128 * kMebibyte, kFewest = 16 * kMebibyte;
  constexpr uint64_t kAddresses = 512 * kMebibyte;  // that are asked for, and mostly not used
  const uint64_t processes = processes_of(needs);
  const auto plural = fmt::format("{} process{}", processes, processes == 1 ? "" : "es");
  Findings all;
  const uint64_t group = here.group.memory_left.value_or(here.memory_available),
                 left = std::min(here.memory_available, group);
  if (left < processes * kWanted)
    all.push_back(
        {.severity = left < processes * kFewest ? Severity::error : Severity::warning,
         .what = fmt::format("{} of memory left{}, for {}", bytes_text(left),
                             group < here.memory_available ? " to the control group" : "", plural),
         .why = fmt::format("the kernel kills a process when there is no more; a small "
                            "model takes {} in each",
                            bytes_text(kWanted)),
         .fix = "ps -eo rss,pid,args --sort=-rss | head"});
  if (here.commit_left && *here.commit_left < processes * kAddresses)
    all.push_back({.severity = Severity::warning,
                   .what = fmt::format("overcommit is forbidden and {} are left, for {}",
                                       bytes_text(*here.commit_left), plural),
                   .why = "memory that is asked for counts even where it is not used: allocations "
                          "fail early",
                   .fix = "sudo sysctl -w vm.overcommit_memory=0"});
  if (here.address_space && *here.address_space < kAddresses)
    all.push_back(
        {.severity = Severity::warning,
         .what = fmt::format("a process may have {} of addresses", bytes_text(*here.address_space)),
         .why = "allocations fail far below the memory of the machine",
         .fix = "ulimit -v unlimited"});
  return all;
}

Findings check_shared_memory(const Surroundings& here) {
  constexpr uint64_t kWanted = 64 * kMebibyte;
  const std::string path = "/dev/shm";
  const FolderState state = here.folder(path);
  const std::string why =
      "argosy does not need it; programs that share memory between processes, such as loaders of "
      "Python, die of a bus error";
  if (state.existing != path || !state.problem.empty() || state.read_only)
    return {{.severity = Severity::note,
             .what = path + (state.existing != path ? " is missing" : " cannot be written to"),
             .why = why,
             .fix = "sudo mount -t tmpfs -o mode=1777 tmpfs /dev/shm"}};
  if (state.free_bytes >= kWanted) return {};
  return {{.severity = Severity::note,
           .what = fmt::format("{} has {} left", path, bytes_text(state.free_bytes)),
           .why = why,
           .fix = "sudo mount -o remount,size=1g /dev/shm"}};
}

Finding not_writable(const std::string& folder, const FolderState& state) {
  Finding finding{
      .severity = Severity::error,
      .what = fmt::format("{} cannot be written to: {}: {}", folder, state.existing, state.problem),
      .why = "logs and models go there",
      .fix = "ls -ld " + shell_word(state.existing)};
  if (!state.read_only) return finding;
  finding.what = fmt::format("{} cannot be written to: the file system of {} is read-only", folder,
                             state.existing);
  finding.fix = fmt::format("findmnt -T {}", shell_word(state.existing));
  return finding;
}

Findings check_folder(const std::string& folder, const Surroundings& here) {
  constexpr uint64_t kWanted = kGibibyte, kFewest = 16 * kMebibyte;
  constexpr uint64_t kInodes = 1000, kFewestInodes = 10;
  const FolderState state = here.folder(folder);
  if (!state.problem.empty() || state.read_only) return {not_writable(folder, state)};
  Findings all;
  if (state.free_bytes < kWanted)
    all.push_back(
        {.severity = state.free_bytes < kFewest ? Severity::error : Severity::warning,
         .what = fmt::format("the disk of {} has {} left", folder, bytes_text(state.free_bytes)),
         .why = "a save that does not fit fails, and the epochs since the last one are lost",
         .fix = "df -h " + shell_word(state.existing)});
  if (state.free_inodes && *state.free_inodes < kInodes)
    all.push_back(
        {.severity = *state.free_inodes < kFewestInodes ? Severity::error : Severity::warning,
         .what =
             fmt::format("the disk of {} has room for {} more files", folder, *state.free_inodes),
         .why = "logs and saves fail with 'No space left on device' though space is left",
         .fix = "df -i " + shell_word(state.existing)});
  return all;
}

Findings check_cores(const Needs& needs, const Surroundings& here) {
  const double cores = std::min(static_cast<double>(here.cores),
                                here.group.cores.value_or(static_cast<double>(here.cores)));
  if (cores <= 0 || static_cast<double>(needs.processes) <= cores) return {};
  return {{.severity = Severity::note,
           .what = fmt::format("{} processes on {:.3g} cores", needs.processes, cores),
           .why = "they take turns: more workers are not faster here"}};
}

/// "6.1.0-18-amd64" is not older than 5.9.
bool is_older(const std::string& kernel, uint64_t major, uint64_t minor) {
  const auto first = leading_number(kernel);
  const size_t dot = kernel.find('.');
  if (!first || dot == std::string::npos) return false;
  const uint64_t second = leading_number(kernel.substr(dot + 1)).value_or(0);
  return *first < major || (*first == major && second < minor);
}

Findings check_kernel(const Surroundings& here) {
  struct Wish {
    uint64_t major, minor;
    const char *call, *why;
  };
  constexpr Wish kWishes[] = {
      {5, 3, "pidfd_open", "the end of a process is noticed later"},
      {5, 9, "close_range", "processes inherit files that their launcher has open"}};
  for (const Wish& wish : kWishes)
    if (is_older(here.kernel, wish.major, wish.minor))
      return {{.severity = Severity::warning,
               .what = fmt::format("kernel {} has no {}, which came with {}.{}", here.kernel,
                                   wish.call, wish.major, wish.minor),
               .why = wish.why}};
  return {};
}

Findings check_clock(const Surroundings& here) {
  constexpr std::time_t k2024 = 1704067200;
  if (here.now >= k2024) return {};
  return {{.severity = Severity::warning,
           .what = "the clock is before 2024",
           .why = "times in logs are wrong, certificates do not count as valid, and resuming takes "
                  "the newest save by its time",
           .fix = "sudo timedatectl set-ntp true"}};
}

}  // namespace

Findings check_machine(const Needs& needs, const Surroundings& here) {
  Findings all;
  const auto add = [&](const Findings& some) { all.insert(all.end(), some.begin(), some.end()); };
  add(check_open_files(needs, here));
  add(check_processes(needs, here));
  add(check_memory(needs, here));
  add(check_shared_memory(here));
  for (const std::string& folder : needs.folders) add(check_folder(folder, here));
  add(check_cores(needs, here));
  add(check_kernel(here));
  add(check_clock(here));
  return all;
}

}  // namespace argosy
