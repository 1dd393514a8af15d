// Jobs whose workers and servers crash and come back, with communicators of every mode of servers:
// sums are exact, or what was lost or repeated is told.
#include <limits>
#include <regex>

#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"
#include "argosy/job/test_simulated.h"
#include "argosy/modes/mode.h"

namespace argosy {
namespace {

/// The process that crashes, and when.
enum class Crash : uint8_t {
  worker,          // at any time
  server_at_rest,  // between two epochs, when it has just saved
  server_at_work,  // at any time after the first save, which loses later updates
  worker_and_then_server,
};

class CrashingJob {
 public:
  CrashingJob(uint64_t seed, const Strategy& strategy, Crash crash)
      : random_(seed),
        crash_(crash),
        strategy_(strategy),
        plan_(adding_plan()),
        repeated_(kWorkers),
        finished_(kWorkers),
        servers_(seed, placement_of(plan_, strategy, servers(seed), {.min_block = 1}), kWorkers,
                 strategy.mode == "sync") {
    for (uint32_t i = 0; i < kWorkers; ++i) start_worker(i, 0);
    if (crash_ == Crash::worker || crash_ == Crash::worker_and_then_server) crash_worker();
  }

  /// Throws what a worker throws.
  void run() {
    Simulation& simulation = servers_.simulation();
    while (std::ranges::find(finished_, false) != finished_.end()) {
      simulation.run(kLimit);
      simulation.run_until([&] { return coming_ == 0; }, kLimit);
    }
    for (const Seen& seen : seen_) check(seen);
  }
  int crashes() const { return crashes_; }
  const std::string& log() const { return servers_.log(); }

 private:
  static constexpr uint32_t kWorkers = 2;

  /// The last exchange of a worker that crashes may have come to one of two servers only.
  uint32_t servers(uint64_t seed) const {
    return crash_ == Crash::server_at_rest ? 1 + static_cast<uint32_t>(seed % 2) : 1;
  }
  /// Whether the progress reported by a restarted worker's pushes is a number of batches.
  bool counts_batches() const {
    return mode(strategy_.mode).batches_per_push(strategy_) == 1 && strategy_.mode != "half_async";
  }
  Env::Duration some(uint64_t most_ms) { return 1ms * random_.below(draws_++, most_ms); }

  void start_worker(uint32_t number, uint32_t restarts) {
    const std::string host = worker_host(number);
    servers_.simulation().start_thread(host, host,
                                       [this, number, restarts] { work(number, restarts); });
  }
  void crash_worker() {
    const auto number = static_cast<uint32_t>(random_.below(draws_++, kWorkers));
    const Env::Duration away = some(5000);  // shorter than the grace of servers
    servers_.simulation().env().schedule(some(2000), [this, number, away] {
      if (finished_[number]) return;
      ++crashes_;
      servers_.simulation().crash(worker_host(number));
      ++coming_;
      servers_.simulation().env().schedule(away, [this, number] {
        --coming_;
        start_worker(number, 1);
      });
    });
  }

  void work(uint32_t number, uint32_t restarts) {
    const auto client = servers_.connect(number, restarts);
    CountingTrainer trainer(plan_, strategy_, client, number, kWorkers);
    ps::verbs::Standing::Result from;
    Trained before;  // that the servers have of the process before this one
    if (restarts > 0) {
      from = call(*client, 0, ps::verbs::Standing{});
      before = std::ranges::max(call_all(*client, ps::verbs::Progress{}));
    }
    for (uint32_t epoch = 1; epoch <= kEpochs; ++epoch) {
      if (trained(epoch) > from.milestone) {
        trainer.train(epoch, before.pass == epoch ? steps_left(number, before.batches) : kSteps);
        milestone(*client, trained(epoch), "trained", {});
      }
      if (looked(epoch) > from.milestone) {
        seen_.push_back({number, epoch, trainer.look(), repeated_});
        if (number == 0 && epoch < kEpochs) save_and_crash(*client, epoch);
        milestone(*client, looked(epoch), "looked", {});
      }
    }
    someone_leaves_ = true;
    trainer.leave();
    client->close();
    finished_[number] = true;
  }

  /// If a push is not one batch, the whole epoch is trained again.
  size_t steps_left(uint32_t number, uint64_t batches) {
    if (counts_batches()) return kSteps - std::min<size_t>(batches, kSteps);
    repeated_[number] += static_cast<float>(std::min<uint64_t>(batches, kSteps));
    return kSteps;
  }

