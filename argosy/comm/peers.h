#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "argosy/base/descriptor.h"
#include "argosy/base/env.h"
#include "argosy/base/reminder.h"
#include "argosy/comm/call.h"
#include "argosy/comm/handshake.h"
#include "argosy/net/endpoint.h"

namespace argosy::comm {

/// How a rank meets the others of a group.
struct PeersOptions {
  int rank = 0;
  std::vector<Endpoint> ranks = {};
  std::vector<int> numbers = {};  // names of the ranks in messages; empty: their index
  std::string job = {};
  uint64_t group = 0;
  // As in GroupOptions:
  Env::Duration join_within = {}, deadline = {}, patience = {}, quiet = {};
  std::function<void(const std::string&)> log = {};
};

/// A control connection to every other rank of a group: it shows that they live, and carries their
/// reasons when they give up. Data use other connections. Thread safety: none.
class Peers {
 public:
  /// Meets the others. Throws as connect_group() does. Polls `meanwhile`, which throws once waiting
  /// is pointless.
  Peers(
      Env& env, PeersOptions options, std::shared_ptr<RankListener> listener,
      const std::function<void()>& meanwhile = [] {});
  ~Peers();  // leaves
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  Env& env() const { return env_; }
  const PeersOptions& options() const { return options_; }
  int rank() const { return options_.rank; }
  int size() const { return static_cast<int>(options_.ranks.size()); }
  /// "rank 1 (10.0.0.2:6070, process 4711)"
  std::string name(int rank) const;
  /// A random number that identifies this membership of `rank` in this group.
  uint64_t nonce(int rank) const;

  /// For a group inside another one: look() reports through `outer`, in its terms. `outer` must
  /// outlive this.
  void set_outer(Peers& outer) { outer_ = &outer; }
  /// The call that look() reports on from now on; the end of it.
  void begin(const GroupCall& call);
  void end();
  /// Data have moved, so this rank is not stuck: restarts the clock of look().
  void moved();
  /// Poll it while waiting for another rank. It calls check(); a rank that is stuck tells the
  /// others its call, and throws ConfigError if theirs differs or messages wait for each other in a
  /// circle. Long waits are logged with the ranks that hold them up.
  void look();
  /// Throws IoError naming a rank that has died, or with the reason that one gave. Does not block.
  void check();
  bool has_left(int rank) const;
  /// Readable when check() may throw.
  int fd() const { return news_.get(); }
  /// A data connection to `rank` broke during a call: throws IoError with the reason, if known.
  [[noreturn]] void explain_loss(int rank, const GroupCall& call);
  /// Makes all others fail with this reason.
  void tell(const std::string& reason) noexcept;

  /// A non-blocking connection for data; the other rank must call it too.
  Descriptor open_link(int rank);
  /// A group of some of these ranks; all of them make it.
  std::unique_ptr<Peers> sub_group(std::span<const int> ranks, uint64_t id);

 private:
  struct Peer {
    Descriptor socket = Descriptor();
    Hello hello = {};
    bool greeted = false;  // its hello has arrived and was accepted
    size_t received = 0;   // bytes of the hello or of a notice
    std::vector<char> notice = {};
    bool left = false;
    std::optional<GroupCall> stuck_in = {};  // the call in which it says it is stuck
    uint64_t sent = 0, heard = 0;            // sequence of the last complete message
  };

  Hello own_hello(Hello::Purpose purpose) const;
  void meet_all(const std::function<void()>& meanwhile);
  void call_lower_ranks();
  void read_answers();
  void let_in_higher_ranks();
  void refuse(RankListener::Connection& connection, const std::string& reason);
  std::string objection(const Hello& hello) const;
  void watch(int rank);
  bool complete() const;
  std::string missing() const;
  [[noreturn]] void name_missing() const;
  void read_news(int rank);
  void take_notice(int rank);
  void send_to_all(const void* bytes, size_t size) const noexcept;
  void tell_stuck() const;
  void compare_calls() const;
  void speak_of_wait(Env::Time now);
  std::string awaited() const;
  std::vector<int> circle() const;
  void check_circle(Env::Time now);
  std::string place(int rank) const;
  int number(int rank) const;

  Env& env_;
  const PeersOptions options_;
  const std::shared_ptr<RankListener> listener_;
  const uint64_t nonce_;
  std::vector<Peer> peers_;
  Descriptor news_;      // epoll over all connections
  std::string refused_;  // why the last connection was refused
  std::string failure_;
  Peers* outer_ = nullptr;
  GroupCall call_ = {};
  uint64_t begun_ = 0;                    // the last call of all ranks
  std::optional<Reminder> waiting_ = {};  // in call_
  bool told_ = false;                     // the others know that we are stuck in call_
  std::string circle_;                    // of messages waiting for each other, if any
  Env::Time circle_since_ = {};
};

}  // namespace argosy::comm
