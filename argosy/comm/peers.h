#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "argosy/base/descriptor.h"
#include "argosy/base/env.h"
#include "argosy/comm/call.h"
#include "argosy/comm/door.h"
#include "argosy/net/endpoint.h"

namespace argosy {

/// What a rank needs to meet the others of a group.
struct PeersOptions {
  int rank = 0;
  std::vector<Endpoint> ranks = {};
  std::vector<int> numbers = {};  // what ranks are called; empty: as they are listed
  std::string job = {};
  uint64_t group = 0;
  Env::Duration join_within = {}, deadline = {};
};

/// A connection to every other rank of a group, by which each knows that the others live, and is
/// told when one gives up. Data travel elsewhere. Not for several threads at once.
class Peers {
 public:
  /// Meets the others. Throws as connect_group() does; `meanwhile` is called again and again and
  /// throws if there is no use in waiting.
  Peers(
      Env& env, PeersOptions options, std::shared_ptr<Door> door,
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
  /// A number that nobody else has, of the rank's part in this group.
  uint64_t nonce(int rank) const;

  /// Of a group inside another one: lost ranks and different calls are found there as well, and
  /// said in its terms. `outer` lives longer.
  void set_outer(Peers& outer) { outer_ = &outer; }
  /// The call that look() is about from now on; it is over.
  void begin(const GroupCall& call);
  void end();
  /// Data have moved: whoever waits since then is not stuck.
  void moved();
  /// To be called now and then by who waits for another rank: check(), and after a while ranks
  /// tell each other what they are in, and throw ConfigError if those calls are not the same, or
  /// messages that wait for each other in a circle.
  void look();
  /// Throws IoError that names a rank which has died, or repeats what one has told. Does not block.
  void check();
  bool has_left(int rank) const;
  /// Readable when check() may have something to say.
  int fd() const { return news_.get(); }
  /// For a connection to `rank` that has ended in the middle of a call: throws IoError that says
  /// why, as well as it is known.
  [[noreturn]] void explain_loss(int rank, const GroupCall& call);
  /// All others stop with this reason.
  void tell(const std::string& reason) noexcept;

  /// A further connection, for data; the other rank opens it as well. Not blocking.
  Descriptor open_link(int rank);
  /// A part of this group; all of its ranks make it.
  std::unique_ptr<Peers> sub_group(std::span<const int> ranks, uint64_t id);

 private:
  struct Peer {
    Descriptor socket = Descriptor();
    Hello hello = {};
    bool greeted = false;  // it has answered, or came to us
    size_t received = 0;   // bytes of the hello or of a notice
    std::vector<char> notice = {};
    bool left = false;
    std::optional<GroupCall> stuck_in = {};  // a call that it has waited in for long
    uint64_t sent = 0, heard = 0;            // messages to it and from it that are over
  };

  Hello own_hello(Hello::Purpose purpose) const;
  void meet_all(const std::function<void()>& meanwhile);
  void call_lower_ranks();
  void read_answers();
  void let_in_higher_ranks();
  void refuse(Door::Guest& guest, const std::string& reason);
  std::string objection(const Hello& hello) const;
  void watch(int rank);
  bool complete() const;
  [[noreturn]] void name_missing() const;
  void read_news(int rank);
  void take_notice(int rank);
  void send_to_all(const void* bytes, size_t size) const noexcept;
  void tell_stuck() const;
  void compare_calls() const;
  std::vector<int> circle() const;
  void check_circle(Env::Time now);
  std::string place(int rank) const;
  int number(int rank) const;

  Env& env_;
  const PeersOptions options_;
  const std::shared_ptr<Door> door_;
  const uint64_t nonce_;
  std::vector<Peer> peers_;
  Descriptor news_;      // an epoll of all connections
  std::string refused_;  // the last one that was turned away, and why
  std::string failure_;
  Peers* outer_ = nullptr;
  GroupCall call_ = {};
  uint64_t begun_ = 0;                     // the last call of all ranks
  std::optional<Env::Time> waiting_ = {};  // since then, in call_
  bool told_ = false;                      // that we are stuck in call_
  std::string circle_;                     // of messages that wait for each other, if any
  Env::Time circle_since_ = {};
};

}  // namespace argosy
