// Fleet as programs use it: servers and workers over loopback TCP, all in this process.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <future>

#include "argosy/base/test_support.h"
#include "argosy/job/fleet.h"
#include "argosy/nn/layers.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

TEST(DistributedStrategy, SaysTheModeInPaddlesWords) {
  EXPECT_EQ(strategy_of({}).mode, "async");
  EXPECT_EQ(strategy_of({.a_sync = false}).mode, "sync");
  EXPECT_EQ(strategy_of({.a_sync_configs = {.half_async = true}}).mode, "half_async");
  const Strategy geo = strategy_of({.a_sync_configs = {.k_steps = 400}});
  EXPECT_EQ(geo.mode, "geo");
  EXPECT_EQ(geo.geo_step, 400);
  EXPECT_TRUE(geo.geo_mean);
  EXPECT_FALSE(strategy_of({.a_sync_configs = {.k_steps = 4, .geo_sum = true}}).geo_mean);
  const Strategy queued =
      strategy_of({.a_sync_configs = {.max_merge_var_num = 4, .send_queue_size = 32}}, 3);
  EXPECT_EQ(queued.max_merge, 4);
  EXPECT_EQ(queued.send_queue, 32);
  EXPECT_EQ(queued.threads, 3);
}

TEST(DistributedStrategy, SaysHowRanksTrain) {
  const Strategy usual = collective_strategy_of({});
  EXPECT_EQ(usual.mode, "collective");
  EXPECT_EQ(usual.accumulate, 1);
  EXPECT_EQ(usual.collective.wire, "f32");
  EXPECT_TRUE(usual.collective.fuse);
  DistributedStrategy strategy;
  strategy.gradient_scale = "sum";
  strategy.gradient_merge = true;
  strategy.gradient_merge_configs = {.k_steps = 4, .avg = false};
  strategy.fp16_allreduce = true;
  strategy.fuse_grad_size_in_MB = 8;
  const Strategy changed = collective_strategy_of(strategy);
  EXPECT_EQ(changed.accumulate, 4);
  EXPECT_FALSE(changed.accumulate_mean);
  EXPECT_EQ(changed.collective.scale, GradientScale::sum);
  EXPECT_EQ(changed.collective.wire, "bf16");
  EXPECT_EQ(changed.collective.bucket_mb, 8);
}

TEST(DistributedStrategy, OfRanksIsRefusedWithServersByName) {
  using S = DistributedStrategy;
  const std::vector<std::pair<const char*, std::function<void(S&)>>> fields = {
      {"gradient_merge", [](S& s) { s.gradient_merge = true; }},
      {"gradient_scale", [](S& s) { s.gradient_scale = "sum"; }},
      {"fp16_allreduce", [](S& s) { s.fp16_allreduce = true; }},
      {"fuse_all_reduce_ops=false", [](S& s) { s.fuse_all_reduce_ops = false; }},
      {"fuse_grad_size_in_MB", [](S& s) { s.fuse_grad_size_in_MB = 8; }},
      {"lars", [](S& s) { s.lars = true; }},
      {"lamb", [](S& s) { s.lamb = true; }},
      {"deterministic", [](S& s) { s.deterministic = true; }},
      {"sync_batch_norm", [](S& s) { s.sync_batch_norm = true; }},
      {"use_hierarchical_allreduce", [](S& s) { s.use_hierarchical_allreduce = true; }},
      {"hierarchical_allreduce_inter_nranks",
       [](S& s) { s.hierarchical_allreduce_inter_nranks = 2; }}};
  for (const auto& [name, set] : fields) {
    S strategy;
    set(strategy);
    EXPECT_EQ(message_of<ConfigError>([&] { strategy_of(strategy); }),
              std::string("strategy.") + name +
                  " is for ranks that train without servers, and there are servers");
  }
}

TEST(DistributedStrategy, WhatIsNotThereIsRefusedByName) {
  using S = DistributedStrategy;
  const std::vector<std::pair<const char*, bool S::*>> fields = {
      {"amp", &S::amp},
      {"recompute", &S::recompute},
      {"localsgd", &S::localsgd},
      {"adaptive_localsgd", &S::adaptive_localsgd},
      {"dgc", &S::dgc},
      {"sharding", &S::sharding},
      {"pipeline", &S::pipeline},
      {"tensor_parallel", &S::tensor_parallel},
      {"elastic", &S::elastic},
      {"asp", &S::asp},
      {"heter_ccl_mode", &S::heter_ccl_mode},
      {"adam_d2sum", &S::adam_d2sum},
      {"is_fl_ps_mode", &S::is_fl_ps_mode},
      {"with_coordinator", &S::with_coordinator},
      {"auto", &S::auto_}};
  for (const auto& [name, field] : fields) {
    S strategy;
    strategy.*field = true;
    const std::string expected = std::string("strategy.") + name + " is not supported";
    EXPECT_EQ(message_of<ConfigError>([&] { strategy_of(strategy); }), expected);
    EXPECT_EQ(message_of<ConfigError>([&] { collective_strategy_of(strategy); }), expected);
  }
}

