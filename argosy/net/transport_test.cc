// The contract of every transport, run over each of them.
#include "argosy/net/transport.h"

#include <thread>

#include "argosy/net/simulation.h"
#include "argosy/net/test_links.h"
#include "argosy/net/test_sockets.h"

namespace argosy {
namespace {

/// A network with a server and a client.
class Network {
 public:
  virtual ~Network() = default;
  virtual Transport& server() = 0;
  virtual Transport& client() = 0;
  virtual Endpoint any_port() const = 0;
  /// An address where nobody listens, now or later.
  virtual Endpoint dead_port() const = 0;
  virtual bool wait(Log& log, const std::function<bool()>& done) = 0;
};

class TcpNetwork final : public Network {
 public:
  explicit TcpNetwork(size_t threads)
      : server_(tcp_transport({}, threads)), client_(tcp_transport({}, threads)) {}
  Transport& server() override { return *server_; }
  Transport& client() override { return *client_; }
  Endpoint any_port() const override { return {"127.0.0.1", 0}; }
  Endpoint dead_port() const override { return {"127.0.0.1", bound_.port()}; }
  bool wait(Log& log, const std::function<bool()>& done) override { return log.wait(done); }

 private:
  RawSocket bound_ = RawSocket::bound();
  std::unique_ptr<Transport> server_, client_;
};

class SimulatedNetwork final : public Network {
 public:
  Transport& server() override { return simulation_.host("server"); }
  Transport& client() override { return simulation_.host("client"); }
  Endpoint any_port() const override { return {"server", 0}; }
  Endpoint dead_port() const override { return {"server", 1}; }
  bool wait(Log&, const std::function<bool()>& done) override {
    return simulation_.run_until(done, kTestDeadline);
  }

 private:
  Simulation simulation_{1};
};

struct Kind {
  const char* name;
  std::unique_ptr<Network> (*make)();
};

const Kind kKinds[] = {
    {"Tcp", []() -> std::unique_ptr<Network> { return std::make_unique<TcpNetwork>(1); }},
    {"TcpOfThreeThreads",
     []() -> std::unique_ptr<Network> { return std::make_unique<TcpNetwork>(3); }},
    {"Simulation",
     []() -> std::unique_ptr<Network> { return std::make_unique<SimulatedNetwork>(); }},
};

class TransportTest : public testing::TestWithParam<Kind> {
 protected:
  struct Pair {
    std::shared_ptr<Side> client, server;
  };

  void serve(Side::Answer answer = nullptr) {
    at_ = network_->server().listen(network_->any_port(), [this, answer](auto link) {
      auto side = std::make_shared<Side>(log_, link, answer);
      log_.change([&] { accepted_.push_back(side); });
      return side;
    });
    EXPECT_NE(at_.port, 0);
  }

  Pair connect(Side::Answer answer = nullptr) {
    Pair pair;
    std::string failure;
    network_->client().connect(at_, kTestDeadline, [&, answer](auto link, const auto& error) {
      std::shared_ptr<Side> side;
      if (link != nullptr) side = std::make_shared<Side>(log_, link, answer);
      log_.change([&] {
        failure = error;
        pair.client = side;
      });
      return side;
    });
    const size_t next = used_++;
    EXPECT_TRUE(wait([&] { return pair.client != nullptr && accepted_.size() > next; })) << failure;
    pair.server = accepted_.at(next);
    return pair;
  }

  std::string connect_error(const Endpoint& to, Env::Duration within) {
    bool called = false;
    std::string result;
    network_->client().connect(to, within,
                               [&](auto link, const auto& error) -> std::shared_ptr<LinkEvents> {
                                 EXPECT_EQ(link, nullptr);
                                 log_.change([&] {
                                   called = true;
                                   result = error;
                                 });
                                 return nullptr;
                               });
    EXPECT_TRUE(wait([&] { return called; }));
    return result;
  }

  bool wait(const std::function<bool()>& done) { return network_->wait(log_, done); }

