#include "argosy/comm/peers.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "argosy/base/error.h"
#include "argosy/base/hash.h"
#include "argosy/base/rng.h"
#include "argosy/net/sockets.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kTry = 500ms;   // for one attempt to connect
constexpr auto kLook = 20ms;   // between attempts
constexpr auto kStuck = 1s;    // in a call, after which ranks compare theirs
constexpr auto kCircle = 1s;   // how long a wait cycle must last: reports may be stale
constexpr auto kExplain = 2s;  // for the reason of a lost connection to come

/// The messages of ranks after their hellos.
struct Notice {
  enum Kind : uint32_t { stop = 1, leave = 2, stuck = 3, moving = 4 };
  Kind kind = stop;
  uint32_t reserved = 0;
  GroupCall call = {};     // that the sender is stuck in
  char reason[1024] = {};  // to stop
};

void send_plain(const Descriptor& socket, const void* bytes, size_t size) noexcept {
  // Far smaller than a socket's buffer, so it never blocks.
  [[maybe_unused]] const ssize_t sent =
      ::send(socket.get(), bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

template <size_t N>
void copy_text(char (&to)[N], const std::string& from) {
  std::memcpy(to, from.data(), std::min(from.size(), N - 1));
}

void set_option(const Descriptor& socket, int level, int option, int value) {
  ::setsockopt(socket.get(), level, option, &value, sizeof(value));
}

/// TCP keepalive: a host that was switched off sends nothing, so the kernel probes it, and gives up
/// after `quiet` without an acknowledgement.
void notice_silence(const Descriptor& socket, Env::Duration quiet) {
  constexpr int kProbes = 3;
  const double seconds = std::chrono::duration<double>(quiet).count();
  const int interval = std::max(1, static_cast<int>(seconds / (kProbes + 1)));
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, interval);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, interval);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT,
             static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(quiet).count()));
}

uint64_t hash_of(const std::vector<Endpoint>& endpoints) {
  std::string all;
  for (const Endpoint& each : endpoints) all += each.text() + ",";
  return hash64(all);
}

/// Ranks may be at different steps of the same call.
GroupCall unstepped(GroupCall call) {
  call.step = {};
  return call;
}

void wait_a_moment(int fd, std::chrono::milliseconds time) {
  pollfd ready{fd, POLLIN, 0};
  ::poll(&ready, 1, static_cast<int>(time.count()));
}

std::string in_seconds(Env::Duration time) {
  return fmt::format("{:g} s", std::chrono::duration<double>(time).count());
}

}  // namespace

Peers::Peers(Env& env, PeersOptions options, std::shared_ptr<RankListener> listener,
             const std::function<void()>& meanwhile)
    : env_(env),
      options_(std::move(options)),
      listener_(std::move(listener)),
      nonce_(env.random()),
      peers_(options_.ranks.size()),
      news_(::epoll_create1(EPOLL_CLOEXEC)) {
  argosy::check<IoError>(news_.get() >= 0, "epoll: ", std::strerror(errno));
  try {
    meet_all(meanwhile);
  } catch (const std::exception& e) {
    tell(e.what());
    throw;
  }
}

Peers::~Peers() {
  const Notice notice{.kind = Notice::leave};
  send_to_all(&notice, sizeof(notice));
}

void Peers::send_to_all(const void* bytes, size_t size) const noexcept {
  for (const Peer& peer : peers_)
    if (peer.socket.get() >= 0) send_plain(peer.socket, bytes, size);
}

Hello Peers::own_hello(Hello::Purpose purpose) const {
  Hello hello{.rank = rank(),
              .ranks = size(),
              .purpose = purpose,
              .process = static_cast<int32_t>(::getpid()),
              .group = options_.group,
              .endpoints = hash_of(options_.ranks),
              .nonce = nonce_};
  copy_text(hello.job, options_.job);
  return hello;
}

std::string Peers::place(int rank) const {
  return options_.ranks[static_cast<size_t>(rank)].text();
}

int Peers::number(int rank) const {
  return options_.numbers.empty() ? rank : options_.numbers[static_cast<size_t>(rank)];
}

std::string Peers::name(int rank) const {
  const int32_t process = rank == this->rank() ? static_cast<int32_t>(::getpid())
                                               : peers_[static_cast<size_t>(rank)].hello.process;
  return fmt::format("rank {} ({}, process {})", number(rank), place(rank), process);
}

uint64_t Peers::nonce(int rank) const {
  return rank == this->rank() ? nonce_ : peers_[static_cast<size_t>(rank)].hello.nonce;
}

