// A client over loopback TCP whose servers come late, go, come back, go for good, or refuse it.
#include "argosy/ps/client.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/net/test_sockets.h"
#include "argosy/ps/server.h"
#include "argosy/ps/test_exchanges.h"

namespace argosy::ps {
namespace {

using Clock = std::chrono::steady_clock;

/// A server at an address, or at any.
class ServerAt {
 public:
  ServerAt(Env& env, const Placement& placement, uint32_t index, const Endpoint& at,
           std::function<void(const std::string&)> log, bool sync = false)
      : server_(Server::make(env, placement,
                             {.index = index, .workers = 1, .sync = sync, .log = std::move(log)})) {
    open(at);
  }
  /// Every link breaks; the server and what it holds stay.
  void cut() { transport_.reset(); }
  /// Waits for a port that is to be used again: somebody else's connection may have taken it.
  void open(const Endpoint& at) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (true) {
      transport_ = tcp_transport();
      try {
        at_ = transport_->listen(at, server_->acceptor());
        return;
      } catch (const IoError&) {
        if (std::chrono::steady_clock::now() > until) throw;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    }
  }
  const Endpoint& at() const { return at_; }
  float weight(Key key) { return peek(server_->shard().table(0), std::vector<Key>{key})[0]; }

 private:
  std::shared_ptr<Server> server_;
  std::unique_ptr<Transport> transport_;
  Endpoint at_;
};

class PsClientTest : public testing::Test {
 protected:
  ServerAt serve(const Endpoint& at = {"127.0.0.1", 0}, uint32_t index = 0) {
    return {*env_, placement_, index, at, server_log_.writer()};
  }
  ClientOptions options(std::vector<Endpoint> servers) {
    return {.servers = std::move(servers), .log = log_.writer()};
  }
  /// Where nobody listens yet.
  static Endpoint vacant() { return {"127.0.0.1", RawSocket::bound().port()}; }