TEST(DistributedStrategy, SaysHowManyRanksEachHostHas) {
  DistributedStrategy strategy;
  strategy.hierarchical_allreduce_inter_nranks = 2;
  EXPECT_EQ(message_of<ConfigError>([&] { collective_strategy_of(strategy); }),
            "hierarchical_allreduce_inter_nranks is 2, expected 1 where "
            "use_hierarchical_allreduce is false");
  strategy.use_hierarchical_allreduce = true;
  const CollectiveStrategy own = collective_strategy_of(strategy).collective;
  EXPECT_TRUE(own.hierarchical);
  EXPECT_EQ(own.ranks_per_host, 2);
}

TEST(DistributedStrategy, LarsAndLambReplaceTheRule) {
  const std::vector<std::string> names = {"fc.w", "fc.b"};
  DistributedStrategy strategy;
  strategy.lars = true;
  strategy.lars_configs.exclude_from_weight_decay = {".b"};
  Optimizer optimizer{.rule = "momentum(0.8)"};
  TablesOptions tables;
  apply_large_batch_rules(strategy, names, optimizer, tables);
  EXPECT_EQ(optimizer.rule, "lars(mu=0.8, coeff=0.001, weight_decay=0.0005, epsilon=0)");
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_EQ(tables.at("fc.b").rule, "lars(mu=0.8, coeff=0.001, weight_decay=0, epsilon=0)");
  strategy.lars = false;
  strategy.lamb = true;
  optimizer.rule = "adam(beta2=0.99)";
  apply_large_batch_rules(strategy, names, optimizer, tables);
  EXPECT_EQ(optimizer.rule, "lamb(beta1=0.9, beta2=0.99, epsilon=1e-08, weight_decay=0.01)");
  optimizer.rule = "sgd";
  EXPECT_EQ(
      message_of<ConfigError>([&] { apply_large_batch_rules(strategy, names, optimizer, tables); }),
      "strategy.lamb: the optimizer is sgd, expected adam");
}

TEST(DistributedStrategy, RefusesWhatDoesNotGoTogether) {
  const auto message = [](const DistributedStrategy& strategy) {
    return message_of<ConfigError>([&] { strategy_of(strategy); });
  };
  EXPECT_EQ(message({.a_sync_configs = {.k_steps = -1}}),
            "a_sync_configs.k_steps is -1, expected 0 for async or the batches between two "
            "exchanges of geo");
  EXPECT_EQ(message({.a_sync = false, .a_sync_configs = {.k_steps = 5}}),
            "a_sync_configs.k_steps is 5, expected 0 where a_sync is false");
  EXPECT_EQ(message({.a_sync = false, .a_sync_configs = {.half_async = true}}),
            "a_sync_configs.half_async is true, expected false where a_sync is false");
  EXPECT_EQ(message({.a_sync_configs = {.geo_sum = true}}),
            "a_sync_configs.geo_sum is true, expected false where k_steps is 0, as it is for geo");
  EXPECT_EQ(message({.a_sync_configs = {.send_queue_size = 0}}),
            "a_sync_configs.send_queue_size is 0, expected 1 or more");
}

const std::vector<SlotSpec> kSlots = {
    {"id", SlotKind::ids, 1}, {"tags", SlotKind::ids}, {"label", SlotKind::floats, 1}};

ModelOutputs model(Builder& g) {
  const Var label = g.input("label", {{-1, 1}});
  const Var rows = nn::embedding(g, std::array<std::string, 1>{"id"}, "rows", 4);
  const Var tags = nn::embedding(g, std::array<std::string, 1>{"tags"}, "tags", 2, {.pool = "sum"});
  const Var logit = nn::linear(nn::concat(std::array{rows, tags}), 1, "out");
  return {.loss = nn::logistic_loss(logit, label),
          .meters = {{"auc", "auc", nn::sigmoid(logit), label}},
          .predictions = {{"predict", nn::sigmoid(logit)}}};
}

