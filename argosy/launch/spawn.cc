#include "argosy/launch/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "argosy/base/error.h"

namespace argosy::launch {
namespace {

Descriptor open_for(const std::string& path, int flags) {
  constexpr mode_t kMode = 0644;
  Descriptor file(::open(path.c_str(), flags | O_CLOEXEC, kMode));
  check<IoError>(file.get() >= 0, "cannot open ", path, ": ", std::strerror(errno));
  return file;
}

std::vector<std::string> environment_of(const Process& process) {
  std::vector<std::string> entries = own_environment();
  std::erase_if(entries, [&](const std::string& entry) {
    const std::string name = entry.substr(0, entry.find('='));
    return process.env.contains(name) ||
           std::ranges::find(process.unset, name) != process.unset.end();
  });
  for (const auto& [name, value] : process.env)
    entries.push_back(fmt::format("{}={}", name, value));
  return entries;
}

}  // namespace

std::unique_ptr<Child> spawn(const Process& process, const Inheritance& inheritance, Guard& guard) {
  const Descriptor input = open_for("/dev/null", O_RDONLY),
                   log = open_for(process.log_file, O_WRONLY | O_CREAT | O_APPEND |
                                                        (inheritance.goes_on ? 0 : O_TRUNC));
  Command command{.argv = process.argv,
                  .environment = environment_of(process),
                  .descriptors = {{input.get(), STDIN_FILENO},
                                  {log.get(), STDOUT_FILENO},
                                  {log.get(), STDERR_FILENO},
                                  {inheritance.progress, kProgressFd}}};
  if (inheritance.listening >= 0) command.descriptors.push_back({inheritance.listening, kListenFd});
  return std::make_unique<Child>(command, guard);
}

}  // namespace argosy::launch
