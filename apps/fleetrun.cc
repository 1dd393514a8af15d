// fleetrun: starts the servers and workers of a job, shows them, and ends them together.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/call.h"
#include "argosy/base/error.h"
#include "argosy/launch/launcher.h"

namespace {

using namespace argosy;

constexpr const char* kAbout =
    "fleetrun: start the servers and workers of a job\n\n"
    "  fleetrun --server_num=2 --worker_num=2 argosy train -m config.yaml\n"
    "  fleetrun --servers=10.0.0.1:6170,10.0.0.2:6170 --workers=10.0.0.1,10.0.0.2 train.py\n\n"
    "A .py file is run by python3, anything else by itself; -- may stand before it. With several\n"
    "machines, run the same line on each.\n";

void add_flags(CLI::App& app, LaunchFlags& flags, bool& dry_run) {
  app.add_option("--server_num", flags.server_num, "servers, on this machine");
  app.add_option("--worker_num", flags.worker_num, "workers, on this machine");
  app.add_option("--servers", flags.servers, "addresses of the servers")
      ->type_name("HOST:PORT,...");
  app.add_option("--workers", flags.workers, "addresses of the workers")
      ->type_name("HOST[:PORT],...");
  app.add_option("--log_dir", flags.log_dir, "folder of serverlog.N and workerlog.N")
      ->type_name("FOLDER")
      ->capture_default_str();
  app.add_option("--env", flags.env, "set a variable for every process; may come more than once")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--grace", flags.grace, "between asking a process to end and killing it")
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_flag("--dry-run", dry_run, "print what would be started; ports of 0 are chosen then");
}

/// What stands behind the flags. CLI11 leaves flags that it does not know there too.
std::vector<std::string> command_of(const CLI::App& app) {
  std::vector<std::string> command = app.remaining();
  if (command.empty()) return command;
  if (command.front() == "--") {
    command.erase(command.begin());
    return command;
  }
  if (!command.front().starts_with('-')) return command;
  const std::string flag = command.front().substr(0, command.front().find('='));
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) known.push_back(option->get_name());
  const std::string like = nearest(flag, known);
  fail<ConfigError>("unknown flag ", flag, like.empty() ? "" : ", did you mean " + like + "?");
}

int run(const CLI::App& app, LaunchFlags flags, bool dry_run) {
  flags.command = command_of(app);
  Job job = make_job(flags, this_machine());
  if (!dry_run) return run_job(std::move(job));
  fmt::print("{}\n{}", banner(job), plan_text(plan_processes(job)));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(kAbout);
  app.prefix_command();
  app.set_version_flag("--version", ARGOSY_VERSION);
  LaunchFlags flags;
  bool dry_run = false;
  add_flags(app, flags, dry_run);
  try {
    app.parse(argc, argv);
    return run(app, flags, dry_run);
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  } catch (const std::exception& e) {  // an Error, or what the standard library throws
    fmt::print(stderr, "fleetrun: {}\n", e.what());
    return 1;
  }
}
