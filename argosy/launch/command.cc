#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "argosy/base/error.h"
#include "argosy/base/own_folder.h"
#include "argosy/launch/launcher.h"

namespace argosy::launch {
namespace {

namespace fs = std::filesystem;

bool is_executable(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

std::string in_path(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::string folders = path == nullptr ? "/usr/bin:/bin" : path;
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const fs::path found = fs::path(folders.substr(begin, end - begin)) / name;
    if (is_executable(found)) return found;
    begin = end + 1;
  }
  return "";
}

/// Looks for a script at its path, then among the tools shipped with argosy.
std::string find_script(const std::string& script) {
  std::error_code error;
  if (fs::is_regular_file(script, error)) {
    check<ConfigError>(::access(script.c_str(), R_OK) == 0, "the script ", script,
                       " cannot be read");
    return script;
  }
  const fs::path path(script);
  if (path.parent_path().filename() == "tools") {
    const fs::path shipped = shared_folder() / "tools" / path.filename();
    if (fs::is_regular_file(shipped, error)) return shipped;
  }
  fail<ConfigError>("there is no script ", script, ", expected a file, or one of argosy's tools: ",
                    "tools/trainer.py, tools/static_trainer.py, tools/static_ps_trainer.py");
}

/// Prefers the virtual environment this program is installed in to PATH.
std::string find_python() {
  const char* const given = std::getenv("ARGOSY_PYTHON");
  const fs::path beside = own_folder() / "python3";
  if (given == nullptr && is_executable(beside)) return beside;
  const std::string name = given == nullptr ? "python3" : given;
  std::string found = name.find('/') == std::string::npos ? in_path(name) : name;
  check<ConfigError>(is_executable(found), "there is no ", name, " to run a .py file");
  return found;
}

std::string find_program(const std::string& name) {
  std::error_code error;
  if (name.find('/') == std::string::npos) {
    const fs::path beside = own_folder() / name;
    std::string found = is_executable(beside) ? beside.string() : in_path(name);
    check<ConfigError>(!found.empty(), "there is no program ", name, " in PATH",
                       fs::exists(name, error) ? ", but here; expected ./" + name : "");
    return found;
  }
  check<ConfigError>(fs::exists(name, error), "there is no program ", name);
  check<ConfigError>(is_executable(name), name, " is not executable");
  return name;
}

}  // namespace

std::vector<std::string> find_command(const std::vector<std::string>& command) {
  check<ConfigError>(!command.empty(), "no command, expected a program behind the flags");
  std::vector<std::string> argv;
  if (command.front().ends_with(".py"))
    argv = {find_python(), "-u", find_script(command.front())};
  else
    argv = {find_program(command.front())};
  argv.insert(argv.end(), command.begin() + 1, command.end());
  return argv;
}

void prepare_log_dir(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  check<ConfigError>(!error, "cannot make the folder ", folder, ": ", error.message());
  check<ConfigError>(::access(folder.c_str(), W_OK | X_OK) == 0, "cannot write to the folder ",
                     folder);
}

}  // namespace argosy::launch
