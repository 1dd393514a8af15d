// Training with tables of which memory holds a third, in every mode: the same bits as with all of
// them in memory where a mode has the same bits twice, else the same rows, and it learns.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "argosy/modes/serve.h"
#include "argosy/modes/server_calls.h"
#include "argosy/train/test_ranks.h"

namespace argosy {
namespace {

constexpr uint64_t kManyIds = 1200;
constexpr int kReaders = 2;  // of files

TrainerOptions adagrad_options(bool beyond_memory) {
  TrainerOptions result = options_of("adagrad");
  if (beyond_memory)
    result.tables = {{"rows", {.store = "log(memory=56K)"}},
                     {"wide", {.store = "log(memory=72K)"}}};
  return result;
}

class RowsBeyondMemory : public SparseRanks {
 protected:
  RowsBeyondMemory() {
    files_.clear();
    for (uint64_t part = 0; part < kReaders; ++part) {
      const RandomStream random(70 + part);
      std::string text;
      for (uint64_t i = 0; i < 10 * kBatch * kBatches; ++i) {
        const uint64_t a = random.below(3 * i, kManyIds), b = random.below(3 * i + 1, kManyIds);
        text += "1 " + std::to_string(a) + " 1 " + std::to_string(b) + " 2 0.25 " +
                std::to_string(random.uniform(3 * i + 2)) +
                (a % 3 == 0 || b % 5 == 0 ? " 1 1\n" : " 1 0\n");
      }
      files_.push_back(folder_.write("many-" + std::to_string(part), text));
    }
  }

  /// Two servers and two workers over loopback.
  Outcome train_with_servers(const Strategy& strategy, bool beyond_memory) {
    const auto env = real_env();
    TrainerOptions options = adagrad_options(beyond_memory);
    options.strategy = strategy;
    const ps::Placement placement = placement_of(record(sparse_model, options).plan, strategy, 2);
    Role role{.kind = RoleKind::worker, .worker_num = kReaders};
    std::vector<std::shared_ptr<ps::Server>> servers;
    const auto transport = tcp_transport();
    for (uint32_t i = 0; i < 2; ++i) {
      servers.push_back(ps::Server::make(
          *env, placement,
          {.index = i,
           .workers = kReaders,
           .sync = strategy.mode == "sync",
           .threads = 1 + i,
           .limits = {.grace = std::chrono::milliseconds(600)},
           .table_folder = folder_.path() + "/server-" + std::to_string(runs_++)}));
      role.servers.push_back(transport->listen({"127.0.0.1", 0}, servers.back()->acceptor()));
    }
    Outcome result;
    std::vector<std::jthread> threads;
    for (int i = 0; i < kReaders; ++i)
      threads.emplace_back([&, i] {
        Role own = role;
        own.index = i;
        const auto links = tcp_transport(worker_links(strategy));
        const Wires wires = connect_servers(*env, *links, placement, own, strategy);
        Trainer trainer(*env, sparse_model, options, wires);
        const auto batches = data()(trainer.plan(), i);
        std::vector<double> losses = fit(trainer, *batches, 2);
        gather(*wires.servers, "test", 1, "all have trained", {});
        if (i == 0) {
          result = outcome_of(trainer);
          result.losses = std::move(losses);
        }
        trainer.leave();
      });
    threads.clear();
    for (const auto& server : servers) server->wait();
    return result;
  }
  /// The rows are the same ones, and it has learned.
  static void expect_trained(const Outcome& trained, const Outcome& in_memory) {
    ASSERT_EQ(trained.tables.size(), in_memory.tables.size());
    for (size_t i = 0; i < trained.tables.size(); ++i)
      EXPECT_EQ(trained.tables[i].keys, in_memory.tables[i].keys);
    const size_t n = trained.losses.size() / 4;
    double first = 0, last = 0;
    for (size_t i = 0; i < n; ++i) {
      first += trained.losses[i];
      last += trained.losses[trained.losses.size() - 1 - i];
    }
    EXPECT_LT(last, first);
  }

