// Only TCP has these: strangers that connect, slow and vanished peers, names, threads.
#include <netinet/tcp.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/net/test_links.h"
#include "argosy/net/test_sockets.h"

namespace argosy {
namespace {

class TcpTest : public testing::Test {
 protected:
  void serve(const LinkOptions& options = {}, Side::Answer answer = echo,
             const Endpoint& at = {"127.0.0.1", 0}, size_t threads = 1) {
    server_ = tcp_transport(options, threads);
    at_ = server_->listen(at, accept(answer));
  }

  Transport::OnAccept accept(Side::Answer answer) {
    return [this, answer](auto link) {
      auto side = std::make_shared<Side>(log_, link, answer);
      log_.change([&] { accepted_.push_back(side); });
      return side;
    };
  }

  std::shared_ptr<Side> connect(Transport& transport, const Endpoint& to,
                                Side::Answer answer = nullptr) {
    std::shared_ptr<Side> result;
    bool called = false;
    transport.connect(to, kTestDeadline, [&, answer](auto link, const std::string& error) {
      std::shared_ptr<Side> side;
      if (link != nullptr) side = std::make_shared<Side>(log_, link, answer);
      log_.change([&] {
        EXPECT_EQ(error, "");
        called = true;
        result = side;
      });
      return side;
    });
    EXPECT_TRUE(log_.wait([&] { return called; }));
    return result;
  }

  std::string connect_error(const Endpoint& to, Env::Duration within) {
    std::string result;
    client_->connect(to, within,
                     [&](auto link, const std::string& error) -> std::shared_ptr<LinkEvents> {
                       EXPECT_EQ(link, nullptr);
                       log_.change([&] { result = error; });
                       return nullptr;
                     });
    EXPECT_TRUE(log_.wait([&] { return !result.empty(); }));
    return result;
  }

  std::shared_ptr<Side> accepted(size_t i) {
    EXPECT_TRUE(log_.wait([&] { return accepted_.size() > i; }));
    return accepted_.at(i);
  }

  std::shared_ptr<Side> accepted_from(const RawSocket& raw) {
    std::shared_ptr<Side> found;
    EXPECT_TRUE(log_.wait([&] {
      for (const auto& side : accepted_)
        if (side->link->peer() == Endpoint{"127.0.0.1", raw.port()}.text()) found = side;
      return found != nullptr;
    }));
    return found;
  }

  void expect_served(const Endpoint& at) {
    const auto side = connect(*client_, at);
    ASSERT_NE(side, nullptr);
    side->link->send(text_frame(FrameKind::exchange, 4, "ping"));
    EXPECT_TRUE(log_.wait([&] { return side->frames.size() == 1; }));
  }

  /// The bytes are a bad frame: the peer gets the reason and the end, nobody else notices.
  void expect_rejected(const std::string& bytes, const std::string& reason) {
    const auto other = connect(*client_, at_);
    const auto raw = RawSocket::connected(at_.port);
    raw.send(bytes);
    const auto answer = raw.receive_frame();
    ASSERT_TRUE(answer.has_value()) << reason;
    EXPECT_EQ(answer->header.kind, FrameKind::error);
    EXPECT_EQ(answer->payload.rfind(reason, 0), 0U) << answer->payload;
    EXPECT_FALSE(raw.receive_frame().has_value());
    const auto side = accepted_from(raw);
    ASSERT_TRUE(log_.wait([&] { return side->closed; }));
    EXPECT_EQ(side->reason, answer->payload);
    EXPECT_TRUE(side->frames.empty());
    other->link->send(text_frame(FrameKind::exchange, 4, "ping"));
    EXPECT_TRUE(log_.wait([&] { return other->frames.size() == 1; }));
    EXPECT_FALSE(other->closed);
  }