  /// By the first worker, while the others wait for it.
  void save_and_crash(ps::Client& client, uint32_t epoch) {
    if (crash_ == Crash::worker) return;
    const uint32_t lost = epoch % servers_.placement().servers;
    saved_ = call(client, lost, ps::verbs::Save{epoch, "saves"});
    parameters_ = call(client, lost, ps::verbs::ReadParameters{});
    mark_ = call(client, lost, ps::verbs::Mark{});
    if (crash_ == Crash::server_at_rest) return crash_server(lost, epoch);
    servers_.simulation().env().schedule(some(1000), [this, lost, epoch] {
      if (std::ranges::find(finished_, false) != finished_.end()) crash_server(lost, epoch);
    });
  }
  void crash_server(uint32_t lost, uint32_t epoch) {
    ++crashes_;
    lost_of_leavers_ = lost_of_leavers_ || someone_leaves_;
    servers_.simulation().crash(server_host(lost));
    const auto server = servers_.start(lost);
    server->shard().load(server->env(), "saves", saved_.files);
    server->shard().set_parameters(parameters_.values);
    server->set_step(parameters_.step);
    server->goes_on_from(mark_, trained(epoch));
  }

  /// Batches of all workers that the server's log says are lost: by exchange, and by step, as a
  /// worker that was away does not know what its process before had sent.
  float told_lost() const {
    // Who has left cannot tell; that there is a loss is said by the job (job/job.cc), not here.
    if (lost_of_leavers_) return std::numeric_limits<float>::max();
    float exchanges = 0, steps = 0;
    const std::regex words("([0-9]+) are lost; it saw .*, ([0-9]+) steps are lost");
    const std::string& text = servers_.log();
    for (std::sregex_iterator at(text.begin(), text.end(), words), end; at != end; ++at) {
      exchanges += std::stof((*at)[1]);
      steps = std::max(steps, std::stof((*at)[2]));
    }
    const auto& its_mode = mode(strategy_.mode);
    return std::max(exchanges, steps * (its_mode.sync ? kWorkers : 1)) *
           static_cast<float>(its_mode.batches_per_push(strategy_));
  }

  /// What a worker saw when everybody had trained the epoch and nobody trained the next one.
  struct Seen {
    uint32_t number = 0, epoch = 0;
    CountingTrainer::Sums sums;
    std::vector<float> repeated;
  };

  /// When the log is complete: the losses of a worker may be told after another one has looked.
  void check(const Seen& seen) const {
    const auto own = static_cast<float>(kSteps * seen.epoch);
    const float all = own * kWorkers, lost = told_lost();
    // Workers of a sync job that lost a step may be a step apart: the last is the mean of one.
    const float alone = mode(strategy_.mode).sync ? lost * (kWorkers - 1) : 0;
    const auto expect = [&](const char* what, float value, float wanted, float repeated) {
      EXPECT_TRUE(wanted - lost <= value && value <= wanted + repeated + alone)
          << "worker " << seen.number << " sees " << what << " " << value << " of " << wanted
          << ", " << lost << " lost, " << repeated << " repeated";
    };
    const float repeated = seen.repeated[0] + seen.repeated[1];
    expect("own", seen.sums.own, own, seen.repeated[seen.number]);
    expect("shared", seen.sums.shared, all, repeated);
    expect("w", seen.sums.w, all, repeated);
    expect("b", seen.sums.b, all, repeated);
  }

  const RandomStream random_;
  uint64_t draws_ = 0;
  const Crash crash_;
  const Strategy strategy_;
  const Plan plan_;
  std::vector<float> repeated_;  // batches, by worker, as its new process was told
  std::vector<bool> finished_;   // by worker
  std::vector<Seen> seen_;
  bool someone_leaves_ = false, lost_of_leavers_ = false;
  int crashes_ = 0, coming_ = 0;
  ps::verbs::Save::Result saved_;
  ps::verbs::ReadParameters::Result parameters_;
  ps::ServerMark mark_;
  SimulatedServers servers_;
};

struct Case {
  Crash crash;
  const char* name;
};

class SimulatedRestarts : public testing::TestWithParam<Case> {};

/// A hundred jobs of each kind.
TEST_P(SimulatedRestarts, SumsAreExactOrTheLossIsTold) {
  int crashes = 0;
  const auto [first, last] = seeds_to(20);
  for (uint64_t seed = first; seed <= last; ++seed) {
    for (const Strategy& strategy : server_strategies()) {
      SCOPED_TRACE(
          fmt::format("{}, max_merge {}, seed {}", strategy.mode, strategy.max_merge, seed));
      CrashingJob job(seed, strategy, GetParam().crash);
      ASSERT_NO_THROW(job.run()) << job.log();
      if (HasFailure()) FAIL() << job.log();
      crashes += job.crashes();
    }
  }
  if (last - first >= 19) {
    EXPECT_GT(crashes, 50);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, SimulatedRestarts,
    testing::Values(Case{Crash::worker, "AWorker"}, Case{Crash::server_at_rest, "AServerAtRest"},
                    Case{Crash::server_at_work, "AServerAtWork"},
                    Case{Crash::worker_and_then_server, "AWorkerAndThenAServer"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace argosy
