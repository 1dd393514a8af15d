#include "argosy/net/simulation.h"

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/net/test_links.h"

namespace argosy {
namespace {

constexpr Env::Duration kLimit = 1h;

/// A server that answers, and a client that has sent frames 0, 1, 2, ... to it.
class Cluster {
 public:
  explicit Cluster(uint64_t seed, const Faults& faults = {}) : simulation(seed) {
    simulation.host("server").listen({"server", 7000}, [this](auto link) {
      server = std::make_shared<Side>(log_, link, echo);
      return server;
    });
    simulation.host("client").connect({"server", 7000}, 1s, [this](auto link, const auto& error) {
      EXPECT_EQ(error, "");
      client = std::make_shared<Side>(log_, link);
      return client;
    });
    EXPECT_TRUE(simulation.run_until([this] { return client != nullptr; }, kLimit));
    simulation.set_faults(faults);
  }

  void send(uint64_t count) {
    for (uint64_t id = 0; id < count; ++id)
      client->link->send(text_frame(FrameKind::exchange, id, "frame " + std::to_string(id)));
  }
  /// Until nothing more happens.
  void run() {
    simulation.run_until([] { return false; }, kLimit);
  }
  std::vector<uint64_t> ids_at_server() const {
    std::vector<uint64_t> ids;
    for (const InFrame& frame : server->frames) ids.push_back(frame.id);
    return ids;
  }

 private:
  Log log_;

 public:
  Simulation simulation;
  std::shared_ptr<Side> server, client;
};

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Simulation, TimersRunInOrderAndTimeJumps) {
  Simulation simulation(1);
  Env& env = simulation.env();
  const Env::Time start = env.now();
  std::string order;
  env.schedule(2h, [&] { order += "c"; });
  env.schedule(1s, [&] { order += "a"; });
  env.schedule(1s, [&] { order += "b"; });
  const Env::TimerId never = env.schedule(1min, [&] { order += "x"; });
  EXPECT_TRUE(env.cancel(never));
  EXPECT_FALSE(env.cancel(never));
  EXPECT_TRUE(simulation.run_until([&] { return order.size() == 3; }, 3h));
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(env.now() - start, 2h);
  EXPECT_FALSE(simulation.run_until([] { return false; }, 1h)) << "nothing is left to happen";
}

TEST(Simulation, StopsAtTheLimit) {
  Simulation simulation(1);
  bool ran = false;
  simulation.env().schedule(10s, [&] { ran = true; });
  const Env::Time start = simulation.env().now();
  EXPECT_FALSE(simulation.run_until([&] { return ran; }, 9s));
  EXPECT_EQ(simulation.env().now() - start, 9s);
  EXPECT_TRUE(simulation.run_until([&] { return ran; }, 1s));
}

TEST(Simulation, TheSameSeedGivesTheSameRun) {
  const auto run = [](uint64_t seed) {
    Cluster cluster(seed, {.drop = 0.1, .duplicate = 0.1, .reorder = 0.2});
    cluster.send(200);
    cluster.run();
    const auto time = cluster.simulation.env().now().time_since_epoch().count();
    return std::tuple(cluster.ids_at_server(), cluster.client->frames.size(), time,
                      cluster.simulation.env().random());
  };
  EXPECT_EQ(run(7), run(7));
  EXPECT_NE(run(7), run(8));
}

TEST(Simulation, DelaysAreWithinTheirBounds) {
  Cluster cluster(1, {.min_delay = 2ms, .max_delay = 3ms});
  const Env::Time start = cluster.simulation.env().now();
  cluster.send(1);
  ASSERT_TRUE(
      cluster.simulation.run_until([&] { return !cluster.client->frames.empty(); }, kLimit));
  const auto took = cluster.simulation.env().now() - start;
  EXPECT_GE(took, 4ms);
  EXPECT_LE(took, 6ms);
}

TEST(Simulation, FramesAreDropped) {
  Cluster cluster(2, {.drop = 0.5});
  cluster.send(100);
  cluster.run();
  const auto ids = cluster.ids_at_server();
  EXPECT_TRUE(std::ranges::is_sorted(ids));
  EXPECT_GT(ids.size(), 20U);
  EXPECT_LT(ids.size(), 80U);
  EXPECT_FALSE(cluster.client->closed);
}

TEST(Simulation, FramesAreDuplicated) {
  Cluster cluster(3, {.duplicate = 0.5});
  cluster.send(100);
  cluster.run();
  EXPECT_GT(cluster.ids_at_server().size(), 120U);
}

TEST(Simulation, FramesAreReordered) {
  Cluster cluster(4, {.reorder = 0.3});
  cluster.send(100);
  cluster.run();
  auto ids = cluster.ids_at_server();
  EXPECT_FALSE(std::ranges::is_sorted(ids));
  std::ranges::sort(ids);
  ASSERT_EQ(ids.size(), 100U);
  EXPECT_EQ(ids.back(), 99U);
}

TEST(Simulation, DamagedFramesCloseTheLinkAndThePeerHearsWhy) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const bool flip = seed % 2 == 0;
    Cluster cluster(seed, {.truncate = flip ? 0.0 : 1.0, .flip = flip ? 1.0 : 0.0});
    cluster.send(1);
    cluster.simulation.set_faults({});
    cluster.run();
    EXPECT_TRUE(cluster.server->frames.empty());
    ASSERT_TRUE(cluster.server->closed && cluster.client->closed);
    EXPECT_EQ(cluster.server->reason.rfind("frame ", 0), 0U) << cluster.server->reason;
    ASSERT_EQ(cluster.client->frames.size(), 1U);
    EXPECT_EQ(cluster.client->frames[0].kind, FrameKind::error);
    EXPECT_EQ(text_of(cluster.client->frames[0]), cluster.server->reason);
    EXPECT_EQ(cluster.client->reason, "server:7000 closed the connection");
  }
}