  Placement placement_ = adding_placement();
  LogLines log_, server_log_;
  std::unique_ptr<Env> env_ = real_env();
};

TEST_F(PsClientTest, AServerMayComeLater) {
  ClientOptions patient = options({vacant()});
  patient.tolerance.patience = 50ms;
  BusyWorker worker(*env_, placement_, patient);
  EXPECT_TRUE(log_.has({"worker 0: waits for server 0 at " + patient.servers[0].text() + ": "}));
  const ServerAt server = serve(patient.servers[0]);
  EXPECT_TRUE(worker.goes_on());
}

TEST_F(PsClientTest, NothingIsSentBeforeAllServersAreThere) {
  placement_ = adding_placement(2);
  const ServerAt first = serve();
  ClientOptions patient = options({first.at(), vacant()});
  patient.tolerance.patience = 50ms;
  BusyWorker worker(*env_, placement_, patient);
  EXPECT_TRUE(log_.has({"waits for server 1 at "}));
  EXPECT_EQ(worker.answered(), 0);
  const ServerAt second = serve(patient.servers[1], 1);
  EXPECT_TRUE(worker.goes_on());
}

TEST_F(PsClientTest, WhatWasUnderWayWhenLinksBreakIsAppliedOnce) {
  ServerAt server = serve();
  const Endpoint at = server.at();
  BusyWorker worker(*env_, placement_, options({at}));
  for (int break_number = 0; break_number < 3; ++break_number) {
    ASSERT_TRUE(worker.goes_on());
    server.cut();
    server.open(at);
    ASSERT_TRUE(worker.goes_on());
  }
  EXPECT_TRUE(log_.has({"worker 0: lost server 0 at " + at.text() + ": ", "connecting again"}));
  worker.stop();
  EXPECT_EQ(server.weight(1), static_cast<float>(worker.answered() - 1));  // the first only pulls
  EXPECT_EQ(log_.text().find("started anew"), std::string::npos);
}

TEST_F(PsClientTest, AServerThatWasStartedAnewIsSentTheKeysOfListsItCannotKnow) {
  placement_ = adding_placement(2);
  const Key key = 1;
  const uint32_t holder = placement_.server_of(key);
  std::vector<std::optional<ServerAt>> servers(2);
  std::vector<Endpoint> at;
  for (uint32_t i = 0; i < 2; ++i) {
    servers[i].emplace(serve({"127.0.0.1", 0}, i));
    at.push_back(servers[i]->at());
  }
  BusyWorker worker(*env_, placement_, options(at));
  ASSERT_TRUE(worker.goes_on());
  const uint32_t other = 1 - holder;
  servers[other].reset();
  servers[other].emplace(serve(at[other], other));
  ASSERT_TRUE(worker.goes_on());
  EXPECT_TRUE(log_.has({"server " + std::to_string(other) + " at " + at[other].text() +
                        " was started anew: what it held is lost"}));
  EXPECT_TRUE(server_log_.has({"server " + std::to_string(other) + ": worker 0 had ",
                               " exchanges with a server before this one and goes on"}));
  EXPECT_EQ(server_log_.text().find("not kept any more"), std::string::npos) << server_log_.text();
  worker.stop();
  EXPECT_EQ(servers[holder]->weight(key), static_cast<float>(worker.answered() - 1));
  servers[holder].reset();
  servers[holder].emplace(serve(at[holder], holder));
  BusyWorker* const stopped = &worker;
  EXPECT_EQ(call(stopped->client(), verbs::Shrink{9}, holder).erased, 0U);
}

TEST_F(PsClientTest, AServerThatIsGoneForGoodFailsEverythingWithItsName) {
  std::optional<ServerAt> server(serve());
  const Endpoint at = server->at();
  ClientOptions hasty = options({at});
  hasty.tolerance.quiet = 300ms;
  BusyWorker worker(*env_, placement_, hasty);
  ASSERT_TRUE(worker.goes_on());
  server.reset();
  const auto gone = Clock::now();
  auto first = ask(worker.client(), verbs::Stats{}), second = ask(worker.client(), verbs::Stats{});
  const std::string words = "server 0 at " + at.text() + " is lost for 0.3 s: ";
  EXPECT_NE(worker.error().find("IoError: " + words), std::string::npos) << worker.error();
  for (auto* answer : {&first, &second}) {
    ASSERT_EQ(answer->wait_for(kTestDeadline), std::future_status::ready);
    EXPECT_NE(message_of<IoError>([&] { answer->get(); }).find(words), std::string::npos);
  }
  EXPECT_LT(Clock::now() - gone, 20s);  // and 1 s where there is nothing else to do
  // What comes later fails at once.
  EXPECT_NE(message_of<IoError>([&] { call(worker.client(), verbs::Stats{}); }).find(words),
            std::string::npos);
  const auto exchange = std::make_shared<Exchange>();
  EXPECT_NE(
      message_of<IoError>([&] { send_exchange(worker.client(), exchange).get(); }).find(words),
      std::string::npos);
}

TEST_F(PsClientTest, AServerThatIsNeverReachedIsGivenUp) {
  ClientOptions hasty = options({vacant()});
  hasty.tolerance.give_up = 300ms;
  BusyWorker worker(*env_, placement_, hasty);
  EXPECT_NE(worker.error().find("IoError: server 0 at " + hasty.servers[0].text() +
                                " cannot be reached for 0.3 s: "),
            std::string::npos)
      << worker.error();
}

/// Peers that are no servers: they accept links and do as `answer` says.
class Impostor {
 public:
  explicit Impostor(Side::Answer answer = nullptr) {
    at = transport_->listen({"127.0.0.1", 0}, [this, answer](std::shared_ptr<Link> link) {
      return std::make_shared<Side>(log_, std::move(link), answer);
    });
  }
  Endpoint at;

