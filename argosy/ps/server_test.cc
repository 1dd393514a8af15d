// A server over loopback TCP among peers of every wrong kind: each is told why it is turned away,
// or the log says so, and a good worker goes on all the while.
#include "argosy/ps/server.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "argosy/base/test_support.h"
#include "argosy/net/test_sockets.h"
#include "argosy/ps/test_exchanges.h"

namespace argosy::ps {
namespace {

std::string frame_bytes(FrameKind kind, uint64_t id, std::span<const std::byte> payload) {
  FrameHeader header = header_for(text_of(payload));
  header.kind = kind;
  header.id = id;
  seal(header);
  return bytes_of(header) + text_of(payload);
}

/// A worker without a client: every frame is the test's own.
class RawWorker {
 public:
  explicit RawWorker(uint16_t port) : socket_(RawSocket::connected(port)) {}
  RawWorker(uint16_t port, const Hello& hello) : RawWorker(port) {
    send(FrameKind::hello, 0, encode(hello));
    EXPECT_EQ(frame().header.kind, FrameKind::welcome);
  }
  void send(FrameKind kind, uint64_t id, std::span<const std::byte> payload) const {
    socket_.send(frame_bytes(kind, id, payload));
  }
  void send(const RawExchange& exchange) const {
    send(FrameKind::exchange, exchange.sequence, exchange.bytes());
  }
  RawSocket::Frame frame() const {
    const auto found = socket_.receive_frame();
    EXPECT_TRUE(found.has_value()) << "the server has closed";
    return found.value_or(RawSocket::Frame{});
  }
  /// The text of an error frame, behind which the server closes.
  std::string refusal() const {
    const RawSocket::Frame last = frame();
    EXPECT_EQ(last.header.kind, FrameKind::error);
    EXPECT_TRUE(closed());
    return last.payload;
  }
  bool closed() const { return !socket_.receive_frame().has_value(); }
  std::vector<float> reply(uint64_t sequence) const {
    const RawSocket::Frame answer = frame();
    EXPECT_EQ(answer.header.kind, FrameKind::reply) << answer.payload;
    EXPECT_EQ(answer.header.id, sequence);
    std::vector<float> values((answer.payload.size() - sizeof(ReplyHead)) / sizeof(float));
    const auto bytes = std::as_writable_bytes(std::span(values));
    std::ranges::copy(std::as_bytes(std::span(answer.payload)).subspan(sizeof(ReplyHead)),
                      bytes.begin());
    return values;
  }
  RawSocket& socket() { return socket_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(socket_.port()); }

 private:
  RawSocket socket_;
};

verbs::Gather metrics(std::string_view bytes) {
  return {"test", 1, "metrics", bytes_of_text(bytes)};
}

class PsServerTest : public testing::Test {
 public:
  ~PsServerTest() override {
    good_.reset();
    clients_.clear();
    client_transport_.reset();
    transport_.reset();  // nobody starts a task from here on
  }

