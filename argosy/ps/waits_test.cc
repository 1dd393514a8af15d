// Who waits for whom, as both sides of a simulated cluster say it.
#include <gtest/gtest.h>

#include "argosy/net/simulation.h"
#include "argosy/ps/test_exchanges.h"

namespace argosy::ps {
namespace {

using Indices = std::vector<uint32_t>;

class Waits : public testing::Test {
 protected:
  void start(uint32_t servers, uint32_t workers, bool sync = false) {
    placement_ = adding_placement(servers);
    for (uint32_t i = 0; i < servers; ++i) {
      const std::string host = "server" + std::to_string(i);
      servers_.push_back(
          Server::make(simulation_.host_env(host), placement_,
                       {.index = i, .workers = workers, .sync = sync, .limits = {.grace = 60s}}));
      simulation_.host(host).listen({host, 1}, servers_.back()->acceptor());
    }
    workers_ = workers;
  }
  Client& worker(uint32_t number) {
    const std::string host = "worker" + std::to_string(number);
    ClientOptions options{.servers = {}, .worker = number, .workers = workers_};
    for (size_t s = 0; s < servers_.size(); ++s)
      options.servers.push_back({"server" + std::to_string(s), 1});
    clients_.push_back(Client::make(simulation_.host_env(host), simulation_.host(host), placement_,
                                    std::move(options)));
    return *clients_.back();
  }
  /// Ends a step by a push of parameters, and pulls rows.
  void end_step(Client& client) {
    auto exchange = std::make_shared<Exchange>();
    exchange->dense.emplace_back(ones_);
    exchange->ends_step = true;
    exchange->lists = std::make_shared<KeyLists>(placement_, keys_);
    exchange->rows.emplace_back(rows_);
    exchange->done = [this](std::exception_ptr) { ++answered_; };
    client.exchange(std::move(exchange));
  }
  void pass(Env::Duration time) {
    simulation_.run_until([] { return false; }, time);
  }
  double age(Env::Time since) {
    return std::chrono::duration<double>(simulation_.env().now() - since).count();
  }

  Simulation simulation_{1};
  Placement placement_;
  uint32_t workers_ = 1;
  std::vector<std::shared_ptr<Server>> servers_;
  std::vector<std::shared_ptr<Client>> clients_;
  std::vector<std::vector<Key>> keys_{{1, 2, 3}};
  std::vector<float> ones_ = std::vector<float>(kTestDense, 1.0F), rows_ = std::vector<float>(6);
  int answered_ = 0;
};

TEST_F(Waits, OfASyncStepNameTheWorkersThatHaveNotEndedIt) {
  start(1, 3, true);
  Client &first = worker(0), &second = worker(1), &third = worker(2);
  pass(1s);
  EXPECT_TRUE(first.waits().empty());
  EXPECT_TRUE(servers_[0]->activity().waits.empty());
  end_step(first);
  end_step(third);
  pass(4s);
  const auto wants = first.waits();
  ASSERT_EQ(wants.size(), 1U);
  EXPECT_EQ(wants[0].server, 0U);
  EXPECT_EQ(wants[0].what, "exchange 1: rows of rows and parameters");
  EXPECT_NEAR(age(wants[0].since), 4, 0.1);
  EXPECT_EQ(first.under_way(), 1U);
  EXPECT_TRUE(second.waits().empty());
  const auto waits = servers_[0]->activity().waits;
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].until, ServerWait::Until::step_ended);
  EXPECT_EQ(waits[0].what, "step 1");
  EXPECT_EQ(waits[0].workers, Indices{1});
  EXPECT_EQ(waits[0].held, (Indices{0, 2}));
  EXPECT_NEAR(age(waits[0].since), 4, 0.1);
  end_step(second);
  pass(1s);
  EXPECT_EQ(answered_, 3);
  EXPECT_TRUE(first.waits().empty());
  EXPECT_EQ(first.under_way(), 0U);
  EXPECT_TRUE(servers_[0]->activity().waits.empty());
}

TEST_F(Waits, OfAGatheringNameTheWorkerThatDoesNotComeToIt) {
  start(1, 2);
  Client &first = worker(0), &second = worker(1);
  pass(1s);
  int gathered = 0;
  const auto gather = [&](Client& client) {
    client.ask(0, request_of(verbs::Gather{"test", 1, "the epoch is saved", {}}),
               [&](std::exception_ptr, auto) { ++gathered; });
  };
  gather(first);
  first.ask(0, request_of(verbs::Stats{}), [](std::exception_ptr, auto) {});  // behind it
  pass(7s);
  const auto wants = first.waits();
  ASSERT_EQ(wants.size(), 1U);
  EXPECT_EQ(wants[0].what, "gather the epoch is saved");
  EXPECT_NEAR(age(wants[0].since), 7, 0.1);
  const ServerActivity activity = servers_[0]->activity();
  EXPECT_TRUE(activity.tasks.empty());
  ASSERT_EQ(activity.waits.size(), 1U);
  EXPECT_EQ(activity.waits[0].until, ServerWait::Until::gathered);
  EXPECT_EQ(activity.waits[0].what, "gather the epoch is saved");
  EXPECT_EQ(activity.waits[0].workers, Indices{1});
  EXPECT_EQ(activity.waits[0].held, Indices{0});
  gather(second);
  pass(1s);
  EXPECT_EQ(gathered, 2);
  EXPECT_TRUE(first.waits().empty());
  EXPECT_TRUE(servers_[0]->activity().waits.empty());
}

