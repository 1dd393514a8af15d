#include "argosy/config/plan_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "argosy/base/mutex.h"
#include "argosy/base/test_support.h"
#include "argosy/config/model_setup.h"
#include "argosy/config/proof.h"
#include "argosy/modes/mode.h"
#include "argosy/modes/serve.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

/// Three slots and two dense features, so that programs stay small.
Config small_config(const std::string& model, const std::string& runner, const std::string& hyper) {
  return parse_config(
      "model: " + model +
          "\n"
          "inputs: {dense: {name: dense_input, size: 2}, slots: C1..C3, label: label}\n"
          "runner: {train_batch_size: 32, " +
          runner + "}\nhyper_parameters: {fc_sizes: [8, 4], sparse_feature_dim: 4, " + hyper +
          "}\n",
      "small.yaml");
}

std::string report(const Config& config, uint32_t servers, uint32_t workers = 2) {
  return plan_report(config,
                     {.servers = servers, .workers = workers, .placement = {.min_block = 16}});
}

TEST(PlanReport, DnnIsGolden) {
  expect_golden("plan_dnn.txt",
                report(small_config("dnn", "sync_mode: sync",
                                    "sparse_feature_number: 150, optimizer: {class: Adam, "
                                    "learning_rate: 0.01, clip: value(1)}"),
                       2));
}

TEST(PlanReport, WideDeepIsGolden) {
  expect_golden(
      "plan_wide_deep.txt",
      report(small_config("wide_deep", "sync_mode: async",
                          "sparse_feature_number: 50, wide_slots: True, optimizer: {class: SGD, "
                          "learning_rate: 0.1, regularizer: l2(0.001), clip: global_norm(5)}"),
             2));
}

TEST(PlanReport, SaysOfARunWithoutServersWhatItWouldBeWithThem) {
  const std::string text = report(small_config("dnn", "sync_mode: local", ""), 1, 1);
  EXPECT_NE(text.find("dnn: 1 server, 1 worker, async, batch 32"), std::string::npos) << text;
  EXPECT_NE(text.find("server 0 16384 slots (100.00 %)"), std::string::npos) << text;
  EXPECT_EQ(text.find("all servers and"), std::string::npos) << text;
}

