// Servers and workers as real processes over loopback TCP, training CTR-DNN from MultiSlot text
// files, beside one process that trains alone with one compute thread, in turn.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "argosy/base/error.h"
#include "argosy/job/status.h"
#include "argosy/modes/mode.h"
#include "argosy/modes/serve.h"
#include "argosy/ps/client.h"
#include "bench/bench.h"
#include "bench/ctr_work.h"
#include "bench/processes.h"

namespace argosy::benches {
namespace {

namespace fs = std::filesystem;

constexpr int kEpochs = 4;  // the first one makes the rows

struct Work {
  std::string folder, mode, optimizer;
  size_t batch, steps;  // steps of each worker in an epoch
  int servers, workers, threads;
  int reports;  // where status lines go; -1: nowhere
};

struct Rate {
  double examples_per_second = 0, bytes_per_example = 0;
};
using Process = BenchProcess<Rate>;

std::vector<std::string> files_of(const Work& work, int worker) {
  return {work.folder + "/part-" + std::to_string(worker)};
}

TrainerOptions options_of(const Work& work, const std::string& name) {
  TrainerOptions options;
  options.optimizer = {.rule = work.optimizer, .learning_rate = "0.001"};
  options.strategy.mode = name;
  options.strategy.geo_step = 400;
  options.strategy.threads = mode(name).needs == Mode::Needs::nothing ? 1 : work.threads;
  return options;
}

/// The median rate of the epochs after the first.
double train(Trainer& trainer, const Work& work, int worker) {
  QueueDataset data(
      trainer.plan().layout,
      {.files = files_of(work, worker), .slots = ctr_slots(), .batch_size = work.batch});
  std::vector<double> rates;
  trainer.fit(data, {.epochs = kEpochs,
                     .on_epoch =
                         [&](const Progress& progress, const auto&) {
                           if (progress.epoch > 1) rates.push_back(progress.samples_per_second());
                           return Next::go_on;
                         },
                     .show = nullptr});
  return median(rates);
}

Rate train_alone(const Work& work) {
  const auto env = real_env();
  Trainer trainer(*env, ctr_dnn, options_of(work, "local"));
  return {train(trainer, work, 0), 0};
}

Rate train_as_worker(const Work& work, const Role& role) {
  const auto env = real_env();
  TrainerOptions options = options_of(work, work.mode);
  const auto transport = tcp_transport(worker_links(options.strategy));
  auto recorded = std::make_unique<RecordedModel>(record(ctr_dnn, options));
  const Wires wires = connect_servers(
      *env, *transport,
      placement_of(recorded->plan, options.strategy, static_cast<uint32_t>(role.servers.size())),
      role, options.strategy);
  const std::shared_ptr<ps::Client> client = wires.servers;
  Trainer trainer(*env, std::move(recorded), wires, options);
  const StatusReport report(work.reports,
                            look_at_worker(*env, role.index, trainer.activity(), client));
  Rate rate{train(trainer, work, role.index), 0};
  const double examples = static_cast<double>(work.batch * work.steps * kEpochs);
  rate.bytes_per_example =
      static_cast<double>(client->counts().sent.value() + client->counts().received.value()) /
      examples;
  trainer.leave();
  return rate;
}

void serve_part(const Work& work, const Role& role) {
  const auto env = real_env();
  const TrainerOptions options = options_of(work, work.mode);
  const RecordedModel model = record(ctr_dnn, options);
  const ps::Placement placement =
      placement_of(model.plan, options.strategy, static_cast<uint32_t>(role.servers.size()));
  std::FILE* const nowhere = std::fopen("/dev/null", "w");
  std::optional<StatusReport> report;
  const auto begin_reports = [&](ps::Server& server) {
    report.emplace(work.reports, look_at_server(*env, role.index, server.weak_from_this()));
  };
  serve(*env, placement, role,
        {.strategy = options.strategy, .before = begin_reports, .out = nowhere});
  std::fclose(nowhere);
}

Rate train_together(const Work& work) {
  Role role{.kind = RoleKind::server, .worker_num = work.workers};
  std::vector<int> sockets;
  role.servers.resize(static_cast<size_t>(work.servers));
  for (Endpoint& at : role.servers) sockets.push_back(listening_socket(at));
  std::vector<Process> servers, workers;
  for (int i = 0; i < work.servers; ++i)
    servers.emplace_back([&] {
      role.index = i;
      role.listen_fd = sockets[static_cast<size_t>(i)];
      serve_part(work, role);
      return Rate{};
    });
  for (int i = 0; i < work.workers; ++i)
    workers.emplace_back([&] {
      role.kind = RoleKind::worker;
      role.index = i;
      return train_as_worker(work, role);
    });
  for (const int fd : sockets) ::close(fd);
  Rate total;
  for (Process& worker : workers) {
    const Rate rate = worker.wait();
    total.examples_per_second += rate.examples_per_second;
    total.bytes_per_example += rate.bytes_per_example / work.workers;
  }
  for (Process& server : servers) server.wait();
  return total;
}

BenchResults run(const BenchFlags& flags) {
  Work work{.folder = fs::temp_directory_path() / ("argosy-bench-ps-" + std::to_string(::getpid())),
            .mode = flags.at("mode"),
            .optimizer = flags.at("optimizer"),
            .batch = static_cast<size_t>(integer(flags, "batch")),
            .steps = static_cast<size_t>(integer(flags, "steps")),
            .servers = static_cast<int>(integer(flags, "servers")),
            .workers = static_cast<int>(integer(flags, "workers")),
            .threads = static_cast<int>(integer(flags, "threads")),
            .reports = -1};
  if (flags.at("reports") == "on") work.reports = ::open("/dev/null", O_WRONLY);
  const bool adds_differences = mode(work.mode).pushes == Mode::Pushes::differences;
  if (work.optimizer.empty()) work.optimizer = adds_differences ? "sgd" : "adam";
  fs::create_directories(work.folder);
  for (int i = 0; i < work.workers; ++i)
    write_ctr_file(files_of(work, i)[0], static_cast<uint64_t>(i) * work.steps * work.batch,
                   work.steps * work.batch);
  std::vector<double> alone, together, ratios, bytes;
  for (int64_t round = 0; round < integer(flags, "rounds"); ++round) {
    const double before = Process([&] { return train_alone(work); }).wait().examples_per_second;
    const Rate rate = Process([&] { return train_together(work); }).wait();
    const double after = Process([&] { return train_alone(work); }).wait().examples_per_second;
    alone.push_back((before + after) / 2);
    together.push_back(rate.examples_per_second);
    ratios.push_back(together.back() / alone.back());
    bytes.push_back(rate.bytes_per_example);
  }
  fs::remove_all(work.folder);
  return {{"examples_per_second", median(together)},
          {"local_examples_per_second", median(alone)},
          {"ratio_to_local", median(ratios)},
          {"bytes_per_example", median(bytes)}};
}

}  // namespace

Bench ps() {
  return {.help = "CTR-DNN by servers and workers over loopback, against one process",
          .flags = {{"servers", "1"},
                    {"workers", "1"},
                    {"threads", "1"},
                    {"mode", "async"},
                    {"optimizer", ""},
                    {"batch", "512"},
                    {"steps", "200"},
                    {"rounds", "3"},
                    {"reports", "off"}},
          .run = run};
}

}  // namespace argosy::benches