  std::atomic<int> runs_ = 0;
};

TEST_F(RowsBeyondMemory, GiveTheBitsOfRowsInMemoryInOneProcess) {
  const auto env = real_env();
  const auto outcome = [&](bool beyond_memory) {
    Trainer trainer(*env, sparse_model, adagrad_options(beyond_memory));
    const auto set = data()(trainer.plan(), 0);
    Outcome result = train(trainer, *set);
    EXPECT_GT(result.tables[0].keys.size(), kManyIds / 2);
    return result;
  };
  expect_same_bits(outcome(true), outcome(false));
}

TEST_F(RowsBeyondMemory, GiveTheBitsOfRowsInMemoryInSync) {
  expect_same_bits(train_with_servers({.mode = "sync"}, true),
                   train_with_servers({.mode = "sync"}, false));
}

TEST_F(RowsBeyondMemory, TrainInEveryModeOfServers) {
  const Outcome in_memory = train_with_servers({.mode = "sync"}, false);
  for (const Strategy& strategy : std::vector<Strategy>{{.mode = "async"},
                                                        {.mode = "half_async", .threads = 2},
                                                        {.mode = "geo", .geo_step = 5}}) {
    SCOPED_TRACE(strategy.mode);
    expect_trained(train_with_servers(strategy, true), in_memory);
  }
}

TEST_F(RowsBeyondMemory, GiveTheBitsOfRowsInMemoryBetweenRanks) {
  const auto outcomes = [&](bool beyond_memory) {
    TrainerOptions options = adagrad_options(beyond_memory);
    options.strategy.collective.deterministic = true;
    return train_ranks(sparse_model, options, kReaders, data());
  };
  const std::vector<Outcome> on_disk = outcomes(true), in_memory = outcomes(false);
  for (size_t rank = 0; rank < kReaders; ++rank) expect_same_bits(on_disk[rank], in_memory[rank]);
}

TEST_F(RowsBeyondMemory, GiveTheLossesOfRowsInMemoryWhereRanksShareThem) {
  const auto losses = [&](bool beyond_memory) {
    const auto env = real_env();
    TrainerOptions options = adagrad_options(beyond_memory);
    options.strategy.mode = "collective";
    options.strategy.collective.deterministic = true;
    options.strategy.collective.embedding = EmbeddingMode::sharded;
    auto groups = comm::inproc_groups(*env, kReaders, std::chrono::seconds(60));
    std::vector<std::vector<double>> all(kReaders);
    comm::on_threads(kReaders, [&](int rank) {
      const auto own = static_cast<size_t>(rank);
      Trainer trainer(*env, sparse_model, options, wires_of(std::move(groups[own])));
      const auto set = data()(trainer.plan(), rank);
      all[own] = fit(trainer, *set, 2);
      trainer.leave();
    });
    return all;
  };
  EXPECT_EQ(losses(true), losses(false));
}

TEST_F(RowsBeyondMemory, AreSavedAndLoadedAsThoseInMemory) {
  const auto env = real_env();
  Trainer on_disk(*env, sparse_model, adagrad_options(true));
  Trainer in_memory(*env, sparse_model, adagrad_options(false));
  const auto set = data()(on_disk.plan(), 0);
  train(on_disk, *set);
  TableStore& from = on_disk.communicator().store();
  TableStore& to = in_memory.communicator().store();
  for (const char* const folder : {"/saved", "/again", "/third"})
    env->make_directories(folder_.path() + folder);
  const auto saved = from.save(*env, folder_.path() + "/saved", 1);
  to.load(*env, folder_.path() + "/saved", saved.files);
  const auto again = to.save(*env, folder_.path() + "/again", 1);
  ASSERT_EQ(again.files.size(), saved.files.size());
  for (size_t i = 0; i < saved.files.size(); ++i)
    EXPECT_EQ(again.files[i].sum.sum, saved.files[i].sum.sum);
  from.load(*env, folder_.path() + "/again", again.files);
  const auto third = from.save(*env, folder_.path() + "/third", 1);
  for (size_t i = 0; i < saved.files.size(); ++i)
    EXPECT_EQ(third.files[i].sum.sum, saved.files[i].sum.sum);
}

}  // namespace
}  // namespace argosy
