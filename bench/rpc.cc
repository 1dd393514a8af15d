// Round trips over loopback between two processes: a frame there and back, and the same bytes over
// a plain blocking socket, in turns. 64 bytes, and 640 KiB each way without and with sums. Each
// process keeps to one core if there are two (--pin 0: any core): a round trip that stays on one
// core by chance is several times as fast as one that wakes another.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/base/mutex.h"
#include "argosy/net/transport.h"
#include "bench/bench.h"

namespace argosy::benches {
namespace {

using namespace std::chrono_literals;

constexpr size_t kSmall = 64, kLarge = 640 << 10;
constexpr auto kPatience = 30s;
constexpr int kLargeEach = 10;  // small round trips to one large

void check_system(bool ok, const char* what) {
  if (!ok) fail<IoError>(what, ": ", std::strerror(errno));
}

/// Keeps this process, and what it starts, to one core of those it may use; until destroyed.
class Pin {
 public:
  enum class To { first, last };
  explicit Pin(To to) {
    check_system(::sched_getaffinity(0, sizeof(before_), &before_) == 0, "sched_getaffinity");
    int chosen = -1;
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &before_) && (chosen < 0 || to == To::last)) chosen = core;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(chosen, &one);
    check_system(::sched_setaffinity(0, sizeof(one), &one) == 0, "sched_setaffinity");
  }
  ~Pin() { ::sched_setaffinity(0, sizeof(before_), &before_); }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

 private:
  cpu_set_t before_;
};

/// A plain blocking socket.
class Plain {
 public:
  explicit Plain(int fd) : fd_(fd) {
    check_system(fd >= 0, "socket");
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  ~Plain() { ::close(fd_); }
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;

  int fd() const { return fd_; }
  bool send(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
    return true;
  }
  bool receive(std::span<std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::recv(fd_, bytes.data(), bytes.size(), MSG_WAITALL);
      if (n <= 0) return false;
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
    return true;
  }

 private:
  int fd_;
};

sockaddr_in loopback(uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return at;
}

/// Sends back what comes, `size` bytes at a time, until the other side closes.
void echo_plain(int listener, size_t size) {
  const Plain socket(::accept(listener, nullptr, nullptr));
  std::vector<std::byte> bytes(size);
  while (socket.receive(bytes) && socket.send(bytes)) continue;
}

class Echo final : public LinkEvents {
 public:
  explicit Echo(std::shared_ptr<Link> link) : link_(std::move(link)) {}
  void on_frame(InFrame frame) override {
    OutFrame reply{
        .kind = FrameKind::reply, .id = frame.id, .parts = {frame.payload->bytes()}, .owners = {}};
    reply.owners.push_back(std::move(frame.payload));
    link_->send(std::move(reply));
  }
  void on_close(const std::string&) override {}

 private:
  std::shared_ptr<Link> link_;
};

/// Ports of a server: plain ones for both sizes, transports without and with sums.
struct Ports {
  uint16_t plain_small, plain_large, unsummed, summed;
};

/// The child: tells its ports, serves until the other end of `lifeline` is closed.
void serve(int tell, int lifeline, bool pinned) {
  std::optional<Pin> pin;
  if (pinned) pin.emplace(Pin::To::last);
  const auto listen_plain = [](uint16_t& port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at = loopback(0);
    socklen_t size = sizeof(at);
    check_system(::bind(fd, reinterpret_cast<sockaddr*>(&at), size) == 0, "bind");
    check_system(::listen(fd, 1) == 0, "listen");
    check_system(::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) == 0, "getsockname");
    port = ntohs(at.sin_port);
    return fd;
  };
  const auto on_accept = [](auto link) { return std::make_shared<Echo>(link); };
  Ports ports{};
  const int small = listen_plain(ports.plain_small), large = listen_plain(ports.plain_large);
  const auto unsummed = tcp_transport({.sum_payloads = false}), summed = tcp_transport();
  ports.unsummed = unsummed->listen({"127.0.0.1", 0}, on_accept).port;
  ports.summed = summed->listen({"127.0.0.1", 0}, on_accept).port;
  check_system(::write(tell, &ports, sizeof(ports)) == sizeof(ports), "write");
  const std::jthread first([small] { echo_plain(small, kSmall); });
  const std::jthread second([large] { echo_plain(large, kLarge); });
  char nothing = 0;
  while (::read(lifeline, &nothing, 1) > 0) continue;
}

