// Exact counts for each mode: sums to the bit, which earlier batches a batch sees, and the traffic
// it causes. tests/conformance/modes_conformance_test.cc has the contract common to all modes.
#include <gtest/gtest.h>

#include <set>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/modes/test_modes.h"

namespace argosy {
namespace {

constexpr uint32_t kServers = 2;
constexpr int kBatches = 11;

class ModesTest : public testing::Test {
 protected:
  std::unique_ptr<Env> env_ = real_env();
  const Plan plan_ = integer_plan();

  /// One worker and its servers; what is there at the end.
  Integers train_alone(const Strategy& strategy, const std::vector<int>& batches,
                       const IntegerWorker::OnFetch& on_fetch = {},
                       const std::function<void(IntegerWorker&)>& look = {}) {
    IntegerServers servers(*env_, plan_, strategy, kServers, 1);
    IntegerWorker worker(*env_, plan_, servers, strategy, 0);
    worker.train(batches, on_fetch);
    if (look) look(worker);
    Integers result = integers_of(worker.communicator().store());
    worker.communicator().pass(Pass::leave);
    servers.wait();
    return result;
  }
};

TEST_F(ModesTest, UnknownNamesAreRefusedWithTheNearest) {
  EXPECT_EQ(message_of<ConfigError>([] { mode("half_asynch"); }),
            "mode 'half_asynch' is not known; did you mean half_async? There are: async, "
            "collective, geo, half_async, local, sync");
}

TEST_F(ModesTest, SyncSeesTheMeanOfAllWorkersUpToTheStepBefore) {
  for (const int workers : {1, 2, 4}) {
    const Strategy strategy{.mode = "sync"};
    IntegerServers servers(*env_, plan_, strategy, kServers, workers);
    comm::on_threads(workers, [&](int index) {
      IntegerWorker worker(*env_, plan_, servers, strategy, index);
      worker.train({kBatches}, [&](int number, const IntegerBatch& batch) {
        EXPECT_EQ(batch.seen(), seen_of(sum_of(plan_, workers, {number - 1}, 1.0 / workers), batch))
            << "worker " << index << " batch " << number;
      });
      // Each push takes the next pull along: only the first pull is alone.
      for (uint32_t server = 0; server < kServers; ++server) {
        EXPECT_EQ(worker.sent(server).exchanges, kBatches + 1U);
        EXPECT_EQ(worker.sent(server).pushes, static_cast<uint64_t>(kBatches));
      }
      EXPECT_EQ(worker.client().staleness().steps, 0U);
      worker.communicator().pass(Pass::leave);
    });
    servers.wait();
  }
}

TEST_F(ModesTest, AsyncSeesItsOwnBatchesButTheLastOne) {
  const auto on_fetch = [&](int number, const IntegerBatch& batch) {
    EXPECT_EQ(batch.seen(), seen_of(sum_of(plan_, 1, {number - 2}), batch)) << "batch " << number;
  };
  const Integers end =
      train_alone({.mode = "async"}, {kBatches}, on_fetch, [&](IntegerWorker& worker) {
        for (uint32_t server = 0; server < kServers; ++server) {
          EXPECT_EQ(worker.sent(server).exchanges, kBatches + 2U);  // two pulls are ahead
          EXPECT_EQ(worker.sent(server).pushes, static_cast<uint64_t>(kBatches));
        }
        const ps::Client::Staleness staleness = worker.client().staleness();
        EXPECT_EQ(staleness.pushes, kServers * kBatches);
        EXPECT_EQ(staleness.steps, kServers * (kBatches - 1U));  // one step each, but for the first
      });
  EXPECT_EQ(end, sum_of(plan_, 1, {kBatches}));
}

TEST_F(ModesTest, MergedAsyncPushesSumsOfSeveralBatches) {
  for (const int merge : {2, 3, 4}) {
    // A batch's pull goes out with the commit two batches earlier, after whole pushes.
    const auto applied = [&](int number) { return std::max(number - 2, 0) / merge; };
    const auto on_fetch = [&](int number, const IntegerBatch& batch) {
      EXPECT_EQ(batch.seen(), seen_of(sum_of(plan_, 1, {applied(number) * merge}), batch))
          << "batch " << number << " of " << merge;
    };
    uint64_t steps = 0;  // from its pull to its push, of all batches
    for (int number = 1; number <= kBatches; ++number)
      steps += static_cast<uint64_t>((number + merge - 1) / merge - 1 - applied(number));
    const Strategy strategy{.mode = "async", .max_merge = merge};
    const Integers end = train_alone(strategy, {kBatches}, on_fetch, [&](IntegerWorker& worker) {
      for (uint32_t server = 0; server < kServers; ++server)
        EXPECT_EQ(worker.sent(server).pushes,
                  static_cast<uint64_t>((kBatches + merge - 1) / merge));
      EXPECT_EQ(worker.client().staleness().pushes, kServers * kBatches);
      EXPECT_EQ(worker.client().staleness().steps, kServers * steps);
    });
    EXPECT_EQ(end, sum_of(plan_, 1, {kBatches}));
  }
}

TEST_F(ModesTest, AsyncThreadsAndWorkersAddUpToTheBit) {
  for (const Strategy& strategy :
       {Strategy{.mode = "async", .threads = 3},
        Strategy{.mode = "async", .threads = 2, .max_merge = 3},
        Strategy{.mode = "async", .threads = 2, .max_merge = 2, .send_queue = 1}}) {
    std::vector<int> batches;  // not as many on each thread
    for (int thread = 0; thread < strategy.threads; ++thread) batches.push_back(kBatches - thread);
    constexpr int kWorkers = 3;
    IntegerServers servers(*env_, plan_, strategy, kServers, kWorkers);
    std::vector<std::unique_ptr<IntegerWorker>> workers;
    for (int i = 0; i < kWorkers; ++i)
      workers.push_back(std::make_unique<IntegerWorker>(*env_, plan_, servers, strategy, i));
    comm::on_threads(kWorkers, [&](int i) { workers[static_cast<size_t>(i)]->train(batches); });
    EXPECT_EQ(integers_of(workers[0]->communicator().store()), sum_of(plan_, kWorkers, batches))
        << strategy.threads << " threads, merge " << strategy.max_merge;
    for (const auto& worker : workers) worker->communicator().pass(Pass::leave);
    servers.wait();
  }
}

TEST_F(ModesTest, AsyncHasNoMoreUnderWayThanItsQueue) {
  const Strategy strategy{.mode = "async", .send_queue = 2};
  IntegerServers servers(*env_, plan_, strategy, kServers, 1);
  IntegerWorker worker(*env_, plan_, servers, strategy, 0);
  worker.train({60}, [&](int, const IntegerBatch&) {
    // One of the two pulls ahead may not have come yet.
    EXPECT_LE(worker.client().under_way(), 3U);
  });
  worker.communicator().pass(Pass::leave);
  servers.wait();
}

TEST_F(ModesTest, HalfAsyncSeesEveryRoundOfItsThreads) {
  constexpr int kThreads = 3;
  const Strategy strategy{.mode = "half_async", .threads = kThreads};
  const auto on_fetch = [&](int number, const IntegerBatch& batch) {
    const std::vector<int> before(kThreads, number - 1);
    EXPECT_EQ(batch.seen(), seen_of(sum_of(plan_, 1, before), batch)) << "round " << number;
  };
  const std::vector<int> batches(kThreads, kBatches);
  const Integers end = train_alone(strategy, batches, on_fetch, [&](IntegerWorker& worker) {
    for (uint32_t server = 0; server < kServers; ++server) {
      EXPECT_EQ(worker.sent(server).pushes, static_cast<uint64_t>(kBatches));
      EXPECT_EQ(worker.sent(server).exchanges, static_cast<uint64_t>(kBatches * (kThreads + 1)));
    }
    EXPECT_EQ(worker.client().staleness().steps, 0U);
  });
  EXPECT_EQ(end, sum_of(plan_, 1, batches));
}

TEST_F(ModesTest, HalfAsyncDoesNotWaitForThreadsThatAreDone) {
  const std::vector<int> batches = {kBatches, 3, 7};
  const Integers end =
      train_alone({.mode = "half_async", .threads = 3}, batches, {}, [&](IntegerWorker& worker) {
        EXPECT_EQ(worker.sent(0).pushes, static_cast<uint64_t>(kBatches));
      });
  EXPECT_EQ(end, sum_of(plan_, 1, batches));
}

/// The formulas of docs/decisions/0008-geo.md, in doubles.
class GeoReference {
 public:
  GeoReference(int workers, double share) : share_(share), workers_(static_cast<size_t>(workers)) {}