 protected:
  void start(ServerOptions options = {.workers = 2}, const LinkOptions& links = {}) {
    options.job = "job";
    options.threads = 2;
    options.log = log_.writer();
    workers_ = options.workers;
    server_ = Server::make(*env_, placement_, std::move(options));
    transport_ = tcp_transport(links);
    at_ = transport_->listen({"127.0.0.1", 0}, server_->acceptor());
  }
  /// Worker 0, busy from now on.
  void start_with_good_worker(ServerOptions options = {.workers = 2},
                              const LinkOptions& links = {}) {
    start(std::move(options), links);
    good_.emplace(*env_, placement_, options_of(0));
  }
  ClientOptions options_of(uint32_t worker) {
    return {.servers = {at_},
            .worker = worker,
            .workers = workers_,
            .job = "job",
            .log = client_log_.writer()};
  }
  Client& client(uint32_t worker) {
    clients_.push_back(Client::make(*env_, *client_transport_, placement_, options_of(worker)));
    return *clients_.back();
  }
  Hello hello(uint32_t worker, uint64_t incarnation = 77) const {
    return {.job = "job",
            .plan_hash = placement_.hash(),
            .worker = worker,
            .workers = workers_,
            .incarnation = incarnation};
  }
  /// What a client with these settings ends with.
  std::string ending(ClientOptions options, const Placement& placement) {
    BusyWorker worker(*env_, placement, std::move(options));
    return worker.error();
  }
  void expect_turned_away(const std::vector<std::string>& words) {
    EXPECT_TRUE(log_.has(words)) << log_.text();
    EXPECT_TRUE(good_->goes_on());
  }
  float weight(Key key) { return peek(server_->shard().table(0), std::vector<Key>{key})[0]; }
  template <class V>
  std::string failure(Client& client, const V& verb) {
    return message_of<Error>([&] { call(client, verb); });
  }
  bool wait_until(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kTestDeadline;
    while (!condition() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(2ms);
    return condition();
  }

  const Placement placement_ = adding_placement();
  TestFolder folder_;
  LogLines log_, client_log_;
  std::unique_ptr<Env> env_ = real_env();
  std::shared_ptr<Server> server_;
  std::optional<std::jthread> background_;  // saves and loads, one at a time
  std::unique_ptr<Transport> transport_, client_transport_ = tcp_transport();
  std::vector<std::shared_ptr<Client>> clients_;
  std::optional<BusyWorker> good_;
  Endpoint at_;
  uint32_t workers_ = 1;
};

TEST_F(PsServerTest, RandomBytesAreAnsweredAndSpokenOf) {
  start_with_good_worker();
  const RawWorker raw(at_.port);
  raw.send(FrameKind::ping, 0, {});
  const RawWorker noise(at_.port);
  const auto bytes = random_bytes(4096, 5);
  const_cast<RawWorker&>(noise).socket().send(text_of(*bytes));
  EXPECT_NE(noise.refusal().find("frame begins with"), std::string::npos);
  expect_turned_away({noise.address(), "went before its hello", "frame begins with"});
  EXPECT_EQ(raw.refusal(), "a frame of kind 7 before the hello");
  expect_turned_away({raw.address(), "a frame of kind 7 before the hello"});
}

TEST_F(PsServerTest, RandomBytesOfAWorkerEndItsLinkOnly) {
  start_with_good_worker();
  RawWorker raw(at_.port, hello(1));
  raw.socket().send(text_of(*random_bytes(4096, 6)));
  EXPECT_NE(raw.refusal().find("frame begins with"), std::string::npos);
  expect_turned_away({"lost worker 1", "frame begins with"});
}

TEST_F(PsServerTest, AnotherVersionIsNamed) {
  start_with_good_worker();
  RawWorker raw(at_.port);
  FrameHeader header = header_for("");
  header.version = 2;
  seal(header);
  raw.socket().send(bytes_of(header));
  EXPECT_EQ(raw.refusal(), "frame of version 2, expected 1");
  expect_turned_away({raw.address(), "frame of version 2, expected 1"});
}

TEST_F(PsServerTest, RandomPayloadsInRightFramesEndTheirLinkOnly) {
  start_with_good_worker();
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const auto bytes = random_bytes(16 + seed * 8, seed);
    const auto kind = seed % 2 == 0 ? FrameKind::exchange : FrameKind::control;
    const RawWorker raw(at_.port, hello(1, 100));
    raw.send(kind, 1000 + seed, *bytes);
    EXPECT_FALSE(raw.refusal().empty());
    const RawWorker before(at_.port);
    before.send(FrameKind::hello, 0, *bytes);
    EXPECT_NE(before.refusal().find("hello"), std::string::npos);
  }
  expect_turned_away({"exchange: "});
  expect_turned_away({"control: ends early"});
}

TEST_F(PsServerTest, APlanThatDiffersIsRefusedForGood) {
  start_with_good_worker();
  const std::string error = ending(options_of(1), adding_placement(1, "others"));
  EXPECT_NE(error.find("ConfigError: server 0 at " + at_.text() + " refuses: plan "),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("both must run the same model"), std::string::npos) << error;
  expect_turned_away({"127.0.0.1:", "of the worker is not the server's"});
}

TEST_F(PsServerTest, WorkersThatDoNotBelongHereAreRefusedForGood) {
  start_with_good_worker();
  const auto refused = [&](auto change, const std::string& words) {
    ClientOptions options = options_of(1);
    change(options);
    const std::string error = ending(std::move(options), placement_);
    EXPECT_NE(error.find("ConfigError"), std::string::npos) << error;
    EXPECT_NE(error.find(words), std::string::npos) << error;
    expect_turned_away({"127.0.0.1:", words});
  };
  refused([](auto& o) { o.job = "other"; }, "job 'other', this is a server of job 'job'");
  refused([](auto& o) { o.workers = 3; }, "the worker counts 3 workers, the server 2");
  refused([](auto& o) { o.worker = 2; }, "worker 2 but only 2 workers");
  refused([](auto& o) { o.inflight = 0; }, "inflight 0, expected 1 to");
  refused([](auto& o) { o.worker = 0; }, "worker 0 is here already, from 127.0.0.1:");
}

TEST_F(PsServerTest, OfTwoWorkersWithOneNumberTheSecondIsToldWhereTheFirstIs) {
  start_with_good_worker();
  const RawWorker first(at_.port, hello(1, 5));
  const RawWorker second(at_.port);
  second.send(FrameKind::hello, 0, encode(hello(1, 6)));
  EXPECT_EQ(second.refusal(), "worker 1 is here already, from " + first.address() +
                                  "; a second one with this number came from " + second.address());
  first.send(FrameKind::ping, 3, {});
  EXPECT_EQ(first.frame().header.kind, FrameKind::pong);
  EXPECT_TRUE(good_->goes_on());
}

TEST_F(PsServerTest, AHelloThatComesTwiceIsWelcomedTwice) {
  start_with_good_worker();
  const RawWorker raw(at_.port, hello(1));
  raw.send(FrameKind::hello, 4, encode(hello(1)));
  EXPECT_EQ(raw.frame().header.kind, FrameKind::welcome);
  raw.send(FrameKind::ping, 5, {});
  EXPECT_EQ(raw.frame().header.kind, FrameKind::pong);
}

TEST_F(PsServerTest, ALinkCannotBecomeAnotherWorkers) {
  start_with_good_worker({.workers = 3, .limits = {.grace = 100ms}});
  const RawWorker raw(at_.port, hello(1));
  raw.send(FrameKind::hello, 0, encode(hello(2)));
  EXPECT_EQ(raw.refusal(), "this link is worker 1's, now it says it is worker 2");
  expect_turned_away({"lost worker 1"});
  expect_turned_away({"worker 1 is taken for dead: its link has been gone for 0.1 s"});
}

TEST_F(PsServerTest, AnIncarnationOfZeroIsOneLikeOthers) {
  start_with_good_worker();
  const RawWorker raw(at_.port, hello(1, 0));
  raw.send(RawExchange{.lists = {{.number = 3, .keys = {1}, .grads = {1, 1}}}});
  EXPECT_EQ(raw.refusal(), "exchange 1 pushes list 3, which is not kept any more");
  EXPECT_TRUE(good_->goes_on());
}

TEST_F(PsServerTest, FramesThatServersDoNotTakeEndTheLink) {
  start_with_good_worker();
  for (const FrameKind kind : {FrameKind::welcome, FrameKind::reply, FrameKind::result,
                               FrameKind::pong, static_cast<FrameKind>(4711)}) {
    const RawWorker raw(at_.port, hello(1));
    raw.send(kind, 0, {});
    EXPECT_NE(raw.refusal().find(", which servers do not take"), std::string::npos);
  }
  RawWorker raw(at_.port, hello(1));
  raw.send(FrameKind::error, 0, bytes_of_text("I have had enough"));
  EXPECT_TRUE(raw.closed());
  expect_turned_away({"lost worker 1: I have had enough"});
}

TEST_F(PsServerTest, ASlowReaderIsCutOff) {
  start_with_good_worker({.workers = 2}, {.max_queued = 1 << 20});
  const RawWorker raw(at_.port, hello(1));
  std::vector<Key> keys(20'000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  for (uint64_t sequence = 1; sequence <= 150; ++sequence)
    raw.send(RawExchange{.sequence = sequence,
                         .flags = ExchangeHead::kPullRows | ExchangeHead::kInference,
                         .pull = keys});
  expect_turned_away({"lost worker 1: slow reader: ", "bytes wait to be sent to " + raw.address()});
}

TEST_F(PsServerTest, AClientThatVanishesIsTakenForDeadAndTheStepGoesOn) {
  start({.workers = 2, .sync = true, .limits = {.grace = 100ms}});
  RawWorker raw(at_.port, hello(1));
  good_.emplace(*env_, placement_, options_of(0));
  raw.send(RawExchange{.flags = ExchangeHead::kPushDense | ExchangeHead::kEndsStep,
                       .dense = std::vector<float>(kTestDense, 3.0F)});
  EXPECT_TRUE(raw.reply(1).empty());
  raw.socket().abort();
  expect_turned_away({"lost worker 1: lost the connection to " + std::string("127.0.0.1:")});
  expect_turned_away({"worker 1 is taken for dead: its link has been gone for 0.1 s"});
  const RawWorker again(at_.port);
  again.send(FrameKind::hello, 0, encode(hello(1)));
  EXPECT_EQ(again.frame().header.kind, FrameKind::welcome);
  EXPECT_TRUE(log_.has({"worker 1 was taken for dead and is back"}));
}

TEST_F(PsServerTest, AHalfOpenConnectionIsCut) {
  start_with_good_worker({.workers = 3, .limits = {.quiet = 1500ms}});
  const RawWorker stranger(at_.port), silent(at_.port, hello(1));
  const RawWorker half(at_.port, hello(2));
  const std::string frame =
      frame_bytes(FrameKind::exchange, 1,
                  RawExchange{.flags = ExchangeHead::kPushDense, .dense = {1, 1}}.bytes());
  const_cast<RawWorker&>(half).socket().send(frame.substr(0, frame.size() - 3));
  EXPECT_TRUE(stranger.closed());
  expect_turned_away({stranger.address(), "went before its hello: no hello came for 1.5 s"});
  EXPECT_TRUE(silent.closed());
  expect_turned_away({"worker 1 is taken for dead: nothing was heard of it for 1.5 s"});
  EXPECT_TRUE(half.closed());
  expect_turned_away({"worker 2 is taken for dead: nothing was heard of it for 1.5 s"});
}

TEST_F(PsServerTest, AFrameThatTakesLongIsASignOfLife) {
  start_with_good_worker({.workers = 2, .limits = {.quiet = 1500ms}});
  RawWorker slow(at_.port, hello(1));
  const std::string frame = frame_bytes(
      FrameKind::exchange, 1,
      RawExchange{.flags = ExchangeHead::kPushDense, .dense = std::vector<float>(kTestDense, 1.0F)}
          .bytes());
  size_t sent = sizeof(FrameHeader);
  slow.socket().send(frame.substr(0, sent));
  for (auto next = std::chrono::steady_clock::now(); sent < sizeof(FrameHeader) + 10; ++sent) {
    slow.socket().send(frame.substr(sent, 1));
    for (next += 300ms; std::chrono::steady_clock::now() < next;) ASSERT_TRUE(good_->goes_on());
  }
  slow.socket().send(frame.substr(sent));
  EXPECT_TRUE(slow.reply(1).empty());
  EXPECT_EQ(log_.text().find("taken for dead"), std::string::npos) << log_.text();
}

TEST_F(PsServerTest, AnExchangeThatComesAgainIsAnsweredAndNotApplied) {
  start_with_good_worker();
  const RawExchange push{.flags = ExchangeHead::kPullRows | ExchangeHead::kCarriesKeys,
                         .pull = {500},
                         .lists = {{.number = 0, .keys = {500}, .grads = {2, 3}}}};
  {
    const RawWorker raw(at_.port, hello(1));
    raw.send(push);
    raw.send(push);
    EXPECT_EQ(raw.reply(1), (std::vector<float>{2, 3}));
    EXPECT_EQ(raw.reply(1), (std::vector<float>{2, 3}));
  }
  const RawWorker raw(at_.port, hello(1));  // over another link
  raw.send(push);
  EXPECT_EQ(raw.reply(1), (std::vector<float>{2, 3}));
  RawExchange next{.sequence = 3, .lists = {{.number = 1, .keys = {500}, .grads = {1, 1}}}};
  raw.send(next);  // too early: not answered, not applied
  next.sequence = 2;
  raw.send(next);
  EXPECT_TRUE(raw.reply(2).empty());
  EXPECT_EQ(weight(500), 3.0F);
  raw.send(FrameKind::ping, 1, {});
  const RawSocket::Frame pong = raw.frame();
  const auto bytes = std::as_bytes(std::span(pong.payload));
  EXPECT_EQ(decode_pong(in_frame(FrameKind::pong, bytes)).applied, 2U);
  EXPECT_TRUE(good_->goes_on());
}

TEST_F(PsServerTest, AWorkerThatWasStartedAgainGoesOnBehindWhatIsApplied) {
  start_with_good_worker();
  {
    RawWorker raw(at_.port, hello(1, 5));
    raw.send(RawExchange{.flags = ExchangeHead::kPushDense,
                         .dense = std::vector<float>(kTestDense, 1.0F)});
    EXPECT_TRUE(raw.reply(1).empty());
    raw.socket().abort();
  }
  EXPECT_TRUE(log_.has({"lost worker 1"}));
  const RawWorker raw(at_.port);
  raw.send(FrameKind::hello, 9, encode(hello(1, 6)));
  const RawSocket::Frame welcome = raw.frame();
  ASSERT_EQ(welcome.header.kind, FrameKind::welcome) << welcome.payload;
  const auto bytes = std::as_bytes(std::span(welcome.payload));
  EXPECT_EQ(decode_welcome(in_frame(FrameKind::welcome, bytes)).applied, 1U);
}

TEST_F(PsServerTest, ListsThatAreNotThereOrDoNotFitAreRefusedWhole) {
  start_with_good_worker();
  const auto refusal = [&](const RawExchange& exchange) {
    const RawWorker raw(at_.port, hello(1));
    raw.send(exchange);
    return raw.refusal();
  };
  const std::vector<float> dense(kTestDense, 1.0F);
  EXPECT_EQ(refusal({.flags = ExchangeHead::kPushDense,
                     .lists = {{.number = 9, .keys = {600}, .grads = {1, 1}}},
                     .dense = dense}),
            "exchange 1 pushes list 9, which is not kept any more");
  {
    const RawWorker raw(at_.port, hello(1));
    raw.send(RawExchange{.flags = ExchangeHead::kPullRows, .pull = {600, 601}});
    EXPECT_EQ(raw.reply(1).size(), 2 * kTestDim);
  }
  EXPECT_EQ(refusal({.sequence = 2, .lists = {{.number = 1, .keys = {600}, .grads = {1, 1}}}}),
            "list 1 has 2 keys, 1 were pushed");
  EXPECT_EQ(refusal({.sequence = 2, .flags = 128}), "exchange: flags 128, expected none above 127");
  EXPECT_EQ(refusal({.sequence = 0}), "exchange: sequence 0, but the first is 1");
  EXPECT_EQ(weight(600), 0.0F);
  EXPECT_TRUE(good_->goes_on());
}

/// The key with this hash: mix() undone.
Key key_with(uint64_t hash) {
  hash ^= hash >> 31 ^ hash >> 62;
  hash *= 0x319642b2d24d8ec3ULL;
  hash ^= hash >> 27 ^ hash >> 54;
  hash *= 0x96de1b173f119089ULL;
  return hash ^ hash >> 30 ^ hash >> 60;
}

/// Keys that a table refuses when it has taken half of them.
RawExchange poisonous(uint32_t flags) {
  RawExchange exchange{.flags = flags | ExchangeHead::kCarriesKeys, .lists = {{.number = 0}}};
  for (uint64_t i = 0; i < 6000; ++i) exchange.lists[0].keys.push_back(key_with(i * 16));
  exchange.lists[0].grads.resize(exchange.lists[0].keys.size() * kTestDim, 1.0F);
  return exchange;
}

TEST_F(PsServerTest, AnExchangeThatFailsHalfwayIsRefusedForGood) {
  start_with_good_worker();
  const RawWorker raw(at_.port, hello(1));
  raw.send(poisonous(0));
  const RawSocket::Frame answer = raw.frame();
  EXPECT_EQ(answer.header.kind, FrameKind::error);
  EXPECT_EQ(answer.header.id, static_cast<uint64_t>(Severity::final));
  EXPECT_NE(answer.payload.find("exchange 1: the hashes of"), std::string::npos) << answer.payload;
  expect_turned_away({raw.address(), "the hashes of"});
}

TEST_F(PsServerTest, AStepThatFailsIsRefusedToAllWhoTookPartInIt) {
  start({.workers = 2, .sync = true, .limits = {.grace = 100ms}});
  const RawWorker bad(at_.port, hello(0)), good(at_.port, hello(1));
  bad.send(poisonous(ExchangeHead::kEndsStep));
  good.send(RawExchange{.flags = ExchangeHead::kEndsStep});
  for (const RawWorker* worker : {&bad, &good}) {
    const RawSocket::Frame answer = worker->frame();
    EXPECT_EQ(answer.header.kind, FrameKind::error);
    EXPECT_EQ(answer.header.id, static_cast<uint64_t>(Severity::final));
    EXPECT_NE(answer.payload.find("step 1: the hashes of"), std::string::npos) << answer.payload;
  }
  EXPECT_TRUE(wait_until([&] { return server_->done(); })) << log_.text();
}

TEST_F(PsServerTest, ShrinkErasesRowsThatWereNotSeenForThatLong) {
  start({.workers = 1});
  Client& worker = client(0);
  const std::vector<std::vector<Key>> both = {{1, 2}}, first = {{1}};
  std::vector<float> rows(2 * kTestDim);
  const auto pull = [&](const std::vector<std::vector<Key>>& keys) {
    const auto exchange = std::make_shared<Exchange>();
    exchange->lists = std::make_shared<KeyLists>(placement_, keys);
    exchange->rows.emplace_back(rows);
    send_exchange(worker, exchange).get();
    return exchange->lists;
  };
  const auto push = [&](std::shared_ptr<KeyLists> lists, const std::vector<float>& grads) {
    const auto exchange = std::make_shared<Exchange>();
    exchange->pushes.push_back({std::move(lists), {grads}});
    send_exchange(worker, exchange).get();
  };
  const auto shrink = [&](uint32_t unseen) { return call(worker, verbs::Shrink{unseen}).erased; };
  const std::vector<float> one(kTestDim, 1.0F), two(2 * kTestDim, 2.0F);
  const auto lists = pull(both);
  EXPECT_EQ(server_->shard().rows(), 0U);  // a pull makes no rows
  push(lists, two);
  EXPECT_EQ(shrink(3), 0U);
  EXPECT_EQ(shrink(3), 0U);
  push(std::make_shared<KeyLists>(placement_, first), one);
  EXPECT_EQ(shrink(3), 1U);  // 2 was not seen, 1 was pushed
  EXPECT_EQ(weight(1), 3.0F);
  EXPECT_EQ(call(worker, verbs::Stats{}).lines, "step 2\nw 0..8 of 8\nrows 1 rows\n");
  // A push by number makes a row again that was erased since its pull.
  push(lists, two);
  EXPECT_EQ(weight(2), 2.0F);
  EXPECT_EQ(shrink(1), 2U);
}

TEST_F(PsServerTest, VerbsThatCannotBeDoneAreAnsweredWithTheReason) {
  start_with_good_worker();
  Client& worker = client(1);
  const std::string name = "server 0 at " + at_.text() + ": ";
  const auto refusal = [&](Request request) {
    std::promise<std::string> answer;
    worker.ask(0, std::move(request), [&](std::exception_ptr error, auto) {
      answer.set_value(message_of<Error>([&] { std::rethrow_exception(error); }));
    });
    return answer.get_future().get();
  };
  EXPECT_EQ(refusal({.verb = "shink"}),
            name +
                "'shink': no such verb, did you mean shrink?; there are cut, gather, join, "
                "leave, load, mark, milestone, missed, pause, prepare_cut, progress, "
                "read_parameters, read_rows, "
                "resume, save, secure, shrink, standing, stats, stop, take_file, trained_files, "
                "write_parameters");
  EXPECT_NE(refusal({.verb = ""}).find("'': no such verb"), std::string::npos);
  EXPECT_EQ(refusal({.verb = "shrink", .fields = bytes_of_text("abc")}),
            name + "shrink: ends early, 4 bytes expected and 3 left");
  EXPECT_EQ(failure(worker, verbs::ReadRows{.table = "nothing", .from = {}}),
            name + "no table 'nothing'");
  EXPECT_EQ(failure(worker, verbs::WriteParameters{.step = 1, .values = {1, 2, 3}}),
            name + "parameters: 3 floats, expected 8");
  EXPECT_EQ(failure(worker, verbs::Load{folder_.path(), {{"others", "x"}}}),
            name + folder_.path() + ": has no table 'rows'");
  EXPECT_NE(failure(worker, verbs::Save{1, "/dev/null/folder"}).find("/dev/null/folder"),
            std::string::npos);
  EXPECT_TRUE(call(worker, verbs::Stats{}).lines.starts_with("step "));
  EXPECT_TRUE(good_->goes_on());
}

TEST_F(PsServerTest, SavesAreLoadedAndDamagedOnesAreRefused) {
  start_with_good_worker({.workers = 2, .background = [this](std::function<void()> task) {
                            background_.emplace(std::move(task));
                          }});
  Client& worker = client(1);
  ASSERT_TRUE(good_->goes_on());
  good_->stop();
  const float before = weight(1000);
  const auto files = call(worker, verbs::Save{7, folder_.path()}).files;
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].table, "rows");
  EXPECT_EQ(files[0].file, "rows.7.0-of-1.rows");
  const std::string file = folder_.path() + "/rows.7.0-of-1.rows";
  const auto rows = call(worker, verbs::ReadRows{.table = "rows", .from = {}});
  EXPECT_EQ(rows.keys.size(), 2U);  // keys 1 and 1000
  EXPECT_TRUE(rows.next.at_end);
  EXPECT_EQ(call(worker, verbs::Shrink{1}).erased, 2U);
  const verbs::Load load{folder_.path(), files};