/// Ids from `first` on, each with one to three tags unique to it; even ones are clicks.
std::string instances(uint64_t first, uint64_t rows) {
  std::string text;
  for (uint64_t id = first; id < first + rows; ++id) {
    text += "1 " + std::to_string(id) + " " + std::to_string(1 + id % 3);
    for (uint64_t tag = 0; tag <= id % 3; ++tag) text += " " + std::to_string(10 * id + tag);
    text += id % 2 == 0 ? " 1 1\n" : " 1 0\n";
  }
  return text;
}

/// A socket that listens on a free port of loopback, and that port.
std::pair<int, Endpoint> listening_socket() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(fd, 16) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("cannot listen on loopback");
  return {fd, {"127.0.0.1", ntohs(address.sin_port)}};
}

class FleetTest : public testing::Test {
 protected:
  ~FleetTest() override { std::fclose(nowhere_); }

  static void describe(Fleet& fleet, const DistributedStrategy& strategy) {
    fleet.distributed_optimizer({.rule = "adam", .learning_rate = "0.05"}, strategy)
        .minimize(model, {.seed = 7});
  }
  QueueDataset dataset(Fleet& fleet, const std::string& file) const {
    return QueueDataset(fleet.trainer().plan().layout,
                        {.files = {file}, .slots = kSlots, .batch_size = 10});
  }

  /// Servers in threads of this process, and `work` in a thread for each worker.
  template <class Work>
  void run_job(int servers, int workers, const DistributedStrategy& strategy, Work work,
               const std::string& model_dir = "") {
    std::vector<Endpoint> endpoints;
    std::vector<int> sockets;
    for (int i = 0; i < servers; ++i) {
      const auto [fd, endpoint] = listening_socket();
      sockets.push_back(fd);
      endpoints.push_back(endpoint);
    }
    std::vector<std::future<void>> all;
    for (int i = 0; i < servers; ++i)
      all.push_back(std::async(std::launch::async, [&, i] {
        Fleet fleet(*env_, nowhere_);
        Role role = user_defined_role(RoleKind::server, i, workers, endpoints);
        role.listen_fd = sockets[static_cast<size_t>(i)];
        fleet.init(role);
        describe(fleet, strategy);
        fleet.init_server(model_dir);
        fleet.run_server();
      }));
    for (int i = 0; i < workers; ++i)
      all.push_back(std::async(std::launch::async, [&, i] {
        Fleet fleet(*env_, nowhere_);
        fleet.init(user_defined_role(RoleKind::worker, i, workers, endpoints));
        describe(fleet, strategy);
        work(fleet);
        fleet.stop_worker();
      }));
    for (std::future<void>& one : all) one.get();
  }

  TestFolder folder_;
  std::unique_ptr<Env> env_ = real_env();
  std::FILE* nowhere_ = std::fopen("/dev/null", "w");
};

TEST_F(FleetTest, ErrorsNameTheCallAndWhatWasExpected) {
  Fleet fleet(*env_, nowhere_);
  EXPECT_EQ(message_of<ConfigError>([&] { fleet.is_server(); }),
            "fleet: init() comes before every other call");
  fleet.init(user_defined_role(RoleKind::worker, 0, 2, {{"127.0.0.1", 6174}}));
  EXPECT_EQ(message_of<ConfigError>([&] { fleet.run_server(); }),
            "run_server: this process is worker 0 of 2, 1 server, expected a server");
  EXPECT_EQ(message_of<ConfigError>([&] { fleet.init_worker(); }),
            "fleet: minimize() comes first, it says what is to be trained");
  fleet.init(user_defined_role(RoleKind::server, 0, 2, {{"127.0.0.1", 6174}}));
  EXPECT_EQ(message_of<ConfigError>([&] { fleet.init_worker(); }),
            "init_worker: this process is server 0 of 1 at 127.0.0.1:6174, 2 workers, expected a "
            "worker");
  EXPECT_EQ(message_of<ConfigError>([&] { fleet.run_server(); }),
            "run_server: minimize() comes first, it says what is to be served");
  EXPECT_EQ(fleet.server_endpoints(), (std::vector<std::string>{"127.0.0.1:6174"}));
}

