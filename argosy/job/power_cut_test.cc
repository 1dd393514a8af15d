// Jobs all of whose processes are lost at once, servers and workers, and which go on from the
// servers' journals: every sum is exact, in every mode, wherever the power was cut, and whichever
// worker and server is killed after that.
#include "argosy/base/rng.h"
#include "argosy/job/test_simulated.h"

namespace argosy {
namespace {

class CutJob {
 public:
  CutJob(uint64_t seed, const Strategy& strategy)
      : random_(seed, 5),
        strategy_(strategy),
        plan_(adding_plan()),
        servers_(
            seed,
            placement_of(plan_, strategy, 1 + static_cast<uint32_t>(seed % 3), {.min_block = 1}),
            kWorkers, strategy.mode == "sync",
            seed % 2 == 0 ? Durability::journal : Durability::fsync),
        cuts_left_(1 + random_.below(draws_++, 3)) {
    start_workers();
  }

  /// Throws what a worker throws.
  void run() {
    Simulation& simulation = servers_.simulation();
    while (finished_ < kWorkers) {
      simulation.run(kLimit);
      simulation.run_until([&] { return !dark_ && away_ == 0; }, kLimit);
    }
  }
  int went_on() const { return went_on_; }
  int killed() const { return killed_; }
  const std::string& log() const { return servers_.log(); }

 private:
  static constexpr uint32_t kWorkers = 2;
  static constexpr int kStepsHere = 25;

  Env::Duration some(uint64_t most_ms) { return 1ms * random_.below(draws_++, most_ms); }

  void start_worker(uint32_t number, uint32_t restarts) {
    const std::string host = worker_host(number);
    servers_.simulation().start_thread(host, host,
                                       [this, number, restarts] { work(number, restarts); });
  }
  void start_workers() {
    ++life_;
    finished_ = away_ = 0;
    has_finished_.assign(kWorkers, false);
    for (uint32_t i = 0; i < kWorkers; ++i) start_worker(i, 0);
    // In a job that went on: before that a server may lack what another one has.
    if (resumes_ && strategy_.mode != "sync") kill_worker();
    if (resumes_) kill_server();
    if (cuts_left_ == 0) return;
    --cuts_left_;
    servers_.simulation().env().schedule(some(4000), [this] {
      if (finished_ == kWorkers) return;
      dark_ = true;
      settled_ = false;
      servers_.cut_power();
      servers_.simulation().env().schedule(some(3000), [this] {
        dark_ = false;
        resumes_ = true;
        for (uint32_t i = 0; i < servers_.placement().servers; ++i)
          servers_.start(i, SimulatedServers::Begin::with_journals);
        start_workers();
      });
    });
  }

  void kill_worker() {
    const auto number = static_cast<uint32_t>(random_.below(draws_++, kWorkers));
    servers_.simulation().env().schedule(some(3000), [this, number, life = life_] {
      if (life != life_ || dark_ || has_finished_[number] || !settled_) return;
      ++killed_;
      ++away_;
      servers_.simulation().crash(worker_host(number), Simulation::Crash::process);
      servers_.simulation().env().schedule(some(3000), [this, number, life] {
        if (life != life_ || dark_) return;
        --away_;
        start_worker(number, 1);
      });
    });
  }

  /// Also one that has not gone on yet.
  void kill_server() {
    const auto number =
        static_cast<uint32_t>(random_.below(draws_++, servers_.placement().servers));
    servers_.simulation().env().schedule(some(3000), [this, number, life = life_] {
      if (life != life_ || dark_ || finished_ == kWorkers) return;
      ++killed_;
      servers_.lose_server(number);
      servers_.simulation().env().schedule(some(3000), [this, number, life] {
        if (life == life_ && !dark_) servers_.start(number, SimulatedServers::Begin::again);
      });
    });
  }

  void work(uint32_t number, uint32_t restarts) {
    const auto client = servers_.connect(number, restarts);
    CountingTrainer trainer(plan_, strategy_, client, number, kWorkers, kStepsHere);
    ps::verbs::Standing::Result from;
    Trained before;  // that all servers have
    if (resumes_) {
      call(*client, 0, ps::verbs::Progress{});
      if (ps::settling::goes_on(client->settled())) {
        if (number == 0 && restarts == 0) ++went_on_;
        settled_ = true;
        from = call(*client, 0, ps::verbs::Standing{});
        const auto by_server = call_all(*client, ps::verbs::Progress{});
        before = std::ranges::min(by_server);
        client->servers_have(by_server);
        if (strategy_.mode == "sync") {
          EXPECT_EQ(std::ranges::max(by_server), before);
        }
      }
    }
    for (uint32_t epoch = 1; epoch <= kEpochs; ++epoch) {
      if (trained(epoch) > from.milestone) {
        trainer.train(epoch, kStepsHere - (before.pass == epoch ? before.batches : 0));
        milestone(*client, trained(epoch), "trained", {});
      }
      if (looked(epoch) > from.milestone) {
        check(number, epoch, trainer.look());
        milestone(*client, looked(epoch), "looked", {});
      }
    }
    trainer.leave();
    client->close();
    has_finished_[number] = true;
    ++finished_;
  }

  /// Everybody has trained the epoch, nobody trains the next one.
  void check(uint32_t number, uint32_t epoch, const CountingTrainer::Sums& sums) const {
    const auto own = static_cast<float>(kStepsHere * epoch);
    const CountingTrainer::Sums expected{own, own * kWorkers, own * kWorkers, own * kWorkers};
    EXPECT_TRUE(sums == expected) << "worker " << number << " sees " << sums.own << ", "
                                  << sums.shared << ", " << sums.w << ", " << sums.b << " of "
                                  << own << ", " << own * kWorkers;
  }

  const RandomStream random_;
  uint64_t draws_ = 0;
  const Strategy strategy_;
  const Plan plan_;
  SimulatedServers servers_;
  uint64_t cuts_left_;
  uint32_t finished_ = 0;
  std::vector<bool> has_finished_;  // by worker
  uint32_t away_ = 0;               // killed, will be started again
  bool dark_ = false, resumes_ = false, settled_ = false;
  int life_ = 0, went_on_ = 0, killed_ = 0;
};

TEST(PowerCut, NothingIsLostOrDoubledInAnyMode) {
  int went_on = 0, killed = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    for (const Strategy& strategy : server_strategies()) {
      SCOPED_TRACE(
          fmt::format("{}, max_merge {}, seed {}", strategy.mode, strategy.max_merge, seed));
      CutJob job(seed, strategy);
      ASSERT_NO_THROW(job.run()) << job.log();
      if (HasFailure()) FAIL() << job.log();
      went_on += job.went_on();
      killed += job.killed();
    }
  }
  EXPECT_GT(went_on, 200);
  EXPECT_GT(killed, 50);
}

}  // namespace
}  // namespace argosy
