// fleetrun: starts the processes of a job on this machine, shows them, and ends them together.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/completion.h"
#include "argosy/base/call.h"
#include "argosy/base/error.h"
#include "argosy/launch/supervise.h"

namespace {

using namespace argosy;

constexpr const char* kAbout =
    "fleetrun: start the processes of a distributed job\n\n"
    "  fleetrun --server_num=2 --worker_num=2 argosy train -m config.yaml\n"
    "  fleetrun --servers=10.0.0.1:6170,10.0.0.2:6170 --workers=10.0.0.1,10.0.0.2 train.py\n"
    "  fleetrun --nproc_per_node=4 train.py\n"
    "  srun --ntasks-per-node=1 fleetrun --server_num=1 --worker_num=4 train.py\n\n"
    "A .py file is run by python3, anything else by itself; -- may stand before it. With several\n"
    "machines, run the same line on each, in any order.\n";

constexpr const char* kExitCodes =
    "Exit codes: 0 when all workers have ended well; that of the first process that failed, 128 +\n"
    "its signal if one ended it; 128 + signal after Ctrl-C and the like; 2 for bad input, when\n"
    "nothing was started; 1 when the machine or another one would not go along.";

/// Flags of Paddle's launchers that have no meaning here: why, and what to use.
constexpr std::array kRefused = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"--xpus", "there are no kernels for XPUs; use --gpus"},
    {"--selected_xpus", "there are no kernels for XPUs; use --gpus"},
    {"--npus", "there are no kernels for NPUs; use --gpus"},
    {"--mlus", "there are no kernels for MLUs; use --gpus"},
    {"--cluster_topo_path", "programs are not placed automatically"},
    {"--rank_mapping_path", "programs are not placed automatically"},
    {"--enable_auto_mapping", "programs are not placed automatically"},
    {"--auto_parallel_config", "programs are not placed automatically"},
    {"--auto_tuner_json", "there is no tuner"},
    {"--elastic_server", "there is no etcd; --max_restart starts failed processes again"},
    {"--elastic_pre_hook", "there is no etcd; run the command before fleetrun"},
    {"--elastic_level", "--max_restart says whether failed processes are started again"},
    {"--elastic_timeout", "--timeout says how long machines are waited for"},
    {"--np", "use --nnodes and --nproc_per_node"},
    {"--scale", "the number of processes is fixed when a job starts"},
    {"--force", "the number of processes is fixed when a job starts"},
    {"--host", "set POD_IP to this machine's address"},
    {"--legacy", "there is one launcher"},
    {"--log_overwrite", "logs begin anew with every job"},
    {"--sort_ip", "machines without --rank are sorted by address"},
    {"--enable_gpu_log", "watch the devices with their own tools"},
    {"--gloo_port", "use --http_port"},
    {"--with_gloo", "set PADDLE_WITH_GLOO"},
    {"--cluster_node_ips", "use --servers and --workers"},
    {"--node_ip", "set POD_IP to this machine's address"},
    {"--print_config", "--dry-run prints the plan, --log_level=WARNING leaves out the banner"},
    {"--endpoints", "use --servers"},
});

void add_process_flags(CLI::App& app, launch::Flags& flags) {
  const char* const group = "Servers and workers";
  app.add_option("--server_num", flags.server_num, "servers, on this machine")
      ->envname("PADDLE_SERVER_NUM")
      ->group(group);
  app.add_option("--worker_num,--trainer_num", flags.worker_num, "workers, on this machine")
      ->envname("PADDLE_TRAINER_NUM")
      ->group(group);
  app.add_option("--servers", flags.servers, "addresses of the servers")
      ->type_name("HOST:PORT,...")
      ->group(group);
  app.add_option("--workers,--trainers", flags.workers, "addresses of the workers")
      ->type_name("HOST[:PORT],...")
      ->group(group);
  app.add_option("--coordinator_num", flags.coordinator_num, "coordinators, on this machine")
      ->group(group);
  app.add_option("--coordinators", flags.coordinators, "addresses of the coordinators")
      ->type_name("HOST:PORT,...")
      ->group(group);
  app.add_option("--heter_worker_num", flags.heter_worker_num,
                 "heterogeneous workers, on this machine; stages are separated by ;")
      ->type_name("INT[;INT...]")
      ->group(group);
  app.add_option("--heter_workers", flags.heter_workers, "addresses of the heterogeneous workers")
      ->type_name("HOST:PORT,...[;...]")
      ->group(group);
  app.add_option("--heter_devices", flags.heter_devices, "cpu or gpu for each stage of them")
      ->type_name("DEVICE[;...]")
      ->group(group);
  app.add_option("--http_port", flags.http_port,
                 "where programs that use Gloo meet, and\nranks that are told no addresses")
      ->group(group);
}

void add_rank_flags(CLI::App& app, launch::Flags& flags) {
  const char* const group = "Ranks (collective)";
  app.add_option("--nproc_per_node", flags.nproc_per_node,
                 "ranks on each machine; one for each card where this is missing")
      ->envname("PADDLE_NPROC_PER_NODE")
      ->group(group);
  app.add_option("--ips", flags.ips, "addresses of the machines")
      ->envname("PADDLE_IPS")
      ->type_name("HOST,...")
      ->group(group);
  app.add_option("--gpus,--devices,--device,--selected_gpus", flags.gpus,
                 "cards; those of CUDA_VISIBLE_DEVICES where this is missing")
      ->envname("PADDLE_DEVICES")
      ->type_name("N,...")
      ->group(group);
  app.add_option("--backend", flags.backend,
                 "how ranks exchange data: auto, gloo (tcp), shm, tcp, hierarchical, mpi or nccl")
      ->type_name("NAME")
      ->group(group);
}