TEST_F(FleetTest, WithoutRolesEverythingIsLocal) {
  Fleet fleet(*env_, nowhere_);
  fleet.init(Role{});
  EXPECT_TRUE(fleet.is_worker() && fleet.is_first_worker() && !fleet.is_server());
  describe(fleet, {.a_sync_configs = {.k_steps = 5}});
  fleet.init_server();
  fleet.run_server();
  fleet.init_worker();
  QueueDataset data = dataset(fleet, folder_.write("part", instances(0, 100)));
  const Progress last = fleet.trainer().fit(
      data, {.epochs = 3, .join = [&](MetricTally& f) { fleet.join(f); }, .show = nullptr});
  EXPECT_GT(last.metric("auc"), 0.6);
  fleet.barrier_worker();
  EXPECT_EQ(fleet.util().all_reduce(3.5), 3.5);
  EXPECT_EQ(fleet.util().all_gather(2), std::vector<double>{2});
  const std::vector<std::string> files = {"a", "b"};
  EXPECT_EQ(fleet.util().get_file_shard(files), files);
  fleet.save_persistables(folder_.path() + "/model", {.epoch = 4});
  EXPECT_EQ(fleet.load_model(folder_.path() + "/model").epoch, 4);
  fleet.save_inference_model(folder_.path() + "/inference");
  EXPECT_TRUE(env_->file_exists(folder_.path() + "/inference/inference.argosy"));
  EXPECT_EQ(fleet.shrink(3), 0U);
  fleet.stop_worker();
}

TEST_F(FleetTest, WorkersReduceGatherAndMeasureTogether) {
  run_job(2, 3, {}, [&](Fleet& fleet) {
    fleet.init_worker();
    const double index = fleet.worker_index();
    EXPECT_EQ(fleet.util().all_reduce(index + 1), 6);
    EXPECT_EQ(fleet.util().all_reduce(std::vector{index, -index}, "min"),
              (std::vector<double>{0, -2}));
    EXPECT_EQ(fleet.util().all_reduce(index, "max"), 2);
    EXPECT_EQ(fleet.util().all_gather(10 * index), (std::vector<double>{0, 10, 20}));
    // Each worker sees one class or none of what makes an AUC.
    const std::vector<float> predictions = {0.25F * static_cast<float>(index + 1)};
    const std::vector<float> labels = {index == 1 ? 0.0F : 1.0F};
    EXPECT_EQ(fleet.metric("auc", {predictions, labels}), 0.5);
    EXPECT_EQ(message_of<ConfigError>([&] { fleet.util().all_reduce(1, "mean"); }),
              "all_reduce: mode is 'mean', expected sum, min or max");
    fleet.util().barrier();
  });
}

TEST_F(FleetTest, InitWorkerAndTheFirstUseOfParametersComeInEitherOrder) {
  std::vector<std::vector<float>> seen(2);
  run_job(2, 2, {.a_sync = false, .a_sync_configs = {.launch_barrier = false}}, [&](Fleet& fleet) {
    const auto index = static_cast<size_t>(fleet.worker_index());
    if (index == 1) fleet.init_worker();
    for (const NamedTensor& tensor : fleet.trainer().communicator().store().persistables())
      if (tensor.name == "out.w")
        seen[index].assign(tensor.value.as<float>().begin(), tensor.value.as<float>().end());
    if (index == 0) fleet.init_worker();
    fleet.barrier_worker();
  });
  EXPECT_EQ(seen[0].size(), 6U);
  EXPECT_EQ(seen[0], seen[1]);
}

TEST_F(FleetTest, EveryStrategyTrainsAndTheFirstWorkerSaves) {
  const std::vector<DistributedStrategy> strategies = {
      {},
      {.a_sync = false},
      {.a_sync_configs = {.k_steps = 3}},
      {.a_sync_configs = {.half_async = true}},
  };
  const std::string files[] = {folder_.write("part-0", instances(0, 100)),
                               folder_.write("part-1", instances(100, 100))};
  for (size_t i = 0; i < strategies.size(); ++i) {
    const std::string saved = folder_.path() + "/model" + std::to_string(i);
    run_job(2, 2, strategies[i], [&](Fleet& fleet) {
      fleet.init_worker();
      QueueDataset data = dataset(fleet, fleet.util().get_file_shard(files).at(0));
      const Progress last = fleet.trainer().fit(
          data, {.epochs = 6, .join = [&](MetricTally& f) { fleet.join(f); }, .show = nullptr});
      EXPECT_GT(last.metric("auc"), 0.6) << strategy_of(strategies[i]).mode;
      EXPECT_EQ(last.samples, 200U);
      fleet.save_persistables(saved, {.epoch = 7});
      EXPECT_EQ(fleet.load_model(saved).epoch, 7);
    });
    Fleet local(*env_, nowhere_);
    local.init(Role{});
    describe(local, {});
    EXPECT_EQ(local.load_model(saved).epoch, 7);
    EXPECT_EQ(local.trainer().communicator().store().rows("rows").keys.size(), 200U);
  }
}

