#include "argosy/job/job.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "argosy/base/error.h"
#include "argosy/comm/group.h"
#include "argosy/job/job_files.h"
#include "argosy/job/saves.h"
#include "argosy/job/status.h"
#include "argosy/modes/mode.h"
#include "argosy/modes/ranks/rank_bytes.h"
#include "argosy/plan/ranks.h"
#include "argosy/ps/server.h"
#include "argosy/train/checkpoint.h"

namespace argosy {
namespace {

constexpr const char* kGathers = "job";  // the series

// How the numbers of milestones are made up.
constexpr uint32_t kPerPass = 4, kPerEpoch = 128;
constexpr uint32_t kTrained = kPerPass * SharedFiles::kMostPasses + kPerPass;  // in an epoch
static_assert(kTrained + 1 < kPerEpoch);

uint32_t number_in(int epoch, uint64_t number) {
  return static_cast<uint32_t>(static_cast<uint64_t>(epoch) * kPerEpoch + number);
}

/// The save that a server in place of a lost one begins with.
struct Comeback {
  Save save;
  bool own = true;  // of this job, not of the one that it resumes
};

Comeback find_comeback(const Job& job, const SaveNotes& notes) {
  const std::string& folder = job.options().saves;
  std::optional<Save> save = notes.newest();
  const bool own = save.has_value();
  if (!save && job.resumes()) save = newest_save(job.env(), folder);
  check<IoError>(save.has_value(), "server ", job.role().index,
                 " was lost and there is no saved model of this job",
                 folder.empty() ? "" : " below " + folder, ": its part of the parameters is gone");
  return {*save, own};
}

/// Loads the last save into a server that replaces a lost one.
void come_back(const Job& job, const Comeback& from, const ps::Placement& placement,
               ps::Server& server) {
  const int index = job.role().index;
  const SavedPart part =
      load_part(job.env(), from.save.folder, placement, static_cast<uint32_t>(index), server);
  const int epoch = part.resume.epoch - 1;  // the last one trained
  const auto written = std::chrono::file_clock::to_sys(from.save.written);
  job.say(fmt::format(
      "server {} came back with the model of {}: {}saved {:%Y-%m-%d %H:%M:%S}, step {}; what it "
      "learned since then is lost",
      index, std::filesystem::proximate(from.save.folder).string(),
      epoch > 0 ? fmt::format("epoch {}, ", epoch - 1) : "",
      fmt::localtime(std::chrono::system_clock::to_time_t(
          std::chrono::time_point_cast<std::chrono::system_clock::duration>(written))),
      server.step()));
  if (!part.mark) return;
  server.goes_on_from(*part.mark,
                      from.own && epoch > 0 ? Milestone::trained(epoch).number : uint32_t{0});
}

std::string text_of(const Trained& trained) {
  return fmt::format("batch {} of pass {}", trained.batches, trained.pass);
}

}  // namespace

/// As if the epoch before had just been saved.
Milestone Milestone::begins(int epoch) {
  return {saved(epoch - 1).number, fmt::format("epoch {} begins", epoch - 1)};
}

Milestone Milestone::passed(int epoch, uint64_t pass) {
  return {number_in(epoch, kPerPass * pass),
          fmt::format("pass {} of epoch {} is over", pass, epoch - 1)};
}

/// Not passed()'s number + 1: a worker that reaches this or trained() completes the milestones
/// before it, which tells a restarted worker how the pass ended.
Milestone Milestone::passes_on(int epoch, uint64_t pass) {
  return {number_in(epoch, kPerPass * pass + 2),
          fmt::format("pass {} of epoch {} begins", pass + 1, epoch - 1)};
}

Milestone Milestone::trained(int epoch) {
  return {number_in(epoch, kTrained), fmt::format("epoch {} is trained", epoch - 1)};
}

Milestone Milestone::saved(int epoch) {
  return {number_in(epoch, kTrained + 1), fmt::format("epoch {} is saved", epoch - 1)};
}

std::optional<int> Milestone::trained_epoch(uint64_t number) {
  if (number < trained(1).number || number % kPerEpoch != kTrained) return std::nullopt;
  return static_cast<int>(number / kPerEpoch);
}

Job::Job(Env& env, Role role, JobOptions options)
    : env_(env), role_(std::move(role)), options_(std::move(options)) {}

Job::~Job() = default;

comm::Group& Job::group(const CollectiveStrategy& strategy) {
  if (group_ != nullptr) return *group_;
  if (collective())
    group_ = comm::connect_group(env_, group_options(role_, strategy));
  else
    group_ = std::move(comm::inproc_groups(env_, 1).front());
  return *group_;
}

Wires Job::connect(const Plan& plan, const Strategy& strategy) {
  if (mode(strategy.mode).needs == Mode::Needs::ranks) {
    group(strategy.collective);
    return wires_of(group_);
  }
  if (!shared()) return {};
  steps_together_ = mode(strategy.mode).sync;
  transport_ = tcp_transport(worker_links(strategy));
  const auto servers = static_cast<uint32_t>(role_.servers.size());
  Wires wires =
      connect_servers(env_, *transport_, placement_of(plan, strategy, servers), role_, strategy);
  client_ = wires.servers;
  if (role_.restarts > 0 || resumes()) find_standing();
  if (role_.restarts > 0) {
    const std::string_view lost = mode(strategy.mode).lost_with_worker;
    lost_ = lost.empty() ? "nothing" : lost;
  }
  wires.replays = trained_;
  return wires;
}

/// For a worker that was started again, by a launcher or with all others.
void Job::find_standing() {
  Activity meeting(env_);
  meeting.begin(Doing::meeting);
  const auto reporting = report(meeting);
  if (role_.restarts == 0) {
    call(*client_, 0, ps::verbs::Progress{});  // servers have settled where they go on
    from_journals_ = ps::settling::goes_on(client_->settled());
    if (!from_journals_) return;
  }
  standing_ = call(*client_, 0, ps::verbs::Standing{kGathers});
  find_trained();
}

void Job::resume(const std::vector<Trained>& trained) {
  if (client_ != nullptr) call_all(*client_, ps::verbs::Resume{trained});
}

const Trained& Job::ask_trained() {
  if (client_ != nullptr) find_trained();
  return trained_;
}

/// Servers may differ: one that was killed has lost what this worker's process before had sent and
/// its journal had not, and a process may be killed between two frames. What a server has is not
/// pushed to it again.
void Job::find_trained() {
  const std::vector<Trained> by_server = call_all(*client_, ps::verbs::Progress{});
  const Trained most = std::ranges::max(by_server);
  std::vector<Trained> had = by_server;
  for (uint32_t server = 0; server < by_server.size(); ++server) {
    if (by_server[server] == most || can_catch_up(server, by_server[server], most)) continue;
    had[server] = most;
    say(fmt::format(
        "argosy: server {} has the data of worker {} up to {}, another server up to {}: what is "
        "between is lost in server {}",
        server, role_.index, text_of(by_server[server]), text_of(most), server));
  }
  trained_ = std::ranges::min(had);
  client_->servers_have(std::move(had));
}

/// Steps of a sync job are made by all. Those that a server has lost with all it had since a save
/// are not sent again by the other workers, so this one could not end them alone.
bool Job::can_catch_up(uint32_t server, const Trained& has, const Trained& most) const {
  const bool under_way = has.pass == most.pass && has.batches + 1 == most.batches;
  return !steps_together_ || under_way || client_->recovered(server);
}

std::unique_ptr<StatusReport> Job::report(const Activity& activity) const {
  StatusReport::Look look;
  if (collective())
    look = look_at_rank(env_, role_.index, role_.worker_num, activity);
  else if (client_ != nullptr)
    look = look_at_worker(env_, role_.index, activity, client_);
  return std::make_unique<StatusReport>(report_descriptor(), with_loss(std::move(look), lost_));
}

void Job::say(const std::string& line) const {
  fmt::print(options_.out, "{}\n", line);
  std::fflush(options_.out);
}

uint64_t Job::ask_standing() const {
  return client_ != nullptr ? call(*client_, 0, ps::verbs::Standing{kGathers}).milestone : 0;
}

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

void Job::join(const Milestone& at, MetricTally& metrics) {
  if (!connected()) return;
  const auto parts = meet(at, metrics.bytes());
  metrics.reset();
  for (const auto& part : parts) metrics.merge(part);
}

std::vector<std::vector<std::byte>> Job::gather(const std::string& name,
                                                std::span<const std::byte> mine) {
  if (!shared()) return {{mine.begin(), mine.end()}};
  if (collective()) return gather_bytes(group(), name, mine);
  check<ConfigError>(client_ != nullptr, name, ": this worker is not connected yet");
  return argosy::gather(*client_, kGathers, ++gathers_, name, mine);
}

std::vector<std::string> Job::share(std::vector<std::string> all) {
  if (!shared()) return all;
  if (collective() && all.size() < static_cast<size_t>(role_.worker_num)) {
    batches_ = {static_cast<size_t>(role_.index), static_cast<size_t>(role_.worker_num)};
    return all;
  }
  dealt_ = std::move(all);
  return file_shard(dealt_, role_.index, role_.worker_num);
}

std::shared_ptr<SharedFiles> Job::queue(std::vector<std::string> all, ps::Stealing stealing,
                                        std::function<int()> epoch) {
  check<ConfigError>(client_ != nullptr, "files can be queued once this worker is connected");
  queued_ = true;
  return job_files(*this, client_, {std::move(all), stealing, std::move(epoch)});
}

std::string Job::untrained() const {
  std::string lines;
  if (client_ == nullptr || queued_) return lines;
  for (const auto& [worker, number] : call(*client_, 0, ps::verbs::Missed{}).all) {
    const std::optional<int> epoch = Milestone::trained_epoch(number);
    if (!epoch) continue;
    const std::vector<std::string> files =
        dealt_.empty() ? std::vector<std::string>{"its share of the data"}
                       : file_shard(dealt_, static_cast<int>(worker), role_.worker_num);
    lines += fmt::format(
        "{}epoch {} ended without worker {}, which was taken for dead: not trained to the end: {}",
        lines.empty() ? "" : "; ", *epoch - 1, worker, fmt::join(files, ", "));
  }
  return lines;
}

std::string replay_text(const Strategy& strategy) {
  const std::string_view lost = mode(strategy.mode).lost_with_worker;
  return fmt::format("which are computed and not pushed{}",
                     lost.empty() ? "" : fmt::format("; {} is lost", lost));
}

std::unique_ptr<Trainer> make_trainer(Job& job, const Model& model, TrainerOptions options) {
  if (job.shared())
    options.observer =
        std::make_shared<ProgressReport>(job.env(), job.role().index, report_descriptor());
  auto recorded = std::make_unique<RecordedModel>(record(model, options));
  const Wires wires = job.connect(recorded->plan, options.strategy);
  return std::make_unique<Trainer>(job.env(), std::move(recorded), wires, std::move(options));
}

namespace {

/// Where this process keeps files that it alone needs; "": nowhere.
std::string folder_of(const Job& job) {
  const std::string& path =
      job.options().log_path.empty() ? job.role().log_path : job.options().log_path;
  return path.empty() ? job.role().notes : path;
}

/// Where a server's journal is, if it has one.
std::optional<ps::JournalOptions> journal_of(const Job& job) {
  const Role& role = job.role();
  const JobOptions& options = job.options();
  const std::string& said = options.durability.empty() ? role.durability : options.durability;
  const std::string folder = folder_of(job);
  if (folder.empty()) {
    check<ConfigError>(said.empty() || said == "none", "durability is ", said,
                       ", but there is no folder for the journals: give --log_path");
    return std::nullopt;
  }
  const Durability durability = ps::parse_durability(said.empty() ? "journal" : said);
  if (durability == Durability::none) return std::nullopt;
  return ps::JournalOptions{.folder = fmt::format("{}/journal/server-{}", folder, role.index),
                            .durability = durability};
}

/// Which run the journal is of, and whether that one goes on: as the notes say.
void find_run(const Job& job, bool again, SaveNotes& notes, ps::JournalOptions& journal) {
  journal.run = notes.run();
  if (again) {
    journal.offer = notes.resumes();
  } else if (job.resumes() && journal.run != 0) {
    notes.begin_to_resume();
    journal.offer = true;
  } else {
    notes.begin();
  }
  journal.recover = again && !journal.offer;
}

}  // namespace

void serve(const Job& job, const ps::Placement& placement, ServeOptions options) {
  const Role& role = job.role();
  const std::string& folder = job.options().saves.empty() ? role.notes : job.options().saves;
  SaveNotes notes(job.env(), folder, fmt::format("server-{}", role.index));
  std::optional<Comeback> from;
  options.journal = journal_of(job);
  if (const std::string own = folder_of(job); !own.empty() && options.table_folder.empty())
    options.table_folder = fmt::format("{}/rows/server-{}", own, role.index);
  // One that was killed before it had begun is no successor of what an earlier job has left.
  const bool again = role.restarts > 0 && notes.are_of(role.launch);
  if (options.journal)
    find_run(job, again, notes, *options.journal);
  else if (!again)
    notes.begin();
  else
    from = find_comeback(job, notes);
  std::optional<StatusReport> report;
  std::weak_ptr<ps::Server> served;
  std::function<void()> loads_if_anew;
  options.before = [&, given = std::move(options.before)](ps::Server& server) {
    notes.begun_by(role.launch);
    if (from)
      come_back(job, *from, placement, server);
    else if (given && !(options.journal && options.journal->recover) && !server.offers())
      given(server);
    if (given && server.offers()) loads_if_anew = [&] { given(server); };
    served = server.weak_from_this();
    std::string lost;
    if (again) lost = from ? "what it learned since its last save" : "nothing";
    report.emplace(report_descriptor(),
                   with_loss(look_at_server(job.env(), role.index, server.weak_from_this()), lost));
  };
  options.on_settled = [&](std::optional<uint64_t> run) {
    run ? notes.begin(*run) : notes.has_resumed();
    if (run && loads_if_anew) std::exchange(loads_if_anew, nullptr)();
  };
  bool ended = false;  // all workers have left
  options.after = [&, after = std::move(options.after)] {
    ended = served.lock()->done();
    if (after) after();
  };
  options.on_save = [&](const std::string& dir, uint64_t generation) {
    notes.add(dir, generation);
  };
  options.out = job.options().out;
  serve(job.env(), placement, role, options);
  if (ended) notes.remove();
}

}  // namespace argosy
