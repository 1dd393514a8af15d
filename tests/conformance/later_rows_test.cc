// No user of tables relies on the place of rows or on their being ready at once: all of them run
// here on a table whose rows are ready later, in any order, and move (later_table.h).
#include "tests/conformance/later_table.h"

#include <gtest/gtest.h>

#include <future>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/modes/test_modes.h"
#include "argosy/ps/test_cluster.h"
#include "argosy/ps/test_exchanges.h"

namespace argosy {
namespace {

/// Expects that its test had to wait for rows.
class Waits {
 public:
  Waits() = default;
  ~Waits() { EXPECT_GT(ps::tables::LaterTable::waits(), before_); }
  Waits(const Waits&) = delete;
  Waits& operator=(const Waits&) = delete;

 private:
  const uint64_t before_ = ps::tables::LaterTable::waits();
};

class ModesOnLaterRows : public testing::TestWithParam<std::string> {
 protected:
  ModesOnLaterRows() {
    for (ps::TableSpec& table : job_.plan.tables) table.store = "later";
  }
  /// Also of a save that is loaded again, where the first worker alone can do that.
  void expect_sums() {
    job_.train(2, [&](IntegerWorker& first) {
      TableStore& store = first.communicator().store();
      EXPECT_EQ(integers_of(store), job_.sum(2));
      if (job_.mode.needs == Mode::Needs::ranks) return;
      const TestFolder folder;
      const auto save = store.save(*job_.env, folder.path(), 1);
      EXPECT_EQ(save.files.size(),
                job_.plan.tables.size() * (job_.mode.needs == Mode::Needs::servers
                                               ? static_cast<size_t>(IntegerJob::kServers)
                                               : 1));
      store.load(*job_.env, folder.path(), save.files);
      EXPECT_EQ(integers_of(store), job_.sum(2));
    });
  }
  const Waits waits_;
  IntegerJob job_{GetParam()};
};

TEST_P(ModesOnLaterRows, ApplyWhatIsCommittedExactlyOnce) { expect_sums(); }

class ServersOnLaterRows : public ModesOnLaterRows {};

TEST_P(ServersOnLaterRows, ApplyItExactlyOnceByThreadsOfTheServers) {
  job_.server_threads = 2;
  expect_sums();
}

TEST_P(ServersOnLaterRows, LoseAndRepeatNothingWhenLinksBreak) {
  job_.server_threads = 2;
  job_.break_every = 12;
  expect_sums();
}

std::vector<std::string> mode_names(const std::function<bool(const Mode&)>& wanted) {
  std::vector<std::string> all;
  for (const Mode& mode : modes())
    if (wanted(mode)) all.push_back(mode.name);
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, ModesOnLaterRows,
                         testing::ValuesIn(mode_names([](const Mode&) { return true; })),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(All, ServersOnLaterRows,
                         testing::ValuesIn(mode_names([](const Mode& mode) {
                           return mode.needs == Mode::Needs::servers;
                         })),
                         [](const auto& info) { return info.param; });

/// One table whose rows come later and one whose rows are at hand, looked up by the same keys.
ps::Placement mixed_placement() {
  ps::TableSpec later{
      .name = "later", .dim = 2, .rule = "add", .learning_rate = "1", .track_unseen = true};
  ps::TableSpec at_hand = later;
  at_hand.name = "at_hand";
  later.store = "later";
  return ps::place({}, {later, at_hand}, {0, 0}, 1);
}

/// Sends without waiting, each exchange with the push of the one before and a pull of the same
/// keys: its own, which only it pushes, and one that all push.
class EagerWorker {
 public:
  static constexpr Key kShared = 1;
  static constexpr size_t kKeys = 40;

  EagerWorker(Env& env, Endpoint server, uint32_t number, uint32_t workers)
      : client_(ps::Client::make(env, *transport_, mixed_placement(),
                                 {.servers = {server}, .worker = number, .workers = workers})) {
    keys_[0] = {kShared};
    for (Key key = 1; key < kKeys; ++key) keys_[0].push_back(mix(1000 * (number + 1) + key));
  }
  ~EagerWorker() { client_->close(); }
  EagerWorker(const EagerWorker&) = delete;
  EagerWorker& operator=(const EagerWorker&) = delete;

  void run(size_t exchanges) {
    struct Sent {
      std::vector<float> rows[2];
      std::future<void> done;
    };
    std::deque<Sent> sent;
    std::shared_ptr<ps::KeyLists> before;
    std::vector<size_t> order;
    Log log;
    for (size_t i = 0; i < exchanges; ++i) {
      auto exchange = std::make_shared<ps::Exchange>();
      if (before != nullptr) exchange->pushes.push_back({before, {ones_, ones_}});
      exchange->lists = before = std::make_shared<ps::KeyLists>(client_->placement(), keys_);
      Sent& one = sent.emplace_back();
      for (std::vector<float>& rows : one.rows)
        exchange->rows.emplace_back(rows = std::vector<float>(2 * kKeys, -99.0F));
      const auto promise = std::make_shared<std::promise<void>>();
      one.done = promise->get_future();
      exchange->done = [&, i, promise](std::exception_ptr error) {
        log.change([&] { order.push_back(i); });
        error == nullptr ? promise->set_value() : promise->set_exception(error);
      };
      client_->exchange(std::move(exchange));
      if (i >= kUnderWay) await(sent[i - kUnderWay].done);
    }
    for (size_t i = 0; i < exchanges; ++i) {
      if (sent[i].done.valid()) await(sent[i].done);
      EXPECT_EQ(order[i], i);
      for (const std::vector<float>& rows : sent[i].rows)
        EXPECT_EQ(std::vector<float>(rows.begin() + 2, rows.end()),
                  std::vector<float>(2 * (kKeys - 1), static_cast<float>(i)));
    }
  }
  ps::Client& client() { return *client_; }

 private:
  static constexpr size_t kUnderWay = 6;
  static void await(std::future<void>& done) {
    if (done.wait_for(kTestDeadline) != std::future_status::ready)
      throw std::runtime_error("no answer came");
    done.get();
  }

  std::vector<std::vector<Key>> keys_ = std::vector<std::vector<Key>>(1);
  const std::vector<float> ones_ = std::vector<float>(2 * kKeys, 1.0F);
  std::unique_ptr<Transport> transport_ = tcp_transport();
  std::shared_ptr<ps::Client> client_;
};

/// With exchanges of many workers under way, and saves, loads, shrinks and walks beside them.
TEST(ServerOnLaterRows, KeepsTheOrderOfEachWorkerAndAllSums) {
  constexpr uint32_t kWorkers = 3;
  constexpr size_t kExchanges = 60;
  const Waits waits;
  for (const size_t threads : {0, 1, 2, 3}) {
    SCOPED_TRACE("threads " + std::to_string(threads));
    const auto env = real_env();
    const TestFolder folder;
    const auto server =
        ps::Server::make(*env, mixed_placement(), {.workers = kWorkers + 1, .threads = threads});
    const auto transport = tcp_transport();
    const Endpoint at = transport->listen({"127.0.0.1", 0}, server->acceptor());
    EagerWorker looks_on(*env, at, kWorkers, kWorkers + 1);
    std::vector<std::future<void>> workers;
    std::deque<EagerWorker> all;
    for (uint32_t i = 0; i < kWorkers; ++i) {
      EagerWorker& worker = all.emplace_back(*env, at, i, kWorkers + 1);
      workers.push_back(std::async(std::launch::async, [&] { worker.run(kExchanges); }));
    }
    for (int i = 0; i < 5; ++i) {
      call(looks_on.client(), ps::verbs::Save{.generation = 1, .folder = folder.path()});
      EXPECT_EQ(call(looks_on.client(), ps::verbs::Shrink{.unseen = 1000}).erased, 0U);
      call(looks_on.client(), ps::verbs::ReadRows{.table = "later", .from = {}});
    }
    for (auto& worker : workers) worker.get();
    const std::vector<Key> shared = {EagerWorker::kShared};
    for (const char* const table : {"later", "at_hand"})
      EXPECT_EQ(peek(server->shard().table(table), shared),
                std::vector<float>(2, kWorkers * (kExchanges - 1)));
  }
}

/// On a bad network, where the tables' threads are simulated with everything else.
TEST(ClusterOnLaterRows, HasExactSumsAndNobodyHangs) {
  const Waits waits;
  for (uint64_t seed = 0; seed < 30; ++seed) ps::expect_exact_sums(seed, "later");
}

TEST(ClusterOnLaterRows, SyncAppliesTheMeanOfEveryStep) {
  const Waits waits;
  ps::Cluster cluster(
      1, {.servers = 2, .workers = 4, .steps = 12, .sync = true, .faults = {}, .store = "later"});
  ASSERT_TRUE(cluster.run()) << cluster.log();
  EXPECT_EQ(cluster.value(ps::kShared), 12.0F);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(cluster.value(i), 12.0F / 4);
}

}  // namespace
}  // namespace argosy