TEST_F(FleetTest, AServerBeginsWithWhatAnotherNumberOfServersHasSaved) {
  const std::string saved = folder_.path() + "/model";
  const std::string file = folder_.write("part", instances(0, 100));
  TableRows before;
  std::vector<NamedTensor> parameters;
  run_job(3, 1, {}, [&](Fleet& fleet) {
    QueueDataset data = dataset(fleet, file);
    fleet.trainer().fit(data, {.show = nullptr});
    fleet.save_persistables(saved);
    before = fleet.trainer().communicator().store().rows("rows");
    parameters = fleet.trainer().communicator().store().persistables();
  });
  run_job(
      2, 1, {},
      [&](Fleet& fleet) {
        const TableRows rows = fleet.trainer().communicator().store().rows("rows");
        EXPECT_EQ(rows.keys, before.keys);
        EXPECT_TRUE(std::ranges::equal(rows.rows.as<float>(), before.rows.as<float>()));
        const auto loaded = fleet.trainer().communicator().store().persistables();
        ASSERT_EQ(loaded.size(), parameters.size());
        ASSERT_GT(loaded.size(), 2U);  // parameters, optimizer state, the step
        for (size_t i = 0; i < loaded.size(); ++i) {
          EXPECT_EQ(loaded[i].name, parameters[i].name);
          EXPECT_EQ(std::memcmp(loaded[i].value.data(), parameters[i].value.data(),
                                parameters[i].value.bytes()),
                    0)
              << loaded[i].name;
        }
      },
      saved);
}

/// A worker's data in one epoch: all ids, and all tags.
struct Held {
  std::vector<Key> ids, tags;
};

Held held_by(Dataset& data) {
  Held held;
  Batch batch;
  data.begin_epoch(1);
  while (data.next(batch)) {
    held.ids.insert(held.ids.end(), batch.keys[0].begin(), batch.keys[0].end());
    held.tags.insert(held.tags.end(), batch.keys[1].begin(), batch.keys[1].end());
  }
  return held;
}

TEST_F(FleetTest, GlobalShuffleLeavesEveryInstanceInOneWorkerAndMixesThem) {
  // The first worker's share takes several rounds, the others are done in one.
  const std::vector<uint64_t> kBegin = {0, 60000, 61000, 62000};
  const size_t workers = kBegin.size() - 1;
  std::vector<std::string> files;
  for (size_t i = 0; i < workers; ++i)
    files.push_back(folder_.write("part-" + std::to_string(i),
                                  instances(kBegin[i], kBegin[i + 1] - kBegin[i])));
  std::vector<Held> held(workers);
  run_job(2, static_cast<int>(workers), {}, [&](Fleet& fleet) {
    const auto index = static_cast<size_t>(fleet.worker_index());
    InMemoryDataset data(fleet.trainer().plan().layout,
                         {.files = {files[index]}, .slots = kSlots, .batch_size = 10});
    global_shuffle(data, fleet, 3);
    held[index] = held_by(data);
    EXPECT_EQ(data.get_memory_data_size(), held[index].ids.size());
  });
  Held all;
  for (const Held& of_worker : held) {
    const std::vector<Key>& ids = of_worker.ids;
    for (size_t from = 0; from < workers; ++from) {
      const auto came = std::ranges::count_if(
          ids, [&](Key id) { return id >= kBegin[from] && id < kBegin[from + 1]; });
      const double rows = static_cast<double>(kBegin[from + 1] - kBegin[from]);
      EXPECT_NEAR(static_cast<double>(came), rows / 3, 5 * std::sqrt(rows * 2 / 9));
    }
    // In an order of chance: about half of all neighbours ascend.
    size_t ascending = 0;
    for (size_t i = 1; i < ids.size(); ++i) ascending += ids[i - 1] < ids[i] ? 1 : 0;
    const auto size = static_cast<double>(ids.size());
    EXPECT_NEAR(static_cast<double>(ascending), size / 2, 5 * std::sqrt(size));
    all.ids.insert(all.ids.end(), ids.begin(), ids.end());
    all.tags.insert(all.tags.end(), of_worker.tags.begin(), of_worker.tags.end());
  }
  std::ranges::sort(all.ids);
  std::ranges::sort(all.tags);
  Held expected;
  for (Key id = 0; id < kBegin.back(); ++id) {
    expected.ids.push_back(id);
    for (Key tag = 0; tag <= id % 3; ++tag) expected.tags.push_back(10 * id + tag);
  }
  EXPECT_TRUE(all.ids == expected.ids);
  EXPECT_TRUE(all.tags == expected.tags);
}

}  // namespace
}  // namespace argosy
