#include "argosy/zoo/job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>

#include "argosy/base/error.h"
#include "argosy/fleet/serve.h"
#include "argosy/fleet/server_calls.h"
#include "argosy/fleet/status.h"
#include "argosy/train/trainer.h"
#include "argosy/zoo/model.h"
#include "argosy/zoo/runner.h"

namespace argosy {
Job::Job(Env& env, const Config& config)
    : env_(env), config_(config), role_(role_from_env(process_environment())) {
  strategy_.threads = static_cast<int>(config.runner.thread_num);
  strategy_.geo_step = static_cast<int>(config.runner.geo_step);
  if (!shared()) return;
  strategy_.mode = config.runner.sync_mode;
  check<ConfigError>(strategy_.mode != "local",
                     "runner.sync_mode is local, but the environment says that this is ",
                     role_.text());
}

std::function<Wires(const Plan&)> Job::connector() {
  if (!shared()) return {};
  return [this](const Plan& plan) {
    transport_ = tcp_transport(worker_links(strategy_));
    const auto servers = static_cast<uint32_t>(role_.servers.size());
    Wires wires = connect_servers(env_, *transport_, placement_of(plan, strategy_, servers), role_,
                                  strategy_);
    client_ = wires.servers;
    return wires;
  };
}

void Job::barrier(const std::string& name) {
  if (client_ != nullptr) argosy::barrier(*client_, name);
}

std::string Job::from_first(const std::string& name, const std::string& text) {
  if (client_ == nullptr) return text;
  const auto mine = std::as_bytes(std::span(text));
  const auto parts = gather(*client_, name, first() ? mine : std::span<const std::byte>());
  const std::string answer = text_of(parts.at(0));
  check<IoError>(!answer.empty(), "the first worker is gone: nobody says '", name, "'");
  return answer;
}

void Job::join(Figures& figures) {
  if (client_ == nullptr) return;
  const auto parts = gather(*client_, "figures of an epoch", figures.bytes());
  figures.reset();
  for (const auto& part : parts) figures.merge(part);
}

std::vector<std::string> Job::files(std::vector<std::string> all) const {
  if (!shared() || !config_.runner.split_file_list) return all;
  std::vector<std::string> mine = file_shard(all, role_.index, role_.worker_num);
  check<ConfigError>(!mine.empty(), "worker ", role_.index,
                     " has no file: ", config_.train.data_dir, " has ", all.size(), " for ",
                     role_.worker_num, " workers");
  return mine;
}

ProgressReport::ProgressReport(Env& env, const Role& role) : env_(env), worker_(role.index) {
  const char* const text = std::getenv("ARGOSY_PROGRESS_FD");
  if (text != nullptr && role.kind == RoleKind::worker) fd_ = std::atoi(text);
}

void ProgressReport::write(const Progress& progress) {
  constexpr auto kPeriod = std::chrono::milliseconds(200);
  next_ = env_.now() + kPeriod;
  std::string line = fmt::format("worker={} epoch={} epochs={} step={} samples={} seconds={:.3f}",
                                 worker_, progress.epoch, progress.epochs, progress.step,
                                 progress.samples, progress.seconds);
  if (progress.steps) line += fmt::format(" steps={}", *progress.steps);
  for (const Metric& metric : progress.metrics)
    if (std::isfinite(metric.value)) line += fmt::format(" {}={:.6f}", metric.name, metric.value);
  line += '\n';
  // A launcher that does not keep up misses a line.
  if (::write(fd_, line.data(), line.size()) < 0) return;
}

void run_server(Env& env, const Config& config, const Job& job, std::FILE* out) {
  const ModelSetup setup = make_model(config);
  const RecordedModel model = record(setup.model, trainer_options(config, setup));
  const Placement placement =
      placement_of(model.plan, job.strategy(), static_cast<uint32_t>(job.role().servers.size()));
  std::optional<StatusReport> report;
  const auto begin_reports = [&](PsServer& server) {
    report.emplace(report_descriptor(),
                   look_at_server(env, job.role().index, server.weak_from_this()));
  };
  serve(env, placement, job.role(),
        {.strategy = job.strategy(), .before = begin_reports, .out = out});
}

}  // namespace argosy
