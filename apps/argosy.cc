// argosy: the command line tool. One subcommand per function below.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <thread>

#include "apps/ckpt_command.h"
#include "apps/completion.h"
#include "argosy/argosy.h"
#include "argosy/base/own_folder.h"
#include "argosy/config/plan_report.h"
#include "argosy/config/proof.h"
#include "argosy/config/runner.h"
#include "argosy/doctor/doctor.h"
#include "argosy/launch/status_view.h"
#include "argosy/samples/generate.h"
#include "bench.def"

namespace {

using namespace argosy;

Program read_program(const std::string& path) {
  const auto env = real_env();
  const std::vector<std::byte> bytes = env->read_file(path);
  return Program::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

/// Zeros of the declared shapes, with the unknown sizes set to `batch`.
Feeds placeholder_feeds(const Program& program, int64_t batch) {
  Feeds feeds;
  for (const VarDesc& desc : program.vars) {
    if (desc.kind == VarKind::temp) continue;
    Shape shape = desc.type.shape;
    for (int i = 0; i < shape.rank(); ++i)
      if (shape[i] == Shape::kAny) shape[i] = batch;
    feeds.emplace(desc.name, Tensor(shape, desc.type.dtype));
  }
  return feeds;
}

void print_memory(const Program& program, int64_t batch) {
  Executor executor(program);
  executor.prepare(placeholder_feeds(program, batch));
  const MemoryReport memory = executor.memory();
  fmt::print(
      "activations at batch {}: {} bytes planned, {} bytes required by liveness, ratio {:.3f}\n",
      batch, memory.planned, memory.required,
      memory.required > 0
          ? static_cast<double>(memory.planned) / static_cast<double>(memory.required)
          : 1.0);
  fmt::print("one buffer per variable would take {} bytes\n", memory.without_reuse);
}

/// The command line of `train` and `infer`.
struct RunFlags {
  std::string config;
  std::vector<std::string> overrides;
  bool check = false;
  uint64_t workers = 1;
};

CLI::Option* add_config_flags(CLI::App& command, RunFlags& flags) {
  auto* config = command.add_option("-m,--config", flags.config, "YAML file, or its folder");
  command
      .add_option("-o,--opt", flags.overrides,
                  "set a key of the file: -o runner.epochs=2 runner.thread_num=4")
      ->type_name("KEY=VALUE");
  return config;
}

void add_run_flags(CLI::App& command, RunFlags& flags) {
  add_config_flags(command, flags)->required();
}

/// A path that is not there may be one of the models that are shipped: models/rank/dnn.
Config read_config(const RunFlags& flags) {
  std::filesystem::path path = flags.config;
  if (!std::filesystem::exists(path) && std::filesystem::exists(shared_folder() / path))
    path = shared_folder() / path;
  if (std::filesystem::is_directory(path)) path /= "config.yaml";
  return load_config(path, flags.overrides);
}

void add_train(CLI::App& app, RunFlags& flags) {
  auto* train = app.add_subcommand("train", "Train the model of a YAML file");
  add_run_flags(*train, flags);
  auto* check = train->add_flag("--check", flags.check,
                                "build the model and look at the data, train nothing");
  train->add_option("--workers", flags.workers, "of --check: workers that share the files")
      ->check(CLI::PositiveNumber)
      ->needs(check)
      ->capture_default_str();
  train->callback([&flags] {
    const auto env = real_env();
    const Config config = read_config(flags);
    if (flags.check) return run_check(*env, config, stdout, flags.workers);
    run_train(*env, config, stdout);
  });
}

void add_infer(CLI::App& app, RunFlags& flags) {
  auto* infer = app.add_subcommand("infer", "Evaluate the saved epochs of a YAML file's model");
  add_run_flags(*infer, flags);
  infer->callback([&flags] {
    const auto env = real_env();
    run_infer(*env, read_config(flags), stdout);
  });
}

void load_into_model(const std::string& config_path, const std::string& dir) {
  const auto env = real_env();
  RunFlags flags;
  flags.config = config_path;
  const Config config = read_config(flags);
  const ModelSetup setup = make_model(config);
  Trainer trainer(*env, setup.model, trainer_options(config, setup));
  trainer.load(dir);
  fmt::print("{}: the model of {} loads it\n", dir, config.path);
}

/// The command line of `plan`.
struct PlanFlags {
  std::string file;  // a program text, or a configuration:
  RunFlags run;
  PlanOptions options = {};
  bool memory = false, prove = false;
  int64_t batch = 512;
};

void print_plan(const PlanFlags& flags) {
  const Config config = read_config(flags.run);
  fmt::print("{}", plan_report(config, flags.options));
  if (!flags.prove) return;
  const auto env = real_env();
  const Proof proof = prove_plan(*env, config, flags.options);
  fmt::print("\nproved: {} parameters and {} rows equal to the last bit\n", proof.parameters,
             proof.rows);
}

void add_plan(CLI::App& app, PlanFlags& flags) {
  auto* plan = app.add_subcommand(
      "plan",
      "Say what a YAML file becomes with servers and workers, or what a program text takes");
  auto* config = add_config_flags(*plan, flags.run);
  auto* file = plan->add_option("FILE", flags.file, "program text")->excludes(config);
  plan->add_flag("--memory", flags.memory, "of a program text: memory of its activations")
      ->needs(file);
  plan->add_option("--batch", flags.batch, "of a program text: size of the dimensions left open")
      ->capture_default_str();
  constexpr int kMost = 65535;
  plan->add_option("--servers", flags.options.servers)
      ->check(CLI::Range(1, kMost))
      ->capture_default_str();
  plan->add_option("--workers", flags.options.workers)
      ->check(CLI::Range(1, kMost))
      ->capture_default_str();
  plan->add_flag("--prove", flags.prove, "train a batch whole and split, and compare every bit")
      ->needs(config);
  plan->callback([&flags] {
    if (!flags.run.config.empty()) return print_plan(flags);
    if (flags.file.empty()) throw CLI::RequiredError("-m CONFIG or FILE");
    if (!flags.memory) throw CLI::RequiredError("--memory");
    print_memory(read_program(flags.file), flags.batch);
  });
}

/// The command line of `doctor`, the same as fleetrun's, so that one can replace the other.
struct DoctorFlags {
  std::string servers, workers, log_dir = "log", model_dir;
  size_t server_num = 0, worker_num = 0;
  bool json = false;
  std::vector<std::string> command;
};

/// The host in "host", "host:port" or "[address]:port".
std::string host_of(const std::string& text) {
  if (text.starts_with('[')) return parse_endpoint(text).host;
  const bool bare = std::ranges::count(text, ':') != 1;
  return bare ? text : text.substr(0, text.find(':'));
}

void read_lists(const DoctorFlags& flags, const Surroundings& here, Needs& needs) {
  const std::vector<Endpoint> servers =
      flags.servers.empty() ? std::vector<Endpoint>() : parse_endpoints(flags.servers);
  for (const Endpoint& server : servers) needs.hosts.push_back(server.host);
  std::istringstream workers(flags.workers);
  for (std::string worker; std::getline(workers, worker, ',');)
    needs.hosts.push_back(host_of(worker));
  if (!flags.servers.empty()) needs.servers = servers.size();
  if (!flags.workers.empty()) needs.workers = needs.hosts.size() - servers.size();

  // As in fleetrun, the only machine of a job is this one, under any name.
  const bool alone =
      std::ranges::count(needs.hosts, needs.hosts.front()) == std::ssize(needs.hosts);
  const auto starts_here = [&](const std::string& host) { return alone || is_here(host, here); };
  std::ranges::copy_if(servers, std::back_inserter(needs.listen), starts_here, &Endpoint::host);
  needs.processes += static_cast<size_t>(std::ranges::count_if(needs.hosts, starts_here));
}

Needs needs_of(const DoctorFlags& flags, const Surroundings& here) {
  constexpr auto kPatience = std::chrono::seconds(10);  // a user waits for the answer
  Needs needs{.servers = flags.server_num,
              .workers = flags.worker_num,
              .folders = {flags.log_dir},
              .command = flags.command,
              .budget = kPatience};
  if (!flags.model_dir.empty()) needs.folders.push_back(flags.model_dir);
  // Those that are counted and not listed are started here.
  if (flags.servers.empty()) needs.processes += flags.server_num;
  if (flags.workers.empty()) needs.processes += flags.worker_num;
  if (!flags.servers.empty() || !flags.workers.empty()) read_lists(flags, here, needs);
  return needs;
}

/// The exit code.
int run_doctor(const DoctorFlags& flags) {
  const Surroundings here = this_surroundings();
  std::vector<Fact> machine = facts(here);
  machine.insert(machine.begin(), {"argosy", ARGOSY_VERSION});
  const Findings findings = examine(needs_of(flags, here), here);
  fmt::print("{}", flags.json ? json(machine, findings) : text(machine) + "\n" + text(findings));
  return has_errors(findings) ? 1 : 0;
}

void add_doctor(CLI::App& app, DoctorFlags& flags, int& exit_code) {
  auto* doctor = app.add_subcommand(
      "doctor", "Look for what would hurt a job on this machine; takes the flags of fleetrun");
  doctor->add_option("--server_num", flags.server_num, "servers, on this machine");
  doctor->add_option("--worker_num", flags.worker_num, "workers, on this machine");
  doctor->add_option("--servers", flags.servers, "addresses of the servers")
      ->type_name("HOST:PORT,...");
  doctor->add_option("--workers", flags.workers, "addresses of the workers")
      ->type_name("HOST[:PORT],...");
  doctor->add_option("--log_dir", flags.log_dir, "folder of logs")->capture_default_str();
  doctor->add_option("--model_dir", flags.model_dir, "folder that models are saved to");
  doctor->add_flag("--json", flags.json, "one line of JSON");
  doctor->add_option("COMMAND", flags.command, "what the job runs, behind --");
  doctor->callback([&] { exit_code = run_doctor(flags); });
}

/// The command line of `status`.
struct StatusFlags {
  std::string log_dir = "log";
  bool watch = false, json = false;
};

/// Whether the job has stopped writing status, as far as this machine can tell.
bool is_over(const launch::StatusFile& file) {
  if (file.finished) return true;
  const bool ours = file.host == launch::host_name();
  return ours && ::kill(static_cast<pid_t>(file.pid), 0) != 0 && errno == ESRCH;
}

/// Prints it, once or until the job is over. The exit code.
int run_status(const StatusFlags& flags) {
  while (true) {
    const std::vector<launch::StatusFile> files = launch::read_status_files(flags.log_dir);
    const double now = launch::unix_now();
    if (flags.watch && ::isatty(STDOUT_FILENO) == 1) fmt::print("\033[H\033[J");
    fmt::print("{}",
               flags.json ? launch::status_json(files, now) : launch::status_text(files, now));
    std::fflush(stdout);
    if (!flags.watch || std::ranges::all_of(files, is_over))
      return launch::launcher_troubles(files, now).empty() ? 0 : 1;
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

void add_status(CLI::App& app, StatusFlags& flags, int& exit_code) {
  auto* status = app.add_subcommand(
      "status", "Say what the processes of a job are doing, and what they wait for");
  status->add_option("--log_dir", flags.log_dir, "as it was given to fleetrun")
      ->type_name("FOLDER")
      ->capture_default_str();
  status->add_flag("--watch", flags.watch, "once a second, until the job has ended");
  status->add_flag("--json", flags.json, "one line of JSON");
  status->callback([&] { exit_code = run_status(flags); });
}

/// The command line of `gen`.
struct GenFlags {
  std::string out, format = "raw";
  CriteoOptions criteo = {};
  MnistOptions mnist = {};
  HousingOptions housing = {};
  TextOptions text = {};
};

void add_gen(CLI::App& app, GenFlags& flags) {
  auto* gen = app.add_subcommand("gen", "Write data whose truth is known; same flags, same bytes");
  gen->require_subcommand(1);
  const auto add = [&](const char* name, const char* help) {
    auto* one = gen->add_subcommand(name, help);
    one->add_option("--out", flags.out, "folder to write into")->required();
    return one;
  };
  auto* criteo = add("criteo", "Click logs of Criteo's form, with a known best AUC");
  criteo->add_option("--rows", flags.criteo.rows)->capture_default_str();
  criteo->add_option("--vocab", flags.criteo.vocab, "values of each slot")->capture_default_str();
  criteo->add_option("--seed", flags.criteo.seed)->capture_default_str();
  criteo->add_option("--first-row", flags.criteo.first_row, "number of the first row")
      ->capture_default_str();
  criteo->add_option("--files", flags.criteo.files)->capture_default_str();
  criteo->add_option("--format", flags.format, "raw or multislot")
      ->check(CLI::IsMember({"raw", "multislot"}))
      ->capture_default_str();
  criteo->callback([&flags] {
    flags.criteo.format = flags.format == "raw" ? CriteoFormat::raw : CriteoFormat::multislot;
    const auto env = real_env();
    const CriteoReport report = generate_criteo(*env, flags.out, flags.criteo);
    fmt::print("{}: {} rows, {} clicks in {} files; Bayes AUC {:.4f}, without crosses {:.4f}\n",
               flags.out, report.rows, report.clicks, flags.criteo.files, report.bayes_auc,
               report.additive_auc);
  });

  auto* mnist = add("mnist", "The four IDX files of MNIST, from ten noisy shapes");
  mnist->add_option("--train", flags.mnist.train)->capture_default_str();
  mnist->add_option("--test", flags.mnist.test)->capture_default_str();
  mnist->add_option("--seed", flags.mnist.seed)->capture_default_str();
  mnist->callback([&flags] {
    generate_mnist(*real_env(), flags.out, flags.mnist);
    fmt::print("{}: {} images to train, {} to test\n", flags.out, flags.mnist.train,
               flags.mnist.test);
  });

  auto* housing = add("housing", "housing.data in the columns of the UCI file");
  housing->add_option("--rows", flags.housing.rows)->capture_default_str();
  housing->add_option("--seed", flags.housing.seed)->capture_default_str();
  housing->callback([&flags] {
    generate_housing(*real_env(), flags.out, flags.housing);
    fmt::print("{}: {} rows\n", flags.out, flags.housing.rows);
  });

  auto* text = add("text", "A corpus for word vectors, with triples and analogies to test them");
  text->add_option("--words", flags.text.words)->capture_default_str();
  text->add_option("--vocab", flags.text.vocab)->capture_default_str();
  text->add_option("--topics", flags.text.topics)->capture_default_str();
  text->add_option("--seed", flags.text.seed)->capture_default_str();
  text->callback([&flags] {
    const TextReport report = generate_text(*real_env(), flags.out, flags.text);
    fmt::print("{}: {} words in {} sentences, {} triples, {} analogies\n", flags.out, report.words,
               report.sentences, report.triples, report.analogies);
  });
}

/// The benchmarks are a separate program beside this one. Returns only by throwing.
void run_bench(char** args) {
  const std::string program = own_folder() / "argosy-bench";
  std::string name = "argosy bench";  // as help calls it
  args[0] = name.data();
  ::execv(program.c_str(), args);
  throw IoError(fmt::format("cannot run {}: {}; `make build` makes it", program,
                            std::generic_category().message(errno)));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("argosy: distributed training of recommendation models");
  app.require_subcommand(1);
  app.set_version_flag("--version", ARGOSY_VERSION);

  RunFlags run;
  add_train(app, run);
  add_infer(app, run);
  GenFlags gen;
  add_gen(app, gen);
  CkptFlags ckpt;
  DoctorFlags patient;
  int exit_code = 0;
  StatusFlags status;
  add_status(app, status, exit_code);
  add_doctor(app, patient, exit_code);
  add_ckpt(app, ckpt, exit_code, load_into_model);

  std::string file;
  bool dot = false;

  auto* graph = app.add_subcommand("graph", "Check a program text and print it, or draw it");
  graph->add_option("FILE", file, "program text (docs/formats/program-text.md)")->required();
  graph->add_flag("--dot", dot, "print Graphviz: argosy graph FILE --dot | dot -Tsvg > graph.svg");
  graph->callback([&] {
    const Program program = read_program(file);
    fmt::print("{}", dot ? program.dot() : program.text());
  });

  std::string shell;
  auto* completion =
      app.add_subcommand("completion", "Print a script that teaches a shell these commands");
  completion->add_option("SHELL", shell, "bash or zsh")->required();
  completion->callback([&] { fmt::print("{}", completion_script(app, "argosy", shell)); });

  PlanFlags planned;
  add_plan(app, planned);

  auto* bench =
      app.add_subcommand("bench", "Measure; each benchmark prints its own limit beside it");
#define ARGOSY_ADD_BENCH(file, command) command->add_subcommand(#file);
  ARGOSY_FILES(ARGOSY_ADD_BENCH, bench)
#undef ARGOSY_ADD_BENCH

  try {
    if (argc > 1 && argv[1] == std::string_view("bench")) run_bench(argv + 1);
    app.parse(argc, argv);
    return exit_code;
  } catch (const CLI::ParseError& e) {
    const std::string unknown =
        e.get_exit_code() == 0 ? "" : unknown_word(app, {argv + 1, argv + argc});
    if (unknown.empty()) return app.exit(e);
    fmt::print(stderr, "argosy: {}\n", unknown);
    return e.get_exit_code();
  } catch (const std::exception& e) {  // an Error, or what the standard library throws
    fmt::print(stderr, "argosy: {}\n", e.what());
    return 1;
  }
}