void Peers::meet_all(const std::function<void()>& meanwhile) {
  const Env::Time until = env_.now() + options_.join_within;
  Reminder reminder(env_.now(), options_.patience);
  while (true) {
    call_lower_ranks();
    read_answers();
    let_in_higher_ranks();
    if (complete()) return;
    check();
    meanwhile();
    if (env_.now() >= until) name_missing();
    if (options_.log && reminder.due(env_.now()))
      options_.log(
          fmt::format("rank {} of {} waits for {} to come", number(rank()), size(), missing()));
    wait_a_moment(listener_->fd(), kLook);
  }
}

bool Peers::complete() const {
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank() && !peers_[static_cast<size_t>(peer)].greeted) return false;
  return true;
}

std::string Peers::missing() const {
  std::string names;
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank() && !peers_[static_cast<size_t>(peer)].greeted)
      names += fmt::format("{}rank {} ({})", names.empty() ? "" : ", ", number(peer), place(peer));
  return names;
}

void Peers::name_missing() const {
  fail<IoError>(missing(), ": not there within ", in_seconds(options_.join_within), "; rank ",
                rank(), " of ", size(), " of job '", options_.job, "' waited",
                refused_.empty() ? "" : "; turned away: " + refused_);
}

/// Retries those that are not there yet.
void Peers::call_lower_ranks() {
  for (int lower = 0; lower < rank(); ++lower) {
    Peer& peer = peers_[static_cast<size_t>(lower)];
    if (peer.socket.get() >= 0) continue;
    auto socket = connect_within(options_.ranks[static_cast<size_t>(lower)], kTry);
    if (!socket) continue;
    const Hello hello = own_hello(Hello::watch);
    send_plain(*socket, &hello, sizeof(hello));
    peer.socket = std::move(*socket);
    peer.received = 0;
  }
}

void Peers::read_answers() {
  for (int lower = 0; lower < rank(); ++lower) {
    Peer& peer = peers_[static_cast<size_t>(lower)];
    if (peer.greeted || peer.socket.get() < 0) continue;
    RankListener::Connection answer{std::move(peer.socket), peer.hello, peer.received};
    const bool usable = read_hello(answer);
    if (!usable) continue;  // its process ended before it answered: another may come
    peer.socket = std::move(answer.socket);
    peer.hello = answer.hello;
    peer.received = answer.received;
    if (!is_complete(answer)) continue;
    argosy::check<ConfigError>(answer.hello.refusal[0] == 0, answer.hello.refusal);
    watch(lower);
  }
}

/// Why a process with a rank's number cannot be that rank; "": it can.
std::string Peers::objection(const Hello& hello) const {
  const std::string them = fmt::format("rank {} of {}", hello.rank, hello.ranks);
  const std::string us = fmt::format("rank {} of {} ({})", rank(), size(), place(rank()));
  if (options_.job != hello.job)
    return fmt::format("{} is of job '{}', but {} is of job '{}'", them, hello.job, us,
                       options_.job);
  if (hello.ranks != size() || hello.rank <= rank() || hello.rank >= size())
    return fmt::format("{} wants to join {}: ranks must agree about their number", them, us);
  if (hello.endpoints != hash_of(options_.ranks))
    return fmt::format("{} and {} have different lists of endpoints", them, us);
  if (peers_[static_cast<size_t>(hello.rank)].greeted)
    return fmt::format("{} is there already: {}; another one is process {}", them, name(hello.rank),
                       hello.process);
  return "";
}

void Peers::let_in_higher_ranks() {
  const auto ours = [this](const Hello& hello) {
    return hello.group == options_.group && hello.purpose == Hello::watch;
  };
  while (auto connection = listener_->take(ours)) {
    if (const std::string reason = objection(connection->hello); !reason.empty()) {
      refuse(*connection, reason);
      continue;
    }
    const Hello hello = own_hello(Hello::watch);
    send_plain(connection->socket, &hello, sizeof(hello));
    Peer& peer = peers_[static_cast<size_t>(connection->hello.rank)];
    peer.socket = std::move(connection->socket);
    peer.hello = connection->hello;
    watch(connection->hello.rank);
  }
}

/// Ignores processes of other jobs; a disagreement within this job is fatal.
void Peers::refuse(RankListener::Connection& connection, const std::string& reason) {
  Hello hello = own_hello(Hello::watch);
  copy_text(hello.refusal, reason);
  send_plain(connection.socket, &hello, sizeof(hello));
  refused_ = reason;
  const bool same_job = options_.job == connection.hello.job;
  const bool twice =
      connection.hello.ranks == size() && connection.hello.endpoints == hello.endpoints;
  argosy::check<ConfigError>(!same_job || twice, reason);
}

