#include "argosy/zoo/job.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "argosy/base/error.h"
#include "argosy/comm/group.h"
#include "argosy/fleet/rank_bytes.h"
#include "argosy/fleet/ranks.h"
#include "argosy/fleet/serve.h"
#include "argosy/fleet/status.h"
#include "argosy/ps/server.h"
#include "argosy/train/checkpoint.h"
#include "argosy/train/trainer.h"
#include "argosy/zoo/model.h"
#include "argosy/zoo/runner.h"
#include "argosy/zoo/saves.h"

namespace argosy {
namespace {

/// Fills a server that stands in for one that was lost.
void load_newest(Env& env, const Config& config, const Role& role, const Placement& placement,
                 const RunningMark& mark, PsServer& server, std::FILE* out) {
  const std::string& folder = config.runner.model_save_path;
  const auto save = newest_save(env, folder);
  const bool own = save && mark.is_before(*save);  // not of the job that this one resumes
  check<IoError>(save && (own || config.runner.resume), "server ", role.index,
                 " was lost and there is no saved model of this job below ", folder,
                 ": its part of the parameters is gone");
  const SavedPart part =
      load_part(env, save->folder, placement, static_cast<uint32_t>(role.index), server);
  const int epoch = part.resume.epoch - 1;  // the last one trained
  const auto written = std::chrono::file_clock::to_sys(save->written);
  fmt::print(out,
             "server {} came back with the model of {}: epoch {}, saved {:%Y-%m-%d %H:%M:%S}, step "
             "{}; what it learned since then is lost\n",
             role.index, save->folder, epoch - 1,
             fmt::localtime(std::chrono::system_clock::to_time_t(
                 std::chrono::time_point_cast<std::chrono::system_clock::duration>(written))),
             server.step());
  std::fflush(out);
  if (part.mark) server.goes_on_from(*part.mark, own ? Milestone::trained(epoch).number : 0);
}

}  // namespace

/// As if the epoch before had just been saved.
Milestone Milestone::begins(int epoch) {
  return {saved(epoch - 1).number, fmt::format("epoch {} begins", epoch - 1)};
}

Milestone Milestone::trained(int epoch) {
  return {static_cast<uint32_t>(2 * epoch + 2), fmt::format("epoch {} is trained", epoch - 1)};
}

Milestone Milestone::saved(int epoch) {
  return {static_cast<uint32_t>(2 * epoch + 3), fmt::format("epoch {} is saved", epoch - 1)};
}

Job::Job(Env& env, const Config& config)
    : env_(env), config_(config), role_(role_from_env(process_environment())) {
  strategy_.threads = static_cast<int>(config.runner.thread_num);
  strategy_.geo_step = static_cast<int>(config.runner.geo_step);
  if (!shared()) return;
  if (collective()) {
    strategy_.mode = "collective";
    strategy_.collective.deterministic = config.runner.deterministic;
    strategy_.collective.embedding =
        parse_embedding_mode(config.runner.embedding_mode, "runner.embedding_mode");
    return;
  }
  check<ConfigError>(
      config.runner.embedding_mode == "replicated", "runner.embedding_mode is ",
      config.runner.embedding_mode,
      ", which is for ranks without servers: servers always share the rows; this is ",
      role_.text());
  strategy_.mode = config.runner.sync_mode;
  check<ConfigError>(strategy_.mode != "local",
                     "runner.sync_mode is local, but the environment says that this is ",
                     role_.text());
}

std::function<Wires(const Plan&)> Job::connector() {
  if (!shared()) return {};
  if (collective())
    return [this](const Plan&) {
      group_ = connect_group(env_, group_options(role_, strategy_.collective));
      return Wires{.servers = {}, .group = group_};
    };
  return [this](const Plan& plan) {
    transport_ = tcp_transport(worker_links(strategy_));
    const auto servers = static_cast<uint32_t>(role_.servers.size());
    Wires wires = connect_servers(env_, *transport_, placement_of(plan, strategy_, servers), role_,
                                  strategy_);
    client_ = wires.servers;
    return wires;
  };
}

void Job::find_standing() {
  if (client_ != nullptr && role_.restarts > 0) standing_ = argosy::standing(*client_);
}

uint64_t Job::repeated_batches() const {
  const uint64_t pushes = standing_.pushes;
  if (strategy_.mode == "half_async") return pushes * static_cast<uint64_t>(strategy_.threads);
  if (strategy_.mode != "geo") return pushes;
  // The first exchange of a pass only asks how things are.
  return (pushes - std::min<uint64_t>(pushes, 1)) * static_cast<uint64_t>(strategy_.geo_step);
}

/// What every worker has to say there.
std::vector<std::vector<std::byte>> Job::meet(const Milestone& at,
                                              std::span<const std::byte> mine) {
  if (group_ != nullptr) return gather_bytes(*group_, at.name, mine);
  return milestone(*client_, at.number, at.name, mine);
}

void Job::barrier(const Milestone& at) {
  if (connected() && !is_over(at)) meet(at, {});
}

std::string Job::from_first(const Milestone& at, const std::string& text) {
  if (!connected()) return text;
  const auto mine = std::as_bytes(std::span(text));
  const auto parts = meet(at, first() ? mine : std::span<const std::byte>());
  std::string answer = parts.empty() ? "" : text_of(parts[0]);
  check<IoError>(!answer.empty(), "the first worker is gone: nobody says '", at.name, "'");
  return answer;
}

void Job::join(const Milestone& at, Figures& figures) {
  if (!connected()) return;
  const auto parts = meet(at, figures.bytes());
  figures.reset();
  for (const auto& part : parts) figures.merge(part);
}

std::vector<std::string> Job::files(std::vector<std::string> all) {
  // Ranks deal their data out unless they are told not to.
  const bool asked = config_.given.contains("runner.split_file_list");
  const bool splits = collective() && !asked ? true : shared() && config_.runner.split_file_list;
  if (!splits) return all;
  if (collective() && all.size() < static_cast<size_t>(role_.worker_num)) {
    batches_ = {static_cast<size_t>(role_.index), static_cast<size_t>(role_.worker_num)};
    return all;
  }
  std::vector<std::string> mine = file_shard(all, role_.index, role_.worker_num);
  check<ConfigError>(!mine.empty(), "worker ", role_.index,
                     " has no file: ", config_.train.data_dir, " has ", all.size(), " for ",
                     role_.worker_num, " workers");
  return mine;
}

std::string Job::shares_text() const {
  if (!collective()) return "";
  if (batches_.count > 1)
    return fmt::format("data: every {} batches of all files, as there are fewer files than ranks",
                       batches_.count);
  const bool splits =
      !config_.given.contains("runner.split_file_list") || config_.runner.split_file_list;
  return splits ? fmt::format("data: the files are dealt out to {} ranks", role_.worker_num)
                : "data: every rank takes all files, as runner.split_file_list is False";
}

ProgressReport::ProgressReport(Env& env, const Role& role) : env_(env), worker_(role.index) {
  const char* const text = std::getenv("ARGOSY_PROGRESS_FD");
  if (text != nullptr && role.kind != RoleKind::local) fd_ = std::atoi(text);
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
  const Role& role = job.role();
  const Placement placement =
      placement_of(model.plan, job.strategy(), static_cast<uint32_t>(role.servers.size()));
  RunningMark mark(env, config.runner.model_save_path, fmt::format("server-{}", role.index));
  if (role.restarts == 0) mark.write();
  std::optional<StatusReport> report;
  const auto begin = [&](PsServer& server) {
    if (role.restarts > 0) load_newest(env, config, role, placement, mark, server, out);
    report.emplace(report_descriptor(), look_at_server(env, role.index, server.weak_from_this()));
  };
  serve(env, placement, role, {.strategy = job.strategy(), .before = begin, .out = out});
  mark.remove();
}

}  // namespace argosy