TEST(PlanReport, SaysThatGeoSendsDifferencesWhichServersAddUp) {
  const std::string text = report(small_config("dnn", "sync_mode: geo, geo_step: 7", ""), 2);
  for (const char* part :
       {"send fc.0.b@DELTA[0..8] -> server 0\n", "parameter 1 fc.0.b 8 floats rule=\"adam\"",
        "block fc.0.b[0..8] of 8 floats rule=\"add\" lr=\"1\"\n",
        "== bytes of an exchange of each worker, every 7 steps\n",
        "at most 672 keys, 224 instances x 3 slots\n", "optimizer state 1288 bytes, rows as in"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(PlanReport, RefusesNoServerAndNoWorker) {
  const Config config = small_config("dnn", "", "");
  EXPECT_EQ(message_of<ConfigError>([&] { report(config, 0); }),
            "there must be from 1 to 65535 servers, got 0");
  EXPECT_EQ(message_of<ConfigError>([&] { report(config, 1, 0); }),
            "workers is 0, expected at least 1");
}

TEST(PlanReport, RefusesATableThatNoServerCouldMake) {
  const Config config = small_config("dnn", "", "optimizer: {class: Lamb, learning_rate: 0.1}");
  EXPECT_EQ(message_of<ConfigError>([&] { report(config, 2); }),
            "rule 'lamb' needs the norm of a whole parameter: table 'embedding' is sparse and has "
            "rows");
}

/// Payload and header of every exchange that was sent, and of every reply that came, by server.
class Recorder {
 public:
  void record(const std::string& peer, FrameKind kind, size_t payload) {
    const Lock lock(mutex_);
    if (kind == FrameKind::exchange) sizes_[peer].up.push_back(sizeof(FrameHeader) + payload);
    if (kind == FrameKind::reply) sizes_[peer].down.push_back(sizeof(FrameHeader) + payload);
  }
  struct Sizes {
    std::vector<size_t> up, down;
  };
  Sizes of(const Endpoint& server) {
    const Lock lock(mutex_);
    return sizes_[server.text()];
  }

 private:
  Mutex mutex_;
  std::map<std::string, Sizes> sizes_ GUARDED_BY(mutex_);
};

class RecordedLink final : public Link {
 public:
  RecordedLink(std::shared_ptr<Link> link, std::string server, Recorder& recorder)
      : link_(std::move(link)), server_(std::move(server)), recorder_(recorder) {}
  void send(OutFrame frame) override {
    size_t bytes = 0;
    for (const auto& part : frame.parts) bytes += part.size();
    recorder_.record(server_, frame.kind, bytes);
    link_->send(std::move(frame));
  }
  void close(std::string reason) override { link_->close(std::move(reason)); }
  const std::string& peer() const override { return link_->peer(); }

 private:
  std::shared_ptr<Link> link_;
  std::string server_;
  Recorder& recorder_;
};

class RecordedEvents final : public LinkEvents {
 public:
  RecordedEvents(std::shared_ptr<LinkEvents> events, std::string server, Recorder& recorder)
      : events_(std::move(events)), server_(std::move(server)), recorder_(recorder) {}
  void on_frame(InFrame frame) override {
    recorder_.record(server_, frame.kind, frame.payload->size());
    events_->on_frame(std::move(frame));
  }
  void on_close(const std::string& reason) override { events_->on_close(reason); }

 private:
  std::shared_ptr<LinkEvents> events_;
  std::string server_;
  Recorder& recorder_;
};

/// TCP that writes down what a client sends and gets.
class RecordedTransport final : public Transport {
 public:
  explicit RecordedTransport(Recorder& recorder) : recorder_(recorder) {}
  Endpoint listen(const Endpoint& at, OnAccept on_accept) override {
    return tcp_->listen(at, std::move(on_accept));
  }
  Endpoint listen_fd(int fd, OnAccept on_accept) override {
    return tcp_->listen_fd(fd, std::move(on_accept));
  }
  void connect(const Endpoint& to, Env::Duration within, OnConnect on_connect) override {
    tcp_->connect(
        to, within,
        [on_connect, server = to.text(), &recorder = recorder_](
            std::shared_ptr<Link> link, const std::string& error) -> std::shared_ptr<LinkEvents> {
          if (link == nullptr) return on_connect(nullptr, error);
          auto events =
              on_connect(std::make_shared<RecordedLink>(std::move(link), server, recorder), error);
          if (events == nullptr) return nullptr;
          return std::make_shared<RecordedEvents>(std::move(events), server, recorder);
        });
  }

 private:
  Recorder& recorder_;
  std::unique_ptr<Transport> tcp_ = tcp_transport();
};

/// Repeats one batch.
class Repeated final : public Dataset {
 public:
  Repeated(const Batch& batch, int times) : batch_(batch), times_(times) {}
  void begin_epoch(uint64_t, const DataPosition&) override { given_ = 0; }
  bool next(Batch& out) override {
    if (given_ == times_) return false;
    ++given_;
    for (const auto& [name, feed] : batch_.feeds) out.feeds[name] = feed;
    out.size = batch_.size;
    out.keys = batch_.keys;
    return true;
  }
  DataPosition position() const override { return {}; }

 private:
  const Batch& batch_;
  int times_, given_ = 0;
};

struct Bytes : testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(WireBytes, Bytes, testing::Values("sync", "async", "half_async", "geo"));

/// Trains on one batch, over and over, and looks at the frames.
TEST_P(Bytes, AreThoseOfTheFrames) {
  const auto env = real_env();
  const Config config = small_config("wide_deep", "", "wide_slots: True");
  const ModelSetup setup = make_model(config);
  const Strategy strategy{.mode = GetParam(), .geo_step = 1};
  TrainerOptions options;
  options.optimizer = config.optimizer;
  options.tables = setup.tables;
  options.strategy = strategy;

  Recorder recorder;
  std::vector<std::shared_ptr<ps::Server>> servers;
  std::vector<Endpoint> endpoints;
  const auto listening = tcp_transport();
  RecordedTransport transport(recorder);
  auto recorded = std::make_unique<RecordedModel>(record(setup.model, options));
  const ps::Placement placement = placement_of(recorded->plan, strategy, 2, {.min_block = 16});
  for (uint32_t i = 0; i < placement.servers; ++i) {
    servers.push_back(
        ps::Server::make(*env, placement, {.index = i, .sync = strategy.mode == "sync"}));
    endpoints.push_back(listening->listen({"127.0.0.1", 0}, servers.back()->acceptor()));
  }
  const Role role = user_defined_role(RoleKind::worker, 0, 1, endpoints);
  Trainer trainer(*env, std::move(recorded),
                  connect_servers(*env, transport, placement, role, strategy), options);
  const Batch batch = random_batch(config, trainer.plan(), setup.tables);
  const bool two = strategy.mode == "half_async";  // separate frames for pull and push
  Repeated data(batch, two ? 1 : 4);
  trainer.fit(data, {.show = nullptr});
  trainer.leave();

  for (uint32_t server = 0; server < placement.servers; ++server) {
    std::vector<size_t> keys;
    for (const auto& set : batch.keys)
      keys.push_back(static_cast<size_t>(
          std::ranges::count_if(set, [&](Key key) { return placement.server_of(key) == server; })));
    const WireBytes expected = wire_bytes(placement, mode(strategy.mode), server, keys);
    const auto [up, down] = recorder.of(endpoints[server]);
    const auto fullest = [&](const std::vector<size_t>& sizes) {
      size_t total = 0;
      for (const size_t size : sizes) total = two ? total + size : std::max(total, size);
      return total;
    };
    EXPECT_EQ(fullest(up), expected.up);
    EXPECT_EQ(fullest(down), expected.down);
  }
}

}  // namespace
}  // namespace argosy