  Log log_;  // outlives the transports, whose threads write to it
  std::vector<std::shared_ptr<Side>> accepted_;
  Endpoint at_;
  std::unique_ptr<Transport> server_, client_ = tcp_transport();
};

TEST_F(TcpTest, FramesMayComeInPiecesOrTogether) {
  serve();
  const auto raw = RawSocket::connected(at_.port);
  const int now = 1;
  ::setsockopt(raw.fd(), IPPROTO_TCP, TCP_NODELAY, &now, sizeof(now));
  const std::string large(100000, 'x');
  std::string all = encoded("a") + encoded("") + encoded(large) + encoded("b");
  for (size_t i = 0; i < 60; ++i) raw.send(all.substr(i, 1));
  raw.send(std::string_view(all).substr(60));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += encoded(std::to_string(i));
  raw.send(many);
  for (const std::string& text : {std::string("a"), std::string(), large, std::string("b")})
    EXPECT_EQ(raw.receive_frame()->payload, text);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(raw.receive_frame()->payload, std::to_string(i));
}

TEST_F(TcpTest, WrongMagicIsRejected) {
  serve();
  expect_rejected("GET / HTTP/1.1\r\nHost: example\r\nAccept: */*\r\n\r\n",
                  "frame begins with 0x20544547, expected 0x59475241");
}

TEST_F(TcpTest, WrongVersionIsRejected) {
  serve();
  FrameHeader header = header_for("");
  header.version = 2;
  seal(header);
  expect_rejected(bytes_of(header), "frame of version 2, expected 1");
}

TEST_F(TcpTest, AFlippedHeaderBitIsRejected) {
  serve();
  std::string bytes = encoded("payload");
  bytes[9] ^= 4;
  expect_rejected(bytes, "frame header with sum ");
}

TEST_F(TcpTest, AFlippedPayloadBitIsRejected) {
  serve();
  std::string bytes = encoded("payload");
  bytes.back() ^= 4;
  expect_rejected(bytes, "frame payload with sum ");
}

TEST_F(TcpTest, AFrameLongerThanAllowedIsRejectedByItsHeader) {
  serve({.max_frame = 1000});
  expect_rejected(encoded(std::string(1000000, 'x')),
                  "frame of 1000000 bytes, expected at most 1000");
}

TEST_F(TcpTest, PayloadsWithoutSumsAreTaken) {
  serve({.sum_payloads = false});
  const auto raw = RawSocket::connected(at_.port);
  FrameHeader header = header_for("payload");
  header.flags = 0;
  seal(header);
  raw.send(bytes_of(header) + "PAYLOAD");
  const auto answer = raw.receive_frame();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->payload, "PAYLOAD");
  EXPECT_EQ(answer->header.flags, 0U);
}

TEST_F(TcpTest, RandomBytesInsteadOfAHandshakeDisturbNobody) {
  serve();
  const auto friendly = connect(*client_, at_);
  const RandomStream random(20240501);
  for (uint64_t visit = 0; visit < 100; ++visit) {
    auto raw = RawSocket::connected(at_.port);
    std::string bytes = visit % 2 == 0 ? encoded("hello") : std::string();
    for (uint64_t i = 0; i < random.below(visit, 3000); ++i)
      bytes += static_cast<char>(random.bits(visit * 10000 + i));
    if (visit % 3 == 0 && !bytes.empty()) bytes[random.below(visit, bytes.size())] ^= 1;
    raw.send(bytes);
    if (visit % 5 == 0) raw.abort();
    friendly->link->send(text_frame(FrameKind::exchange, visit, "still there?"));
  }
  EXPECT_TRUE(log_.wait([&] { return friendly->frames.size() == 100; }));
  EXPECT_FALSE(friendly->closed);
}

/// Bytes of address space.
uint64_t virtual_size() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

TEST_F(TcpTest, ALargeFrameThatIsOnlyAnnouncedTakesLittleMemory) {
  serve();
  FrameHeader header{.kind = FrameKind::exchange, .length = uint64_t{1} << 30};
  seal(header);
  const uint64_t before = virtual_size();
  std::vector<RawSocket> liars;
  for (int i = 0; i < 300; ++i) {
    liars.push_back(RawSocket::connected(at_.port));
    liars.back().send(bytes_of(header) + "x");
  }
  expect_served(at_);
  EXPECT_LT(virtual_size() - before, 30 * header.length) << "a tenth of what was announced";
}

TEST_F(TcpTest, APeerThatGoesInsideAFrameClosesItsLink) {
  serve();
  {
    const auto raw = RawSocket::connected(at_.port);
    raw.send(encoded("payload").substr(0, 44));
  }
  const auto side = accepted(0);
  ASSERT_TRUE(log_.wait([&] { return side->closed; }));
  EXPECT_EQ(side->reason, side->link->peer() + " closed the connection inside a frame");
}

TEST_F(TcpTest, APeerThatVanishesClosesItsLink) {
  serve();
  auto raw = RawSocket::connected(at_.port);
  raw.send(encoded("payload"));
  ASSERT_TRUE(raw.receive_frame().has_value());
  raw.abort();
  const auto side = accepted(0);
  ASSERT_TRUE(log_.wait([&] { return side->closed; }));
  EXPECT_EQ(side->reason,
            "lost the connection to " + side->link->peer() + ": Connection reset by peer");
}

TEST_F(TcpTest, ASlowReaderIsClosed) {
  serve({.max_queued = 1 << 20});
  const auto raw = RawSocket::connected(at_.port);
  const auto side = accepted(0);
  bool gone = false;
  {
    const auto text = watched_text(256 << 10, log_, gone);
    for (int i = 0; i < 1000; ++i)
      side->link->send({.kind = FrameKind::exchange,
                        .id = 1,
                        .parts = {std::as_bytes(std::span(*text))},
                        .owners = {text}});
  }
  ASSERT_TRUE(log_.wait([&] { return side->closed && gone; }));
  EXPECT_EQ(side->reason.rfind("slow reader: ", 0), 0U) << side->reason;
  expect_served(at_);
}

TEST_F(TcpTest, OneFrameMayBeLargerThanTheQueueWhileTheSocketTakesIt) {
  serve({.max_queued = 1000});
  const auto side = connect(*client_, at_);
  side->link->send(frame_in_parts(1, 20000, 1));
  side->link->send(frame_in_parts(2, 20000, 10000));
  EXPECT_TRUE(log_.wait([&] { return side->frames.size() == 2; }));
}

TEST_F(TcpTest, AFrameTooLongToSendClosesTheLink) {
  serve();
  const auto small = tcp_transport({.max_frame = 1000});
  const auto side = connect(*small, at_);
  side->link->send(frame_in_parts(1, 1001, 1));
  ASSERT_TRUE(log_.wait([&] { return side->closed; }));
  EXPECT_EQ(side->reason, "frame of 1001 bytes to send, expected at most 1000");
}

TEST_F(TcpTest, ThePeersReasonIsHeardEvenIfWritingFailsFirst) {
  serve({.max_frame = 1000});
  const auto side = connect(*client_, at_);
  for (uint64_t id = 0; id < 200; ++id) side->link->send(frame_in_parts(id, 200000, 1));
  ASSERT_TRUE(log_.wait([&] { return side->closed; }));
  ASSERT_EQ(side->frames.size(), 1U);
  EXPECT_EQ(text_of(side->frames[0]), "frame of 200000 bytes, expected at most 1000");
}

TEST_F(TcpTest, ANameThatDoesNotResolveIsAnError) {
  const std::string error = connect_error({"no-such-host.invalid", 1}, kTestDeadline);
  EXPECT_EQ(error.rfind("cannot connect to no-such-host.invalid:1: ", 0), 0U) << error;
}

TEST_F(TcpTest, ConnectGivesUpAtItsDeadline) {
  const auto deaf = RawSocket::bound();
  ASSERT_EQ(::listen(deaf.fd(), 0), 0);
  // Nobody accepts: the first fills the queue, so the kernel lets later ones wait.
  const auto first = RawSocket::connected(deaf.port());
  const Endpoint to{"127.0.0.1", deaf.port()};
  EXPECT_EQ(connect_error(to, 50ms), "cannot connect to " + to.text() + ": no answer within 50 ms");
}

TEST_F(TcpTest, AllAddressesOfANameAreTried) {
  serve();
  expect_served({"localhost", at_.port});  // ::1 comes first where it exists
}

TEST_F(TcpTest, ServesIpv6) {
  try {
    serve({}, echo, {"::1", 0});
  } catch (const IoError& e) {
    GTEST_SKIP() << "no IPv6 here: " << e.what();
  }
  EXPECT_EQ(at_.text().rfind("[::1]:", 0), 0U);
  expect_served(at_);
  EXPECT_EQ(accepted(0)->link->peer().rfind("[::1]:", 0), 0U);
}

TEST_F(TcpTest, TakesOverASocketThatListens) {
  auto raw = RawSocket::bound();
  ASSERT_EQ(::listen(raw.fd(), 10), 0);
  server_ = tcp_transport();
  const Endpoint at{"127.0.0.1", raw.port()};
  EXPECT_EQ(server_->listen_fd(raw.release(), accept(echo)), at);
  expect_served(at);
}

TEST_F(TcpTest, DescriptorsThatDoNotListenAreRefused) {
  const auto raw = RawSocket::bound();
  const auto take = [&](int fd) {
    return message_of<IoError>([&] { client_->listen_fd(fd, accept(echo)); });
  };
  EXPECT_EQ(take(raw.fd()), "cannot listen on descriptor " + std::to_string(raw.fd()) +
                                ": expected a socket that listens already");
  EXPECT_EQ(take(-1), "cannot listen on descriptor -1: Bad file descriptor");
}

TEST_F(TcpTest, ListenSaysWhatIsWrongWithTheAddress) {
  EXPECT_EQ(message_of<IoError>([&] {
              client_->listen({"192.0.2.1", 0}, accept(echo));
            }),
            "cannot listen on 192.0.2.1:0: Cannot assign requested address");
  EXPECT_THROW(tcp_transport({}, 0), ConfigError);
}

TEST_F(TcpTest, ManyThreadsSendOverOneLink) {
  serve({}, nullptr);
  const auto side = connect(*client_, at_);
  constexpr uint64_t kThreads = 6, kFrames = 300;
  {
    std::vector<std::jthread> threads;
    for (uint64_t thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&, thread] {
        for (uint64_t i = 0; i < kFrames; ++i)
          side->link->send(frame_in_parts(thread * kFrames + i, i % 7 == 0 ? 70000 : i, 3));
      });
  }
  const auto server = accepted(0);
  ASSERT_TRUE(log_.wait([&] { return server->frames.size() == kThreads * kFrames; }));
  std::vector<uint64_t> next(kThreads);
  for (const InFrame& frame : server->frames) {
    const uint64_t i = next[frame.id / kFrames]++;
    ASSERT_EQ(frame.id % kFrames, i) << "frames of one thread keep their order";
    ASSERT_TRUE(is_frame(frame, frame.id, i % 7 == 0 ? 70000 : i));
  }
}

