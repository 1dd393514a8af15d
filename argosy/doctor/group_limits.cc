#include "argosy/doctor/group_limits.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "argosy/world/proc_files.h"

namespace argosy {
namespace {

enum class Version : uint8_t { v1, v2 };

bool in_list(const std::string& list, const std::string& name) {
  return ("," + list + ",").find("," + name + ",") != std::string::npos;
}

/// The path of this process' group as /proc/self/cgroup has it: "4:memory:/a/b", v2 "0::/a/b".
std::optional<std::string> group_path(const std::string& root, const std::string& controller,
                                      Version version) {
  std::istringstream lines(content_of(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (version == Version::v2 ? controllers.empty() : in_list(controllers, controller))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

struct Mount {
  std::string group;  // that is seen at `point`: not "/" in containers
  std::string point;
};

/// Parses /proc/self/mountinfo: "32 31 0:29 GROUP POINT options - cgroup2 device super_options".
std::optional<Mount> find_mount(const std::string& root, const std::string& controller,
                                Version version) {
  constexpr size_t kGroup = 3, kPoint = 4;
  std::istringstream lines(content_of(root + "/proc/self/mountinfo"));
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = words_of(line);
    const auto dash = std::ranges::find(words, "-");
    if (words.end() - dash < 4 || dash - words.begin() <= static_cast<ptrdiff_t>(kPoint)) continue;
    const std::string &type = dash[1], &options = dash[3];
    if (version == Version::v2 ? type == "cgroup2"
                               : type == "cgroup" && in_list(options, controller))
      return Mount{.group = words[kGroup], .point = words[kPoint]};
  }
  return std::nullopt;
}

/// The folders of this process' group and of those around it, the outermost last.
std::vector<std::string> folders_of(const std::string& root, const std::string& controller,
                                    Version version) {
  const auto mount = find_mount(root, controller, version);
  auto path = group_path(root, controller, version);
  if (!mount || !path) return {};
  if (mount->group != "/" && path->starts_with(mount->group))
    path = path->substr(mount->group.size());
  std::vector<std::string> folders;
  while (!path->empty() && *path != "/") {
    folders.push_back(root + mount->point + *path);
    path = path->substr(0, path->rfind('/'));
  }
  folders.push_back(root + mount->point);
  return folders;
}

std::optional<uint64_t> number_in(const std::string& path) {
  return leading_number(content_of(path));
}

/// Bytes of inactive page cache, which the kernel frees first.
uint64_t idle_cache(const std::string& folder, Version version) {
  const char* const name = version == Version::v2 ? "inactive_file" : "total_inactive_file";
  std::istringstream lines(content_of(folder + "/memory.stat"));
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() == 2 && words[0] == name) return leading_number(words[1]).value_or(0);
  }
  return 0;
}

template <class T>
void tighten(std::optional<T>& limit, T other) {
  limit = limit ? std::min(*limit, other) : other;
}

void read_memory(const std::string& root, Version version, GroupLimits& limits) {
  constexpr uint64_t kNoLimit = uint64_t{1} << 62;  // v1 writes a number for none
  const bool v2 = version == Version::v2;
  for (const std::string& folder : folders_of(root, "memory", version)) {
    const auto limit = number_in(folder + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
    const auto used = number_in(folder + (v2 ? "/memory.current" : "/memory.usage_in_bytes"));
    if (!limit || !used || *limit >= kNoLimit) continue;
    const uint64_t held = *used - std::min(*used, idle_cache(folder, version));
    tighten(limits.memory_left, *limit - std::min(*limit, held));
  }
}

void read_processes(const std::string& root, Version version, GroupLimits& limits) {
  for (const std::string& folder : folders_of(root, "pids", version)) {
    const auto limit = number_in(folder + "/pids.max"), used = number_in(folder + "/pids.current");
    if (limit && used) tighten(limits.processes_left, *limit - std::min(*limit, *used));
  }
}

void read_cores(const std::string& root, Version version, GroupLimits& limits) {
  for (const std::string& folder : folders_of(root, "cpu", version)) {
    std::vector<std::string> words;  // quota and period
    if (version == Version::v2)
      words = words_of(content_of(folder + "/cpu.max"));
    else
      words = words_of(content_of(folder + "/cpu.cfs_quota_us") + " " +
                       content_of(folder + "/cpu.cfs_period_us"));
    if (words.size() != 2) continue;
    const auto quota = leading_number(words[0]), period = leading_number(words[1]);
    if (quota && period && *period > 0)
      tighten(limits.cores, static_cast<double>(*quota) / static_cast<double>(*period));
  }
}

}  // namespace

GroupLimits read_group_limits(const std::string& root) {
  GroupLimits limits;
  for (const Version version : {Version::v1, Version::v2}) {
    read_memory(root, version, limits);
    read_processes(root, version, limits);
    read_cores(root, version, limits);
  }
  return limits;
}

}  // namespace argosy