  std::ifstream stream(file, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(stream), {}};
  std::string flipped = whole;
  flipped[whole.size() / 2] ^= 1;
  for (const std::string& damaged : {whole.substr(0, whole.size() / 2), flipped, std::string()}) {
    folder_.write("rows.7.0-of-1.rows", damaged);
    EXPECT_NE(failure(worker, load).find(file), std::string::npos);
    EXPECT_EQ(weight(1000), 0.0F);  // nothing of it was taken
  }
  std::filesystem::remove(file);
  EXPECT_NE(failure(worker, load).find("No such file"), std::string::npos);
  folder_.write("rows.7.0-of-1.rows", whole);
  call(worker, load);
  EXPECT_EQ(weight(1000), before);
  EXPECT_TRUE(log_.has({"saved 1 tables in " + folder_.path()}));
  EXPECT_TRUE(log_.has({"loaded 1 tables from " + folder_.path()}));
}

TEST_F(PsServerTest, GatherIsAnsweredWhenAWorkerLeavesOrDies) {
  start({.workers = 3, .limits = {.grace = 100ms}});
  Client &first = client(0), &second = client(1);
  RawWorker third(at_.port, hello(2));
  auto answer = ask(first, metrics("one"));
  EXPECT_EQ(answer.wait_for(20ms), std::future_status::timeout);
  call(second, verbs::Leave{});
  third.socket().abort();
  ASSERT_EQ(answer.wait_for(kTestDeadline), std::future_status::ready) << log_.text();
  const verbs::Gathered gathered = answer.get();
  ASSERT_EQ(gathered.parts.size(), 1U);
  EXPECT_EQ(gathered.parts[0].worker, 0U);
  EXPECT_EQ(text_of(gathered), "one");
  EXPECT_TRUE(log_.has({"worker 1 has left"}));
  EXPECT_FALSE(server_->done());
  call(first, verbs::Leave{});
  EXPECT_TRUE(wait_until([&] { return server_->done(); }));
}

TEST_F(PsServerTest, WhatADeadProcessGatheredDoesNotCountForTheNextOne) {
  start({.workers = 2});
  Client& first = client(0);
  {
    RawWorker raw(at_.port, hello(1, 5));
    raw.send(FrameKind::control, 1, encode(request_of(metrics("old"))));
    raw.send(FrameKind::ping, 0, {});
    raw.frame();
    raw.socket().abort();
  }
  EXPECT_TRUE(log_.has({"lost worker 1"}));
  const RawWorker raw(at_.port, hello(1, 6));
  auto answer = ask(first, metrics("one"));
  EXPECT_EQ(answer.wait_for(50ms), std::future_status::timeout);
  raw.send(FrameKind::control, 1, encode(request_of(metrics("new"))));
  ASSERT_EQ(answer.wait_for(kTestDeadline), std::future_status::ready);
  EXPECT_NE(text_of(answer.get()).find("new"), std::string::npos);
}

TEST_F(PsServerTest, AControlThatComesAgainIsAnsweredAndNotPerformedAgain) {
  start({.workers = 1});
  const RawWorker raw(at_.port, hello(0));
  raw.send(RawExchange{.flags = ExchangeHead::kCarriesKeys,
                       .lists = {{.number = 0, .keys = {4}, .grads = {1, 1}}}});
  raw.reply(1);
  for (int again = 0; again < 3; ++again) {
    raw.send(FrameKind::control, 1, encode(request_of(verbs::Shrink{3})));
    EXPECT_EQ(raw.frame().payload, std::string(1 + sizeof(uint64_t), '\0'));  // none were erased
  }
  EXPECT_EQ(server_->shard().rows(), 1U);
}

TEST_F(PsServerTest, StopEndsTheServerWithWorkersLeft) {
  start_with_good_worker();
  ASSERT_TRUE(good_->goes_on());
  EXPECT_FALSE(server_->done());
  call(good_->client(), verbs::Stop{});
  EXPECT_TRUE(server_->done());
  server_->wait();
  EXPECT_TRUE(log_.has({"worker 0 says stop"}));
}

TEST_F(PsServerTest, AWorkerThatLeavesTheStepGroupKeepsNobodyWaiting) {
  start({.workers = 3, .sync = true});
  BusyWorker second(*env_, placement_, options_of(1)), third(*env_, placement_, options_of(2));
  good_.emplace(*env_, placement_, options_of(0));
  EXPECT_TRUE(good_->goes_on());
  call(second.client(), verbs::Leave{});
  EXPECT_TRUE(good_->goes_on());
  call(third.client(), verbs::Pause{});
  EXPECT_TRUE(good_->goes_on());
}

TEST_F(PsServerTest, BothSidesSayWhoWaitsForWhom) {
  start({.workers = 3, .sync = true, .patience = 50ms});
  EXPECT_TRUE(log_.has({"server 0: waits for worker 0 (not here yet), worker 1 (not here yet)"}));
  ClientOptions options = options_of(0);
  options.tolerance.patience = 50ms;
  const RawWorker raw(at_.port, hello(1));
  good_.emplace(*env_, placement_, options);
  const std::string wait = "wait for worker 1 (" + raw.address() + "), worker 2 (not here yet)";
  EXPECT_TRUE(log_.has({"server 0: step 1: worker 0 (127.0.0.1:", wait})) << log_.text();
  EXPECT_TRUE(client_log_.has(
      {"worker 0: waits for server 0 at " + at_.text() + ": step 1: worker 0", wait}))
      << client_log_.text();
}

TEST_F(PsServerTest, BothSidesSayWhoAGatheringWaitsFor) {
  start({.workers = 2, .patience = 50ms});
  ClientOptions options = options_of(0);
  options.tolerance.patience = 50ms;
  good_.emplace(*env_, placement_, options);
  const RawWorker raw(at_.port, hello(1));
  auto answer = ask(good_->client(), verbs::Gather{"test", 1, "the epoch is saved", {}});
  const std::string wait =
      "'gather the epoch is saved': 1 of 2 are there, it waits for worker 1 (" + raw.address() +
      ")";
  EXPECT_TRUE(log_.has({"server 0: " + wait})) << log_.text();
  EXPECT_TRUE(client_log_.has({"worker 0: waits for server 0", wait})) << client_log_.text();
  EXPECT_TRUE(good_->goes_on());
}

TEST_F(PsServerTest, ShortWaitsAreNotSpokenOf) {
  start({.workers = 2, .sync = true, .patience = 700ms});
  BusyWorker second(*env_, placement_, options_of(1));
  good_.emplace(*env_, placement_, options_of(0));
  const auto end = std::chrono::steady_clock::now() + 2s;
  while (std::chrono::steady_clock::now() < end) ASSERT_TRUE(good_->goes_on());
  EXPECT_EQ(log_.text(), "");
}

}  // namespace
}  // namespace argosy::ps