TEST_F(TcpTest, EndsWithTrafficUnderWay) {
  for (int round = 0; round < 10; ++round) {
    std::atomic<bool> server_gone = false, stop = false;
    serve(
        {},
        [&](Link& link, InFrame& frame) {
          EXPECT_FALSE(server_gone);
          echo(link, frame);
        },
        {"127.0.0.1", 0}, 2);
    std::vector<std::shared_ptr<Side>> sides(4);
    for (auto& side : sides) side = connect(*client_, at_);
    std::vector<std::jthread> threads;
    threads.reserve(sides.size());
    for (const auto& side : sides)
      threads.emplace_back([&stop, link = side->link] {
        for (uint64_t id = 0; !stop; ++id) link->send(frame_in_parts(id, 50000, 2));
      });
    ASSERT_TRUE(log_.wait([&] { return sides[3]->frames.size() > 3; }));
    if (round % 2 == 0) {
      server_ = nullptr;
      server_gone = true;
      for (const auto& side : sides) EXPECT_TRUE(log_.wait([&] { return side->closed; }));
    }
    client_ = nullptr;
    const std::weak_ptr<Side> events = sides[0];
    const size_t count = sides[0]->frames.size();
    stop = true;
    threads.clear();
    EXPECT_EQ(sides[0]->frames.size(), count);
    sides.clear();
    EXPECT_TRUE(events.expired());
    client_ = tcp_transport();
    server_ = nullptr;
    accepted_.clear();
  }
}

}  // namespace
}  // namespace argosy
