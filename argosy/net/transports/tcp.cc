// Frames over TCP. Each I/O thread runs a loop with its own links; listening sockets and connects
// belong to loops too.
#include "argosy/net/transport.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/net/tcp_link.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;
using asio::ip::tcp;

constexpr auto kAcceptAgain = 100ms;  // after accept() failed, mostly for lack of descriptors
constexpr int kBacklog = 1024;

/// As people write it: IPv4 even if it came in over an IPv6 socket.
Endpoint endpoint_of(const tcp::endpoint& at) {
  asio::ip::address address = at.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  return {address.to_string(), at.port()};
}

/// Disables delays, and detects a peer whose machine is gone after about a minute.
void tune(tcp::socket& socket) {
  const auto set = [&](int level, int name, int value) {
    ::setsockopt(socket.native_handle(), level, name, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);  // seconds, as the next
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

using Loops = std::vector<std::shared_ptr<TcpLoop>>;

/// The loops of a transport in turn. Thread safety: full.
class Turn {
 public:
  explicit Turn(const Loops& loops) : loops_(loops) {}
  TcpLoop& next() { return *loops_[next_++ % loops_.size()]; }

 private:
  const Loops& loops_;
  std::atomic<size_t> next_ = 0;
};

/// A listening socket.
class Listener final : public TcpMember, public std::enable_shared_from_this<Listener> {
 public:
  Listener(TcpLoop& loop, Turn& turn, const LinkOptions& options, tcp::acceptor acceptor,
           Transport::OnAccept on_accept)
      : turn_(turn),
        options_(options),
        acceptor_(std::move(acceptor)),
        again_(loop.io),
        on_accept_(std::make_shared<const Transport::OnAccept>(std::move(on_accept))) {}

  void accept() {
    TcpLoop& target = turn_.next();
    acceptor_.async_accept(target.io, [self = shared_from_this(), &target](
                                          const asio::error_code& error, tcp::socket socket) {
      if (!self->acceptor_.is_open()) return;
      if (error) return self->accept_later();
      self->hand_over(target, std::move(socket));
      self->accept();
    });
  }

  void shut() override {
    asio::error_code ignored;
    acceptor_.close(ignored);
    again_.cancel();
    on_accept_ = nullptr;
  }

 private:
  void accept_later() {
    again_.expires_after(kAcceptAgain);
    again_.async_wait([self = shared_from_this()](const asio::error_code&) {
      if (self->acceptor_.is_open()) self->accept();
    });
  }

  void hand_over(TcpLoop& target, tcp::socket socket) {
    asio::error_code error;
    const tcp::endpoint from = socket.remote_endpoint(error);
    if (error) return;  // gone already
    tune(socket);
    asio::post(target.io, [&target, socket = std::move(socket), peer = endpoint_of(from).text(),
                           options = options_, on_accept = on_accept_]() mutable {
      if (target.ended) return;
      const auto link =
          std::make_shared<TcpLink>(target, std::move(socket), std::move(peer), options);
      link->start((*on_accept)(link));
    });
  }

  Turn& turn_;
  const LinkOptions options_;
  tcp::acceptor acceptor_;
  asio::steady_timer again_;
  std::shared_ptr<const Transport::OnAccept> on_accept_;
};

/// A connect under way: finds the addresses of the name, then tries one after the other.
class Connect final : public TcpMember, public std::enable_shared_from_this<Connect> {
 public:
  Connect(TcpLoop& loop, const LinkOptions& options, Endpoint to, Env::Duration within,
          Transport::OnConnect on_connect)
      : loop_(loop),
        options_(options),
        to_(std::move(to)),
        within_(within),
        deadline_(std::chrono::steady_clock::now() + within),
        on_connect_(std::move(on_connect)),
        resolver_(loop.io),
        socket_(loop.io),
        timer_(loop.io) {}

  void start() {
    loop_.add(shared_from_this());
    asio::error_code not_numeric;
    const auto address = asio::ip::make_address(to_.host, not_numeric);
    if (!not_numeric) {
      addresses_ = {tcp::endpoint(address, to_.port)};
      return try_next();
    }
    timer_.expires_at(deadline_);
    timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (error || !self->addresses_.empty() || self->on_connect_ == nullptr) return;
      self->report(self->too_late());
    });
    resolver_.async_resolve(
        to_.host, std::to_string(to_.port), tcp::resolver::numeric_service,
        [self = shared_from_this()](const asio::error_code& error, const auto& found) {
          if (self->on_connect_ == nullptr) return;
          if (error) return self->report(error.message());
          for (const auto& entry : found) self->addresses_.push_back(entry.endpoint());
          self->try_next();
        });
  }

  void shut() override {
    on_connect_ = nullptr;
    cancel();
  }

 private:
  std::string too_late() const {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(within_).count();
    return "no answer within " + std::to_string(ms) + " ms";
  }

  void cancel() {
    asio::error_code ignored;
    resolver_.cancel();
    socket_.close(ignored);
    timer_.cancel();
  }

  void try_next() {
    if (tried_ == addresses_.size()) return report(error_);
    const tcp::endpoint at = addresses_[tried_];
    // An unresponsive address leaves time for the remaining ones.
    const auto now = std::chrono::steady_clock::now();
    const auto left = static_cast<Env::Duration::rep>(addresses_.size() - tried_);
    ++tried_;
    timer_.expires_at(now + (deadline_ - now) / left);
    timer_.async_wait([self = shared_from_this(), attempt = tried_](const asio::error_code& error) {
      if (error || self->tried_ != attempt || self->on_connect_ == nullptr) return;
      self->failed(self->too_late());
    });
    socket_ = tcp::socket(loop_.io);
    socket_.async_connect(
        at, [self = shared_from_this(), attempt = tried_](const asio::error_code& error) {
          if (self->tried_ != attempt || self->on_connect_ == nullptr) return;
          if (error) return self->failed(error.message());
          self->connected();
        });
  }

  void failed(std::string error) {
    error_ = std::move(error);
    asio::error_code ignored;
    socket_.close(ignored);
    try_next();
  }

  void connected() {
    asio::error_code error;
    // The kernel may give this socket the very port it connects to, if nobody listens on it.
    if (socket_.local_endpoint(error) == socket_.remote_endpoint(error))
      return failed("Connection refused");
    tune(socket_);
    // Recreated: a socket that has waited to become writable is woken for that for ever.
    const auto protocol = addresses_[tried_ - 1].protocol();
    tcp::socket socket(loop_.io, protocol, socket_.release());
    const auto link = std::make_shared<TcpLink>(loop_, std::move(socket), to_.text(), options_);
    const auto on_connect = take();
    link->start(on_connect(link, ""));
  }

  void report(const std::string& error) {
    const auto on_connect = take();
    on_connect(nullptr, "cannot connect to " + to_.text() + ": " + error);
  }

  Transport::OnConnect take() {
    auto on_connect = std::exchange(on_connect_, nullptr);
    cancel();
    loop_.remove(shared_from_this());
    return on_connect;
  }

  TcpLoop& loop_;
  const LinkOptions options_;
  const Endpoint to_;
  const Env::Duration within_;
  const Env::Time deadline_;
  Transport::OnConnect on_connect_;  // null: it has been called
  tcp::resolver resolver_;
  tcp::socket socket_;
  asio::steady_timer timer_;
  std::vector<tcp::endpoint> addresses_;
  size_t tried_ = 0;
  std::string error_ = "the name has no address";
};