 private:
  Log log_;
  std::unique_ptr<Transport> transport_ = tcp_transport();
};

TEST_F(PsClientTest, AServerThatAcceptsAndSaysNothingIsGivenUp) {
  const Impostor silent;
  ClientOptions hasty = options({silent.at});
  hasty.tolerance = {.quiet = 300ms, .give_up = 1s};
  BusyWorker worker(*env_, placement_, hasty);
  const std::string error = worker.error();
  EXPECT_NE(error.find(" cannot be reached for 1 s: silent for 0.3 s"), std::string::npos) << error;
}

TEST_F(PsClientTest, AServerThatWelcomesAndCutsEveryLinkIsGivenUp) {
  const Impostor cutter([](Link& link, InFrame& frame) {
    if (frame.kind == FrameKind::hello)
      link.send(small_frame(FrameKind::welcome, 0, encode(Welcome{})));
    else
      link.send(text_frame(FrameKind::error, 0, "I cannot take this"));
  });
  ClientOptions hasty = options({cutter.at});
  hasty.tolerance.give_up = 1s;
  BusyWorker worker(*env_, placement_, hasty);
  const std::string error = worker.error();
  EXPECT_NE(error.find("IoError: server 0 at " + cutter.at.text() +
                       " is lost for 1 s: I cannot take this"),
            std::string::npos)
      << error;
}

TEST_F(PsClientTest, AServerThatIsAnotherOneIsNotTalkedTo) {
  placement_ = adding_placement(2);
  const ServerAt first = serve(), second = serve({"127.0.0.1", 0}, 1);
  ClientOptions hasty = options({second.at(), first.at()});
  hasty.tolerance.give_up = 300ms;
  BusyWorker worker(*env_, placement_, hasty);
  EXPECT_NE(worker.error().find(" says it is server "), std::string::npos) << worker.error();
}

TEST_F(PsClientTest, ARefusalForGoodIsAConfigErrorAtOnce) {
  const ServerAt server = serve();
  ClientOptions other = options({server.at()});
  other.job = "other";
  const auto start = Clock::now();
  BusyWorker worker(*env_, placement_, other);
  auto answer = ask(worker.client(), verbs::Stats{});
  const std::string words = "server 0 at " + server.at().text() + " refuses: job 'other'";
  EXPECT_NE(worker.error().find("ConfigError: " + words), std::string::npos) << worker.error();
  EXPECT_NE(message_of<ConfigError>([&] { answer.get(); }).find(words), std::string::npos);
  EXPECT_LT(Clock::now() - start, 20s);
}

TEST_F(PsClientTest, AClientThatIsClosedFailsWhatIsUnderWay) {
  const ServerAt server(*env_, placement_, 0, {"127.0.0.1", 0}, server_log_.writer());
  BusyWorker worker(*env_, placement_, options({server.at()}));
  ASSERT_TRUE(worker.goes_on());
  worker.client().close();
  EXPECT_NE(worker.error().find("IoError: the client was closed"), std::string::npos);
}

TEST_F(PsClientTest, BytesThatAreNoAnswersBreakTheLinkAndNothingElse) {
  const ServerAt server = serve();
  const Impostor babbler([](Link& link, InFrame& frame) {
    if (frame.kind == FrameKind::hello)
      return link.send(small_frame(FrameKind::welcome, 0, encode(Welcome{})));
    const auto bytes = random_bytes(32 + frame.id, frame.id);
    link.send({FrameKind::reply, frame.id, {*bytes}, {bytes}});
    link.send({FrameKind::pong, 0, {*bytes}, {bytes}});
  });
  ClientOptions hasty = options({babbler.at});
  hasty.tolerance.give_up = 1s;
  BusyWorker worker(*env_, placement_, hasty);
  EXPECT_TRUE(log_.has({"lost server 0 at " + babbler.at.text() + ": reply: "})) << log_.text();
  EXPECT_NE(worker.error().find("is lost for 1 s: reply: "), std::string::npos) << worker.error();
  BusyWorker good(*env_, placement_, options({server.at()}));
  EXPECT_TRUE(good.goes_on());
}

}  // namespace
}  // namespace argosy::ps