TEST_F(Waits, NameAServerThatIsLostAndWorkersThatHaveNotComeYet) {
  start(2, 2);
  Client& client = worker(0);
  pass(3s);
  EXPECT_TRUE(client.waits().empty());
  const auto absent = servers_[1]->activity().waits;
  ASSERT_EQ(absent.size(), 1U);
  EXPECT_EQ(absent[0].until, ServerWait::Until::all_here);
  EXPECT_EQ(absent[0].workers, Indices{1});
  EXPECT_TRUE(absent[0].held.empty());
  simulation_.crash("server1");
  pass(2s);
  const auto wants = client.waits();
  ASSERT_EQ(wants.size(), 1U);
  EXPECT_EQ(wants[0].server, 1U);
  EXPECT_TRUE(wants[0].what.starts_with("it is lost: ")) << wants[0].what;
  EXPECT_NEAR(age(wants[0].since), 2, 0.6);
  client.close();
  EXPECT_TRUE(client.waits().empty());
}

TEST_F(Waits, NameAServerThatWasNeverThere) {
  start(1, 1);
  simulation_.crash("server0");
  Client& client = worker(0);
  end_step(client);
  pass(5s);
  const auto wants = client.waits();
  ASSERT_EQ(wants.size(), 1U);
  EXPECT_TRUE(wants[0].what.starts_with("it cannot be reached")) << wants[0].what;
  EXPECT_NEAR(age(wants[0].since), 5, 0.6);
  EXPECT_EQ(client.under_way(), 1U);
}

TEST_F(Waits, TellOfASaveThatIsBeingMade) {
  placement_ = adding_placement();
  std::vector<std::function<void()>> tasks;
  servers_.push_back(Server::make(
      simulation_.host_env("server0"), placement_,
      {.workers = 1, .background = [&](std::function<void()> task) { tasks.push_back(task); }}));
  simulation_.host("server0").listen({"server0", 1}, servers_[0]->acceptor());
  Client& client = worker(0);
  client.ask(0, request_of(verbs::Save{1, "folder"}),
             [this](std::exception_ptr, auto) { ++answered_; });
  pass(6s);
  const auto saves = servers_[0]->activity().tasks;
  ASSERT_EQ(saves.size(), 1U);
  EXPECT_EQ(saves[0].verb, "save");
  EXPECT_NEAR(age(saves[0].since), 6, 0.2);
  ASSERT_EQ(tasks.size(), 1U);
  tasks[0]();
  pass(1s);
  EXPECT_EQ(answered_, 1);
  EXPECT_TRUE(servers_[0]->activity().tasks.empty());
}

TEST_F(Waits, OfAnAsyncWorkerAreNoneAndItsStalenessIsCounted) {
  start(1, 1);
  Client& client = worker(0);
  auto pull = std::make_shared<Exchange>();
  pull->lists = std::make_shared<KeyLists>(placement_, keys_);
  pull->rows.emplace_back(rows_);
  pull->done = [](std::exception_ptr) {};
  client.exchange(pull);
  end_step(client);
  pass(1s);
  auto push = std::make_shared<Exchange>();
  push->pushes.push_back({pull->lists, {rows_}});
  push->ends_step = true;
  push->done = [](std::exception_ptr) {};
  client.exchange(push);
  pass(1s);
  EXPECT_EQ(client.staleness().pushes, 1U);
  EXPECT_EQ(client.staleness().steps, 1U);  // the one that ended between the pull and the push
  EXPECT_TRUE(client.waits().empty());
}

TEST(WaitsOfRealThreads, MayBeAskedForWhileExchangesGoOn) {
  const auto env = real_env();
  const Placement placement = adding_placement();
  const auto server = Server::make(*env, placement, {.workers = 2, .sync = true, .threads = 2});
  const auto transport = tcp_transport();
  const Endpoint at = transport->listen({"127.0.0.1", 0}, server->acceptor());
  const auto options = [&](uint32_t worker) {
    return ClientOptions{.servers = {at}, .worker = worker, .workers = 2};
  };
  BusyWorker first(*env, placement, options(0)), second(*env, placement, options(1));
  const std::jthread asks([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      for (const ServerWait& wait : server->activity().waits) EXPECT_FALSE(wait.workers.empty());
      for (const ClientWait& wait : first.client().waits()) EXPECT_EQ(wait.server, 0U);
      EXPECT_LE(first.client().under_way(), 1U);
      EXPECT_LE(server->shard().rows(), 3U);
      EXPECT_EQ(first.client().staleness().steps, 0U);  // in sync mode nobody is late
    }
  });
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(first.goes_on());
}

}  // namespace
}  // namespace argosy::ps