/// A server in a child process.
class Server {
 public:
  explicit Server(bool pinned) {
    std::array<int, 2> told, lifeline;
    check_system(::pipe(told.data()) == 0 && ::pipe(lifeline.data()) == 0, "pipe");
    child_ = ::fork();
    check_system(child_ >= 0, "fork");
    if (child_ == 0) {
      ::close(lifeline[1]);
      try {
        serve(told[1], lifeline[0], pinned);
      } catch (const std::exception&) {
        ::_exit(1);
      }
      ::_exit(0);
    }
    ::close(told[1]);
    ::close(lifeline[0]);
    lifeline_ = lifeline[1];
    const bool ready = ::read(told[0], &ports_, sizeof(ports_)) == sizeof(ports_);
    ::close(told[0]);
    check<IoError>(ready, "the server of the benchmark has not started");
  }
  ~Server() {
    ::close(lifeline_);
    ::waitpid(child_, nullptr, 0);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  const Ports& ports() const { return ports_; }

 private:
  pid_t child_ = -1;
  int lifeline_ = -1;
  Ports ports_{};
};

class PlainClient {
 public:
  PlainClient(uint16_t port, size_t size)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)), question_(size), answer_(size) {
    const sockaddr_in at = loopback(port);
    check_system(::connect(socket_.fd(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0,
                 "connect");
  }
  void call() {
    check<IoError>(socket_.send(question_) && socket_.receive(answer_),
                   "the plain server has gone");
  }

 private:
  Plain socket_;
  std::vector<std::byte> question_, answer_;
};

/// Calls over a link: sends a frame, waits for the answer.
class LinkClient {
 public:
  LinkClient(uint16_t port, const LinkOptions& options) : transport_(tcp_transport(options)) {
    transport_->connect({"127.0.0.1", port}, kPatience, [this](auto link, const std::string&) {
      const Lock lock(mutex_);
      link_ = link;
      ++answers_;
      changed_.notify_one();
      return link == nullptr ? nullptr : std::make_shared<Events>(*this);
    });
    wait_for(asked_);
    check<IoError>(link_ != nullptr, "cannot connect to the server of the benchmark");
  }

  void call(std::span<const std::byte> bytes) {
    link_->send({.kind = FrameKind::exchange, .id = ++asked_, .parts = {bytes}, .owners = {}});
    const InFrame answer = wait_for(asked_);
    check<IoError>(answer.payload->size() == bytes.size(), "an answer of the wrong size");
  }

 private:
  class Events final : public LinkEvents {
   public:
    explicit Events(LinkClient& client) : client_(client) {}
    void on_frame(InFrame frame) override {
      {
        const Lock lock(client_.mutex_);
        client_.answer_ = std::move(frame);
        ++client_.answers_;
      }
      client_.changed_.notify_one();
    }
    void on_close(const std::string&) override {}

   private:
    LinkClient& client_;
  };

  InFrame wait_for(uint64_t answers) {
    const Lock lock(mutex_);
    const auto there = [&]() REQUIRES(mutex_) { return answers_ >= answers; };
    check<IoError>(changed_.wait_for(mutex_, kPatience, there),
                   "no answer from the server of the benchmark");
    return std::exchange(answer_, {});
  }

  Mutex mutex_;
  CondVar changed_;
  uint64_t asked_ = 1;  // the connection first; of the caller's thread
  uint64_t answers_ GUARDED_BY(mutex_) = 0;
  InFrame answer_ GUARDED_BY(mutex_);
  std::shared_ptr<Link> link_;  // set once, before the first answer
  std::unique_ptr<Transport> transport_;
};

double microseconds(int64_t calls, const std::function<void()>& call) {
  const double start = seconds_now();
  for (int64_t i = 0; i < calls; ++i) call();
  return (seconds_now() - start) / static_cast<double>(calls) * 1e6;
}

BenchResults run(const BenchFlags& flags) {
  const int64_t rounds = integer(flags, "rounds"), calls = integer(flags, "calls", kLargeEach);
  const bool pinned = integer(flags, "pin", 0) != 0;
  const Server server(pinned);
  std::optional<Pin> pin;
  if (pinned) pin.emplace(Pin::To::first);
  PlainClient plain_small(server.ports().plain_small, kSmall),
      plain_large(server.ports().plain_large, kLarge);
  LinkClient unsummed(server.ports().unsummed, {.sum_payloads = false}),
      summed(server.ports().summed, {});
  const std::vector<std::byte> bytes(kLarge);
  const auto payload = std::span(bytes);
  std::vector<double> small, small_plain, large, large_plain, large_summed;
  for (int64_t round = 0; round <= rounds; ++round) {
    if (round == 1) {  // the first was to warm up
      for (auto* times : {&small, &small_plain, &large, &large_plain, &large_summed})
        times->clear();
    }
    small_plain.push_back(microseconds(calls, [&] { plain_small.call(); }));
    small.push_back(microseconds(calls, [&] { unsummed.call(payload.first(kSmall)); }));
    const int64_t few = calls / kLargeEach;
    large_plain.push_back(microseconds(few, [&] { plain_large.call(); }));
    large.push_back(microseconds(few, [&] { unsummed.call(payload); }));
    large_summed.push_back(microseconds(few, [&] { summed.call(payload); }));
  }
  return {{"small_us", median(small)},
          {"small_plain_us", median(small_plain)},
          {"small_ratio", median(small) / median(small_plain)},
          {"large_us", median(large)},
          {"large_plain_us", median(large_plain)},
          {"large_ratio", median(large) / median(large_plain)},
          {"large_summed_us", median(large_summed)},
          {"large_summed_ratio", median(large_summed) / median(large_plain)}};
}

}  // namespace

Bench rpc() {
  return {.help = "round trips of 64 bytes and 640 KiB over loopback, beside plain sockets",
          .flags = {{"calls", "500"}, {"pin", "1"}, {"rounds", "15"}},
          .run = run};
}

}  // namespace argosy::benches