  /// Rows that the worker has not looked at since its last exchange become up to date.
  Integers fetch(int worker, const IntegerBatch& batch) {
    Worker& own = workers_[static_cast<size_t>(worker)];
    const Integers shape = seen_of({}, batch);
    for (const auto& [name, first] : shape.parameters)
      for (Integers* values : {&own.values, &own.known, &server_})
        values->parameters.try_emplace(name, first);
    for (const auto& [place, first] : shape.rows) {
      for (Integers* values : {&own.values, &own.known, &server_})
        values->rows.try_emplace(place, first);
      if (own.is_new.insert(place).second)
        take(own.values.rows[place], own.known.rows[place], server_.rows[place]);
      own.dirty.insert(place);
    }
    return seen_of(own.values, batch);
  }
  void commit(int worker, const IntegerBatch& batch) {
    workers_[static_cast<size_t>(worker)].values.add(batch.gradients());
  }
  void exchange(int worker) {
    Worker& own = workers_[static_cast<size_t>(worker)];
    for (auto& [name, values] : own.values.parameters)
      swap_differences(values, own.known.parameters[name], server_.parameters[name]);
    for (const auto& place : own.dirty)
      swap_differences(own.values.rows[place], own.known.rows[place], server_.rows[place]);
    own.is_new = std::exchange(own.dirty, {});
  }
  const Integers& server() const { return server_; }