class TcpTransport final : public Transport {
 public:
  TcpTransport(const LinkOptions& options, size_t threads) : options_(options) {
    check<ConfigError>(threads > 0, "0 threads for a transport, expected at least 1");
    for (size_t i = 0; i < threads; ++i) loops_.push_back(std::make_shared<TcpLoop>());
    for (const auto& loop : loops_) threads_.emplace_back([loop] { loop->io.run(); });
  }

  ~TcpTransport() override {
    for (const auto& loop : loops_) asio::post(loop->io, [loop = loop.get()] { loop->end(); });
    threads_.clear();
  }

  Endpoint listen(const Endpoint& at, OnAccept on_accept) override {
    TcpLoop& loop = turn_.next();
    asio::error_code error;
    const auto found = tcp::resolver(loop.io).resolve(
        at.host, std::to_string(at.port), tcp::resolver::passive | tcp::resolver::numeric_service,
        error);
    for (const auto& entry : found) {
      tcp::acceptor acceptor(loop.io);
      open(acceptor, entry.endpoint(), error);
      if (error) continue;
      return {at.host, serve(loop, std::move(acceptor), std::move(on_accept)).port};
    }
    fail<IoError>("cannot listen on ", at.text(), ": ",
                  error ? error.message() : "the name has no address");
  }

  Endpoint listen_fd(int fd, OnAccept on_accept) override {
    TcpLoop& loop = turn_.next();
    int listens = 0, family = 0;
    socklen_t size = sizeof(int);
    const bool known = ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0;
    check<IoError>(known, "cannot listen on descriptor ", fd, ": ", std::strerror(errno));
    check<IoError>(listens == 1, "cannot listen on descriptor ", fd,
                   ": expected a socket that listens already");
    ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
    check<IoError>(family == AF_INET || family == AF_INET6, "cannot listen on descriptor ", fd,
                   ": expected a TCP socket");
    tcp::acceptor acceptor(loop.io);
    asio::error_code error;
    acceptor.assign(family == AF_INET ? tcp::v4() : tcp::v6(), fd, error);
    check<IoError>(!error, "cannot listen on descriptor ", fd, ": ", error.message());
    return serve(loop, std::move(acceptor), std::move(on_accept));
  }

  void connect(const Endpoint& to, Env::Duration within, OnConnect on_connect) override {
    TcpLoop& loop = turn_.next();
    auto connect = std::make_shared<Connect>(loop, options_, to, within, std::move(on_connect));
    asio::post(loop.io, [&loop, connect = std::move(connect)] {
      if (!loop.ended) connect->start();
    });
  }

 private:
  static void open(tcp::acceptor& acceptor, const tcp::endpoint& at, asio::error_code& error) {
    acceptor.open(at.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(at, error);
    if (!error) acceptor.listen(kBacklog, error);
  }

  Endpoint serve(TcpLoop& loop, tcp::acceptor acceptor, OnAccept on_accept) {
    acceptor.non_blocking(true);
    Endpoint at = endpoint_of(acceptor.local_endpoint());
    auto listener = std::make_shared<Listener>(loop, turn_, options_, std::move(acceptor),
                                               std::move(on_accept));
    asio::post(loop.io, [&loop, listener = std::move(listener)] {
      if (loop.ended) return;
      loop.add(listener);
      listener->accept();
    });
    return at;
  }

  const LinkOptions options_;
  Loops loops_;
  Turn turn_{loops_};
  std::vector<std::jthread> threads_;
};

}  // namespace

std::unique_ptr<Transport> tcp_transport(const LinkOptions& options, size_t threads) {
  return std::make_unique<TcpTransport>(options, threads);
}

}  // namespace argosy