void Peers::watch(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  peer.greeted = true;
  peer.received = 0;
  peer.notice.resize(sizeof(Notice));
  notice_silence(peer.socket, options_.quiet);
  epoll_event event{.events = EPOLLIN, .data = {.u32 = static_cast<uint32_t>(rank)}};
  argosy::check<IoError>(::epoll_ctl(news_.get(), EPOLL_CTL_ADD, peer.socket.get(), &event) == 0,
                         "cannot watch ", name(rank), ": ", std::strerror(errno));
}

void Peers::check() {
  if (!failure_.empty()) fail<IoError>(failure_);
  constexpr int kAtOnce = 16;
  std::array<epoll_event, kAtOnce> events;
  for (int found = kAtOnce; found == kAtOnce;) {
    found = std::max(0, ::epoll_wait(news_.get(), events.data(), kAtOnce, 0));
    for (int i = 0; i < found; ++i)
      read_news(static_cast<int>(events[static_cast<size_t>(i)].data.u32));
  }
}

void Peers::read_news(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  while (peer.socket.get() >= 0) {
    const ssize_t n = ::recv(peer.socket.get(), peer.notice.data() + peer.received,
                             sizeof(Notice) - peer.received, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      failure_ = n == 0 || errno == ECONNRESET
                     ? name(rank) + " is gone: its process has ended"
                     : fmt::format("{} is gone: {}", name(rank), std::strerror(errno));
      fail<IoError>(failure_);
    }
    peer.received += static_cast<size_t>(n);
    if (peer.received == sizeof(Notice)) take_notice(rank);
  }
}

void Peers::take_notice(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  Notice notice;
  std::memcpy(&notice, peer.notice.data(), sizeof(notice));
  peer.received = 0;
  if (notice.kind == Notice::leave) {
    peer.left = true;
    return peer.socket.reset();
  }
  if (notice.kind == Notice::stuck) {
    peer.stuck_in = notice.call;
    return;
  }
  if (notice.kind == Notice::moving) {
    peer.stuck_in.reset();
    return;
  }
  notice.reason[sizeof(notice.reason) - 1] = 0;
  failure_ = notice.reason;
  fail<IoError>(failure_);
}

void Peers::begin(const GroupCall& call) {
  moved();
  call_ = call;
  if (!call.is_message()) begun_ = call.sequence;
}

void Peers::end() {
  moved();
  if (!call_.is_message()) return;
  Peer& peer = peers_[static_cast<size_t>(call_.root)];
  (call_.kind == CallKind::send ? peer.sent : peer.heard) = call_.sequence;
}

void Peers::moved() {
  waiting_.reset();
  if (!told_) return;
  told_ = false;
  const Notice notice{.kind = Notice::moving};
  send_to_all(&notice, sizeof(notice));
}

void Peers::look() {
  check();
  if (outer_ != nullptr) return outer_->look();
  const Env::Time now = env_.now();
  if (!waiting_) waiting_.emplace(now, options_.patience);
  if (now < waiting_->since() + kStuck) return;
  if (!told_) tell_stuck();
  told_ = true;
  compare_calls();
  check_circle(now);
  speak_of_wait(now);
}

void Peers::speak_of_wait(Env::Time now) {
  if (!options_.log || !waiting_->due(now)) return;
  options_.log(fmt::format("rank {} has been in {} for {:.0f} s: {}", number(rank()), call_.text(),
                           std::chrono::duration<double>(now - waiting_->since()).count(),
                           awaited()));
}

/// Ranks that have not said they wait in the same call: they are elsewhere, or stopped.
std::string Peers::awaited() const {
  std::string names;
  for (int peer = 0; peer < size(); ++peer) {
    const std::optional<GroupCall>& theirs = peers_[static_cast<size_t>(peer)].stuck_in;
    const bool waits = theirs && !theirs->is_message() && theirs->sequence == call_.sequence;
    const bool expected = call_.is_message() ? peer == call_.root : !waits;
    if (peer != rank() && expected) names += (names.empty() ? "" : ", ") + name(peer);
  }
  return names.empty() ? "all ranks are in it, data are on their way" : "it waits for " + names;
}

void Peers::tell_stuck() const {
  const Notice notice{.kind = Notice::stuck, .call = call_};
  send_to_all(&notice, sizeof(notice));
}