void add_machine_flags(CLI::App& app, launch::Flags& flags) {
  const char* const group = "Machines that find each other";
  app.add_option("--master", flags.master,
                 "where their launchers meet; processes are counted "
                 "for each machine then")
      ->envname("PADDLE_MASTER")
      ->type_name("HOST:PORT")
      ->group(group);
  app.add_option("--nnodes", flags.nnodes, "how many")->envname("PADDLE_NNODES")->group(group);
  app.add_option("--rank", flags.rank, "which of them this is; by address where this is missing")
      ->envname("PADDLE_RANK")
      ->group(group);
  app.add_option("--job_id", flags.job_id, "launchers of another job are turned away")
      ->envname("PADDLE_JOB_ID")
      ->capture_default_str()
      ->group(group);
  app.add_option("--timeout", flags.timeout, "for all machines to come")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->group(group);
  app.add_option("--start_port", flags.start_port, "the first of those that are not given")
      ->envname("FLAGS_START_PORT")
      ->group(group);
  app.add_option("--run_mode", flags.run_mode, "collective, ps or ps-heter; the other flags say it")
      ->envname("PADDLE_RUN_MODE")
      ->type_name("MODE")
      ->group(group);
}

void add_run_flags(CLI::App& app, launch::Flags& flags) {
  const char* const group = "Running";
  app.add_option("--log_dir", flags.log_dir, "folder of serverlog.N, workerlog.N and so on")
      ->envname("PADDLE_LOG_DIR")
      ->type_name("FOLDER")
      ->capture_default_str()
      ->group(group);
  app.add_option("--log_level", flags.log_level, "WARNING leaves out the banner")
      ->envname("PADDLE_LOG_LEVEL")
      ->type_name("LEVEL")
      ->capture_default_str()
      ->group(group);
  app.add_flag("--log-all", flags.log_all, "show the logs of all processes, not only worker 0's")
      ->group(group);
  app.add_option("--env", flags.env, "set a variable for every process; may come more than once")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false)
      ->group(group);
  app.add_option("--max_restart", flags.max_restart, "how often each process is started again")
      ->envname("PADDLE_MAX_RESTART")
      ->capture_default_str()
      ->group(group);
  app.add_flag("--resume", flags.resume,
               "go on from the servers' journals, which an earlier job of this line left when all "
               "its processes were killed; otherwise from its last save, or anew. Journals are "
               "written with this")
      ->group(group);
  app.add_option(
         "--durability", flags.durability,
         "what servers have answered survives: none, journal (kill -9 of a server) or fsync "
         "(the machine going down); with --max_restart journal, else none")
      ->envname("ARGOSY_DURABILITY")
      ->type_name("LEVEL")
      ->group(group);
  app.add_option("--log_path", flags.log_path,
                 "folder of the servers' journals, on a disk of their own if there is one; with "
                 "--max_restart below --log_dir")
      ->envname("ARGOSY_LOG_PATH")
      ->type_name("FOLDER")
      ->group(group);
  app.add_option("--grace", flags.grace, "between asking a process to end and killing it")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->group(group);
  app.add_flag("--dry-run", flags.dry_run,
               "print what would be started; ports of 0 are chosen then")
      ->group(group);
  app.add_flag("--json", flags.json, "plan and messages as JSON")->group(group);
}

/// The command after the flags, where CLI11 also leaves unknown flags.
std::vector<std::string> command_of(const CLI::App& app) {
  std::vector<std::string> command = app.remaining();
  if (command.empty()) return command;
  if (command.front() == "--") {
    command.erase(command.begin());
    return command;
  }
  if (!command.front().starts_with('-')) return command;
  const std::string flag = command.front().substr(0, command.front().find('='));
  for (const auto& [refused, why] : kRefused)
    check<ConfigError>(flag != refused, flag, " has no meaning here: ", why);
  const std::string like = nearest(flag, completions(app));
  fail<ConfigError>("unknown flag ", flag, like.empty() ? "" : ", did you mean " + like + "?");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(kAbout);
  app.prefix_command();
  app.set_version_flag("--version", ARGOSY_VERSION);
  app.footer(kExitCodes);
  launch::Flags flags;
  std::string shell;
  add_process_flags(app, flags);
  add_rank_flags(app, flags);
  add_machine_flags(app, flags);
  add_run_flags(app, flags);
  app.add_option("--completion", shell, "print a script that teaches bash or zsh these flags")
      ->type_name("SHELL");
  try {
    app.parse(argc, argv);
    if (!shell.empty()) {
      fmt::print("{}", completion_script(app, "fleetrun", shell));
      return 0;
    }
    flags.command = command_of(app);
    return launch::run(flags, launch::this_machine());
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    fmt::print(stderr, "fleetrun: {}\n", e.what());
    return launch::kNothingStarted;
  } catch (const ConfigError& e) {
    fmt::print(stderr, "fleetrun: {}\n", e.what());
    return launch::kNothingStarted;
  } catch (const std::exception& e) {  // an Error, or what the standard library throws
    fmt::print(stderr, "fleetrun: {}\n", e.what());
    return 1;
  }
}