TEST(Simulation, ACutTellsBothSides) {
  Cluster cluster(5, {.cut = 1});
  cluster.send(1);
  cluster.run();
  EXPECT_TRUE(cluster.server->frames.empty());
  EXPECT_EQ(cluster.client->reason, "lost the connection to server:7000: Connection reset by peer");
  EXPECT_EQ(cluster.server->reason.rfind("lost the connection to client:", 0), 0U);
}

TEST(Simulation, ConnectGivesUpAtItsDeadline) {
  Simulation simulation(1, {.min_delay = 1s, .max_delay = 2s});
  std::string result;
  simulation.host("client").connect(
      {"server", 1}, 10ms, [&](auto link, const auto& error) -> std::shared_ptr<LinkEvents> {
        EXPECT_EQ(link, nullptr);
        result = error;
        return nullptr;
      });
  const Env::Time start = simulation.env().now();
  EXPECT_TRUE(simulation.run_until([&] { return !result.empty(); }, kLimit));
  EXPECT_EQ(result, "cannot connect to server:1: no answer within 10 ms");
  EXPECT_EQ(simulation.env().now() - start, 10ms);
}

TEST(Simulation, ACrashedHostIsGoneForTheOthers) {
  Cluster cluster(6);
  bool ticked = false;
  cluster.simulation.host_env("server").schedule(1s, [&] { ticked = true; });
  cluster.send(1);
  cluster.simulation.crash("server");
  const std::weak_ptr<Side> server = cluster.server;
  cluster.server = nullptr;
  EXPECT_TRUE(server.expired());
  cluster.run();
  EXPECT_FALSE(ticked);
  EXPECT_TRUE(cluster.client->frames.empty());
  EXPECT_EQ(cluster.client->reason, "lost the connection to server:7000: Connection reset by peer");
  std::string error;
  cluster.simulation.host("client").connect(
      {"server", 7000}, 1s, [&](auto, const auto& why) -> std::shared_ptr<LinkEvents> {
        error = why;
        return nullptr;
      });
  cluster.run();
  EXPECT_EQ(error, "cannot connect to server:7000: Connection refused");
}