  Log log_;  // outlives the network, whose threads write to it
  std::vector<std::shared_ptr<Side>> accepted_;
  size_t used_ = 0;
  Endpoint at_;
  std::unique_ptr<Network> network_ = GetParam().make();
};

INSTANTIATE_TEST_SUITE_P(Every, TransportTest, testing::ValuesIn(kKinds),
                         [](const auto& info) { return std::string(info.param.name); });

constexpr size_t kSizes[] = {0, 1, 64, 640 << 10, 10 << 20, 5000, 0, 17};
constexpr size_t kParts[] = {1, 3, 1000};

TEST_P(TransportTest, FramesArriveWholeAndInOrderBothWays) {
  serve();
  const Pair pair = connect();
  for (const auto& link : {pair.client->link, pair.server->link}) {
    uint64_t id = 0;
    for (const size_t parts : kParts)
      for (const size_t size : kSizes) link->send(frame_in_parts(++id, size, parts));
  }
  const size_t count = std::size(kSizes) * std::size(kParts);
  ASSERT_TRUE(wait(
      [&] { return pair.client->frames.size() == count && pair.server->frames.size() == count; }));
  for (const auto& side : {pair.client, pair.server})
    for (size_t i = 0; i < count; ++i)
      EXPECT_TRUE(is_frame(side->frames[i], i + 1, kSizes[i % std::size(kSizes)])) << i;
}

TEST_P(TransportTest, AFrameWithoutPartsIsEmpty) {
  serve();
  const Pair pair = connect();
  pair.client->link->send({.kind = FrameKind::ping, .id = 7, .parts = {}, .owners = {}});
  ASSERT_TRUE(wait([&] { return pair.server->frames.size() == 1; }));
  EXPECT_EQ(pair.server->frames[0].kind, FrameKind::ping);
  ASSERT_NE(pair.server->frames[0].payload, nullptr);
  EXPECT_EQ(pair.server->frames[0].payload->size(), 0U);
}

TEST_P(TransportTest, OwnersAreLetGoWhenTheirFrameIsOut) {
  serve();
  const Pair pair = connect();
  bool gone = false;
  auto owner = watched_text(1 << 20, log_, gone);
  OutFrame frame{.kind = FrameKind::control,
                 .id = 1,
                 .parts = {std::as_bytes(std::span(*owner))},
                 .owners = {}};
  frame.owners.push_back(std::move(owner));
  pair.client->link->send(std::move(frame));
  EXPECT_TRUE(wait([&] { return gone && pair.server->frames.size() == 1; }));
}

TEST_P(TransportTest, ManyLinksEachGetTheirOwnAnswers) {
  serve(echo);
  std::vector<Pair> pairs;
  for (int i = 0; i < 60; ++i) pairs.push_back(connect());
  for (size_t i = 0; i < pairs.size(); ++i)
    for (uint64_t id = 0; id < 20; ++id)
      pairs[i].client->link->send(text_frame(FrameKind::exchange, id, std::to_string(i)));
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto& frames = pairs[i].client->frames;
    ASSERT_TRUE(wait([&] { return frames.size() == 20; })) << i;
    for (uint64_t id = 0; id < 20; ++id) {
      EXPECT_EQ(frames[id].id, id);
      EXPECT_EQ(text_of(frames[id]), std::to_string(i));
    }
  }
}

TEST_P(TransportTest, CloseTellsBothSidesWhy) {
  serve();
  const Pair pair = connect(), other = connect();
  pair.client->link->close("enough");
  pair.client->link->close("again");
  pair.client->link->send(text_frame(FrameKind::ping, 1, "too late"));
  ASSERT_TRUE(wait([&] { return pair.client->closed && pair.server->closed; }));
  EXPECT_EQ(pair.client->reason, "enough");
  EXPECT_EQ(pair.server->reason, pair.server->link->peer() + " closed the connection");
  EXPECT_TRUE(pair.server->frames.empty());
  pair.server->link->send(text_frame(FrameKind::ping, 1, "to nobody"));
  other.client->link->send(text_frame(FrameKind::ping, 2, "still here"));
  EXPECT_TRUE(wait([&] { return other.server->frames.size() == 1; }));
}

TEST_P(TransportTest, WhatWasSentBeforeACloseStillArrives) {
  serve();
  const Pair pair = connect();
  for (uint64_t id = 1; id <= 3; ++id) pair.client->link->send(frame_in_parts(id, 8 << 20, 5));
  pair.client->link->close("that was all");
  ASSERT_TRUE(wait([&] { return pair.client->closed && pair.server->closed; }));
  ASSERT_EQ(pair.server->frames.size(), 3U);
  EXPECT_TRUE(is_frame(pair.server->frames[2], 3, 8 << 20));
}

TEST_P(TransportTest, ALinkMayBeClosedFromItsOwnFrame) {
  serve([](Link& link, InFrame& frame) {
    link.send(text_frame(FrameKind::result, frame.id, "bye"));
    link.close("asked to");
  });
  const Pair pair = connect();
  for (uint64_t id = 0; id < 5; ++id)
    pair.client->link->send(text_frame(FrameKind::control, id, "go"));
  ASSERT_TRUE(wait([&] { return pair.client->closed && pair.server->closed; }));
  EXPECT_EQ(pair.server->reason, "asked to");
  ASSERT_EQ(pair.client->frames.size(), 1U);
  EXPECT_EQ(text_of(pair.client->frames[0]), "bye");
}

TEST_P(TransportTest, WhatOnFrameThrowsIsToldToThePeerAndEndsOnlyThatLink) {
  serve([](Link& link, InFrame& frame) {
    if (text_of(frame) == "bad") throw std::runtime_error("cannot read it");
    echo(link, frame);
  });
  const Pair pair = connect(), other = connect();
  pair.client->link->send(text_frame(FrameKind::exchange, 1, "bad"));
  other.client->link->send(text_frame(FrameKind::exchange, 2, "good"));
  ASSERT_TRUE(wait([&] {
    return pair.client->closed && pair.server->closed && other.client->frames.size() == 1;
  }));
  EXPECT_EQ(pair.server->reason, "cannot read it");
  ASSERT_EQ(pair.client->frames.size(), 1U);
  EXPECT_EQ(pair.client->frames[0].kind, FrameKind::error);
  EXPECT_EQ(text_of(pair.client->frames[0]), "cannot read it");
  EXPECT_FALSE(other.client->closed);
}

TEST_P(TransportTest, LinksNobodyListensToAreClosed) {
  at_ = network_->server().listen(network_->any_port(), [](auto) { return nullptr; });
  std::shared_ptr<Side> side;
  network_->client().connect(at_, kTestDeadline, [&](auto link, const auto&) {
    auto made = std::make_shared<Side>(log_, link);
    log_.change([&] { side = made; });
    return made;
  });
  ASSERT_TRUE(wait([&] { return side != nullptr && side->closed; }));
  EXPECT_EQ(side->reason, at_.text() + " closed the connection");
}

TEST_P(TransportTest, EventsAreHeldUntilOnCloseHasReturned) {
  serve();
  Pair pair = connect();
  const std::weak_ptr<Side> client = pair.client;
  const std::shared_ptr<Link> link = pair.client->link;
  pair.client = nullptr;
  EXPECT_FALSE(client.expired());
  link->close("done");
  EXPECT_TRUE(wait([&] { return pair.server->closed; }));
  EXPECT_TRUE(wait([&] { return client.expired(); }));
}

TEST_P(TransportTest, ConnectingToAPortWithoutListenerIsRefused) {
  serve();
  const Endpoint closed = network_->dead_port();
  const std::string error = connect_error(closed, kTestDeadline);
  EXPECT_EQ(error, "cannot connect to " + closed.text() + ": Connection refused");
}

TEST_P(TransportTest, ListeningTwiceOnAPortFailsWithItsAddress) {
  serve();
  try {
    network_->server().listen(at_, [](auto) { return nullptr; });
    FAIL();
  } catch (const std::exception& e) {
    EXPECT_EQ(std::string(e.what()), "cannot listen on " + at_.text() + ": Address already in use");
  }
}

TEST_P(TransportTest, EventsNeverComeInsideCalls) {
  thread_local bool inside = false;
  const auto call = [](const auto& f) {
    inside = true;
    f();
    inside = false;
  };
  const auto answer = [&](Link& link, InFrame& frame) {
    EXPECT_FALSE(inside);
    call([&] { echo(link, frame); });
    if (frame.id == 3) call([&] { link.close("third"); });
  };
  serve(answer);
  const Pair pair = connect();
  for (uint64_t id = 1; id <= 3; ++id)
    call([&] { pair.client->link->send(text_frame(FrameKind::exchange, id, "x")); });
  ASSERT_TRUE(wait([&] { return pair.server->closed && pair.client->closed; }));
  EXPECT_EQ(pair.client->frames.size(), 3U);
}

TEST_P(TransportTest, ALinkOutlivesItsTransportAndDoesNothing) {
  serve();
  const Pair pair = connect();
  network_ = nullptr;
  pair.client->link->send(text_frame(FrameKind::ping, 1, "hello?"));
  pair.client->link->close("over");
  EXPECT_FALSE(pair.client->closed);
  EXPECT_FALSE(pair.client->link->peer().empty());
}

}  // namespace
}  // namespace argosy
