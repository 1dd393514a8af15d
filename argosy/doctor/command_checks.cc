#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "argosy/base/shell_word.h"
#include "argosy/doctor/doctor_checks.h"

namespace argosy {
namespace {

using Severity = Finding::Severity;

Findings check_script(const std::string& path, const Surroundings& here) {
  const FoundProgram script =
      here.program(path.find('/') == std::string::npos ? "./" + path : path);
  if (!script.exists)
    return {{.severity = Severity::error,
             .what = script.problem,
             .why = "it is what the job runs",
             .fix = "ls -l " + shell_word(path)}};
  const FoundProgram python = here.program("python3");
  if (python.problem.empty()) return {};
  return {{.severity = Severity::error,
           .what = python.problem,
           .why = path + " is run by python3",
           .fix = "sudo apt-get install python3"}};
}

Findings check_program(const std::string& name, const Surroundings& here) {
  const FoundProgram found = here.program(name);
  if (found.problem.empty()) return {};
  Finding finding{
      .severity = Severity::error, .what = found.problem, .why = "it is what the job runs"};
  if (found.exists)
    finding.fix = "chmod +x " + shell_word(found.path);
  else if (name.find('/') == std::string::npos && here.program("./" + name).exists)
    finding.fix = shell_word("./" + name);
  return {finding};
}

/// The training command with --check, for all workers. Ranks without servers need no file each.
std::vector<std::string> check_of(const Needs& needs) {
  std::vector<std::string> command = needs.command;
  std::vector<std::string> flags = {"--check"};
  if (needs.servers > 0 && needs.workers > 0)
    flags.push_back(fmt::format("--workers={}", needs.workers));
  command.insert(command.begin() + 2, flags.begin(), flags.end());
  return command;
}

/// The error line: ours if there is one, else the first.
std::string complaint(const ShortChild& child) {
  constexpr std::string_view kOurs = "argosy: ";
  std::istringstream lines(child.output);
  std::string first;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kOurs)) return line.substr(kOurs.size());
    if (first.empty()) first = line;
  }
  return first.empty() ? child.ending->text() : first;
}

Findings check_training(const Needs& needs, const Surroundings& here, Deadline deadline) {
  const std::vector<std::string> command = check_of(needs);
  const ShortChild child = here.run(command, deadline);
  if (!child.ending)
    return {{.severity = Severity::note,
             .what = "the check of the model and its data did not finish within the time",
             .why = "so mistakes there may yet show when the job runs",
             .fix = shell_line(command)}};
  if (child.ending->ok()) return {};
  return {{.severity = Severity::error,
           .what = complaint(child),
           .why = "every worker would stop with this",
           .fix = shell_line(command)}};
}

}  // namespace

bool is_argosy(const std::vector<std::string>& command) {
  if (command.empty()) return false;
  const std::string& program = command.front();
  return program.substr(program.rfind('/') + 1) == "argosy";
}

Findings check_command(const Needs& needs, const Surroundings& here, Deadline deadline) {
  if (needs.command.empty()) return {};
  const std::string& program = needs.command.front();
  if (program.ends_with(".py")) return check_script(program, here);
  Findings findings = check_program(program, here);
  const bool trains =
      is_argosy(needs.command) && needs.command.size() > 1 && needs.command[1] == "train";
  return findings.empty() && trains ? check_training(needs, here, deadline) : findings;
}

}  // namespace argosy