TEST(Simulation, WhatACrashedHostHasSentDoesNotArrive) {
  Cluster cluster(7);
  cluster.send(3);
  cluster.simulation.crash("client");
  cluster.client->link->send(text_frame(FrameKind::ping, 1, "from beyond"));
  cluster.run();
  EXPECT_TRUE(cluster.server->frames.empty());
  EXPECT_TRUE(cluster.server->closed);
  EXPECT_FALSE(cluster.client->closed) << "nothing is delivered to it";
}

TEST(Simulation, ACrashedHostMayComeBack) {
  Cluster cluster(8);
  cluster.simulation.crash("server");
  bool accepted = false;
  cluster.simulation.host("server").listen({"server", 7000}, [&](auto) {
    accepted = true;
    return nullptr;
  });
  cluster.simulation.host("client").connect({"server", 7000}, 1s,
                                            [](auto, const auto&) { return nullptr; });
  cluster.run();
  EXPECT_TRUE(accepted);
}

TEST(Simulation, AHostMayCrashInItsOwnEvent) {
  Cluster cluster(9);
  cluster.simulation.host_env("server").schedule(1s, [&, kept = std::make_shared<int>(5)] {
    cluster.simulation.crash("server");
    EXPECT_EQ(*kept, 5);
  });
  cluster.run();
  EXPECT_TRUE(cluster.client->closed);
}

TEST(Simulation, SyncedFilesSurviveACrashAndOthersLoseTheirEnd) {
  Simulation simulation(1);
  Env& env = simulation.host_env("server");
  env.make_directories("jobs/1");
  const auto file = env.create_file("jobs/1/journal");
  file->append(bytes("safe"));
  file->sync();
  file->append(bytes(std::string(1000, '?')));
  const auto renamed = env.create_file("jobs/1/x");
  renamed->append(bytes("whole"));
  renamed->sync();
  env.rename_file("jobs/1/x", "jobs/1/y");
  simulation.crash("server");
  file->append(bytes("after"));
  const std::string kept = text(env.read_file("jobs/1/journal"));
  EXPECT_EQ(kept.rfind("safe", 0), 0U);
  EXPECT_LT(kept.size(), 1004U);
  EXPECT_EQ(kept.find("after"), std::string::npos);
  EXPECT_EQ(text(env.read_file("jobs/1/y")), "whole");
  EXPECT_FALSE(env.file_exists("jobs/1/x"));
}

TEST(Simulation, AtomicWritesAreWholeForAllHosts) {
  Simulation simulation(1);
  write_file_atomically(simulation.host_env("a"), "model", bytes("first"));
  write_file_atomically(simulation.host_env("a"), "./model", bytes("second"));
  simulation.crash("a");
  EXPECT_EQ(text(simulation.host_env("b").read_file("model")), "second");
  EXPECT_FALSE(simulation.env().file_exists("model.new"));
}

TEST(Simulation, FilesFailAsRealOnesDo) {
  Simulation simulation(1);
  Env& env = simulation.env();
  EXPECT_EQ(message_of<IoError>([&] { env.read_file("absent"); }),
            "open absent: No such file or directory");
  EXPECT_EQ(message_of<IoError>([&] { env.create_file("no/folder"); }),
            "open no/folder: No such file or directory");
  EXPECT_EQ(message_of<IoError>([&] { env.rename_file("absent", "b"); }),
            "rename to b: No such file or directory");
  env.make_directories("/a/b/");
  EXPECT_TRUE(env.file_exists("/a/b"));
  EXPECT_EQ(message_of<IoError>([&] { env.read_file("/a/b"); }), "read /a/b: not a regular file");
  EXPECT_NO_THROW(env.remove_file("absent"));
}

}  // namespace
}  // namespace argosy