/// A message and a call of all ranks are not the same if one waits for the other's rank and that
/// has gone on to calls which this one has not begun.
void Peers::compare_calls() const {
  for (int peer = 0; peer < size(); ++peer) {
    const std::optional<GroupCall>& theirs = peers_[static_cast<size_t>(peer)].stuck_in;
    if (!theirs || theirs->is_message()) continue;
    const bool differs = call_.is_message() ? call_.root == peer && theirs->sequence > begun_
                                            : theirs->sequence == call_.sequence;
    if (differs) check_same_call(unstepped(call_), name(rank()), unstepped(*theirs), name(peer));
  }
}

/// The cycle of ranks from this one on, each stuck in a message with the next and the last with
/// this one; empty if there is none.
std::vector<int> Peers::circle() const {
  std::vector<int> ranks = {rank()};
  if (!call_.is_message()) return {};
  for (int next = call_.root; next != rank();) {
    const std::optional<GroupCall>& theirs = peers_[static_cast<size_t>(next)].stuck_in;
    if (!theirs || !theirs->is_message() || std::ssize(ranks) == size()) return {};
    ranks.push_back(next);
    next = theirs->root;
  }
  const Peer& last = peers_[static_cast<size_t>(ranks.back())];
  const bool is_send = last.stuck_in->kind == CallKind::send;
  const bool fits = ranks.size() == 2 && is_send != (call_.kind == CallKind::send);
  const bool served = last.stuck_in->sequence <= (is_send ? last.heard : last.sent);
  return fits || served ? std::vector<int>{} : ranks;
}

void Peers::check_circle(Env::Time now) {
  std::string text;
  for (const int each : circle()) {
    const GroupCall& call = each == rank() ? call_ : *peers_[static_cast<size_t>(each)].stuck_in;
    text += fmt::format("{}{} is in {}", text.empty() ? "" : ", ", name(each), call.text());
  }
  if (text != circle_) {
    circle_ = text;
    circle_since_ = now;
  }
  argosy::check<ConfigError>(circle_.empty() || now < circle_since_ + kCircle,
                             "messages wait for each other in a circle, expected a rank that "
                             "receives what is sent: ",
                             circle_);
}

bool Peers::has_left(int rank) const { return peers_[static_cast<size_t>(rank)].left; }

void Peers::explain_loss(int rank, const GroupCall& call) {
  const Env::Time until = env_.now() + kExplain;
  while (!has_left(rank) && env_.now() < until) {
    check();
    if (!has_left(rank)) wait_a_moment(fd(), kLook);
  }
  fail<IoError>(name(rank), has_left(rank) ? " has left the group" : " has closed its connection",
                "; ", name(this->rank()), " is in ", call.text());
}

void Peers::tell(const std::string& reason) noexcept {
  Notice notice{.kind = Notice::stop};
  copy_text(notice.reason, reason);
  send_to_all(&notice, sizeof(notice));
}

Descriptor Peers::open_link(int rank) {
  const Env::Time until = env_.now() + options_.deadline;
  const auto wanted = [&](const Hello& hello) {
    return hello.group == options_.group && hello.purpose == Hello::data && hello.rank == rank &&
           hello.nonce == nonce(rank);
  };
  while (env_.now() < until) {
    look();
    if (rank > this->rank()) {
      if (auto connection = listener_->take(wanted)) return std::move(connection->socket);
      wait_a_moment(listener_->fd(), kLook);
    } else if (auto socket = connect_within(options_.ranks[static_cast<size_t>(rank)], kTry)) {
      const Hello hello = own_hello(Hello::data);
      send_plain(*socket, &hello, sizeof(hello));
      return std::move(*socket);
    }
  }
  fail<IoError>(name(rank), ": no connection for data within ", in_seconds(options_.deadline));
}

std::unique_ptr<Peers> Peers::sub_group(std::span<const int> ranks, uint64_t id) {
  PeersOptions options = options_;
  options.group = mix(options_.group ^ id);
  options.ranks.clear();
  options.numbers.clear();
  for (const int each : ranks) {
    if (each == rank()) options.rank = static_cast<int>(options.ranks.size());
    options.ranks.push_back(options_.ranks[static_cast<size_t>(each)]);
    options.numbers.push_back(number(each));
  }
  return std::make_unique<Peers>(env_, std::move(options), listener_, [&] {
    check();
    for (const int each : ranks)
      argosy::check<IoError>(!has_left(each), name(each),
                             " has left instead of joining a sub-group");
  });
}

}  // namespace argosy::comm