 private:
  using Row = std::pair<std::string, Key>;
  struct Worker {
    Integers values, known;
    std::set<Row> is_new, dirty;  // since the last exchange
  };
  static void take(std::vector<double>& values, std::vector<double>& known,
                   const std::vector<double>& server) {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] += server[i] - known[i];
      known[i] = server[i];
    }
  }
  void swap_differences(std::vector<double>& values, std::vector<double>& known,
                        std::vector<double>& server) const {
    for (size_t i = 0; i < values.size(); ++i) {
      const double delta = (values[i] - known[i]) * share_;
      server[i] += delta;
      known[i] += delta;
    }
    take(values, known, server);
  }

  double share_;
  Integers server_;
  std::vector<Worker> workers_;
};

TEST_F(ModesTest, GeoIsTheServersPlusItsOwnDifferences) {
  constexpr int kWorkers = 2, kGeoStep = 3;
  for (const bool mean : {false, true}) {
    const Strategy strategy{.mode = "geo", .geo_step = kGeoStep, .geo_mean = mean};
    IntegerServers servers(*env_, plan_, strategy, kServers, kWorkers);
    std::vector<std::unique_ptr<IntegerWorker>> workers;
    GeoReference reference(kWorkers, mean ? 1.0 / kWorkers : 1);
    for (int i = 0; i < kWorkers; ++i) {
      workers.push_back(std::make_unique<IntegerWorker>(*env_, plan_, servers, strategy, i));
      workers.back()->communicator().pass(Pass::begin);
    }
    const auto batch_of = [&](int worker, int number) {
      workers[static_cast<size_t>(worker)]->train_one(number, [&](int, const IntegerBatch& batch) {
        EXPECT_EQ(batch.seen(), reference.fetch(worker, batch))
            << "worker " << worker << " batch " << number << (mean ? " mean" : " sum");
        reference.commit(worker, batch);
      });
      if (number % kGeoStep == 0) reference.exchange(worker);
    };
    // The first is two batches ahead most of the time.
    for (int number = 1; number <= kBatches; ++number) {
      batch_of(0, number);
      if (number > 2) batch_of(1, number - 2);
    }
    for (int i = 0; i < kWorkers; ++i) {
      IntegerWorker& worker = *workers[static_cast<size_t>(i)];
      worker.communicator().drain();
      const int batches = kBatches - 2 * i;
      if (batches % kGeoStep != 0) reference.exchange(i);
      // One push when the pass begins, and one for every geo_step batches.
      EXPECT_EQ(worker.sent(0).pushes, 1U + (batches + kGeoStep - 1) / kGeoStep);
    }
    EXPECT_EQ(integers_of(workers[0]->communicator().store()), reference.server());
    for (const auto& worker : workers) worker->communicator().pass(Pass::leave);
    servers.wait();
  }
}

TEST_F(ModesTest, GeoThreadsAndWorkersAddUpToTheBit) {
  constexpr int kWorkers = 2;
  const Strategy strategy{.mode = "geo", .threads = 2, .geo_step = 4, .geo_mean = false};
  const std::vector<int> batches = {kBatches, kBatches - 2};
  IntegerServers servers(*env_, plan_, strategy, kServers, kWorkers);
  std::vector<std::unique_ptr<IntegerWorker>> workers;
  for (int i = 0; i < kWorkers; ++i)
    workers.push_back(std::make_unique<IntegerWorker>(*env_, plan_, servers, strategy, i));
  comm::on_threads(kWorkers, [&](int i) { workers[static_cast<size_t>(i)]->train(batches); });
  EXPECT_EQ(integers_of(workers[0]->communicator().store()), sum_of(plan_, kWorkers, batches));
  for (const auto& worker : workers) {
    EXPECT_EQ(worker->sent(0).pushes, 1U + kBatches * 2 / 4);  // 20 batches, and the beginning
    worker->communicator().pass(Pass::leave);
  }
  servers.wait();
}

/// Every batch exchanges differences, while the other threads change the same weights.
TEST_F(ModesTest, GeoLosesNothingBetweenThreads) {
  const Strategy strategy{.mode = "geo", .threads = 4, .geo_step = 1, .geo_mean = false};
  const std::vector<int> batches(4, 60);
  const Integers end = train_alone(strategy, batches, {}, [&](IntegerWorker& worker) {
    EXPECT_EQ(worker.sent(0).pushes, 1U + 4 * 60);
  });
  EXPECT_EQ(end, sum_of(plan_, 1, batches));
}

}  // namespace
}  // namespace argosy
