#include "argosy/world/processes.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "argosy/world/proc_files.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

bool holds(const fs::path& process, const std::string& link) {
  std::error_code unreadable;
  for (fs::directory_iterator at(process / "fd", unreadable), end; !unreadable && at != end;
       at.increment(unreadable)) {
    std::error_code gone;
    if (fs::read_symlink(at->path(), gone) == link) return true;
  }
  return false;
}

}  // namespace

std::string command_of(pid_t pid, const std::string& proc) {
  constexpr size_t kLongest = 80;
  const fs::path process = fs::path(proc) / std::to_string(pid);
  std::string command = content_of(process / "cmdline");
  while (command.ends_with('\0')) command.pop_back();
  std::ranges::replace(command, '\0', ' ');
  if (command.empty()) command = content_of(process / "comm");
  while (command.ends_with('\n')) command.pop_back();
  if (command.size() > kLongest) command = command.substr(0, kLongest) + "...";
  return command;
}

std::vector<std::string> stat_of(pid_t pid, const std::string& proc) {
  const std::string line = content_of(fs::path(proc) / std::to_string(pid) / "stat");
  const size_t name_end = line.rfind(')');
  return name_end == std::string::npos ? std::vector<std::string>()
                                       : words_of(line.substr(name_end + 1));
}

bool is_stopped(pid_t pid, const std::string& proc) {
  const auto words = stat_of(pid, proc);
  return !words.empty() && (words[0] == "T" || words[0] == "t");
}

std::vector<pid_t> holders_of(const std::string& link, const std::string& proc) {
  std::vector<pid_t> found;
  std::error_code failed;
  for (fs::directory_iterator each(proc, failed), end; !failed && each != end;
       each.increment(failed)) {
    const auto pid = leading_number(each->path().filename().native());
    if (pid && holds(each->path(), link)) found.push_back(static_cast<pid_t>(*pid));
  }
  return found;
}

}  // namespace argosy
