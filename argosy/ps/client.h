#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/mutex.h"
#include "argosy/net/tolerance.h"
#include "argosy/net/transport.h"
#include "argosy/ps/placement.h"
#include "argosy/ps/ps_metrics.h"
#include "argosy/ps/verbs.h"
#include "argosy/ps/wire.h"

namespace argosy::ps {

struct ClientOptions {
  std::vector<Endpoint> servers;
  uint32_t worker = 0, workers = 1;
  std::string job = "default";
  uint32_t restarts = 0;  // how often this process has been started again
  uint32_t inflight = 8;  // exchanges whose key lists a server keeps
  Tolerance tolerance = {};
  Env::Duration away = {};  // how long a lost server may take to be restarted
  /// Bytes of exchanges to keep until servers have them in their journals. With more than that new
  /// ones wait, so a slow disk slows training down and loses nothing.
  size_t keep_bytes = size_t{64} << 20;
  std::function<void(const std::string&)> log = {};
  std::shared_ptr<Metrics> metrics = {};  // of the process; none: the client has its own
};

/// The keys of one batch, each with its server.
class KeyLists {
 public:
  /// `keys` by key set, without duplicates; `columns` by key set too, or none.
  KeyLists(const Placement& placement, std::span<const std::vector<Key>> keys,
           std::span<const RowColumns> columns = {});

  std::span<const Key> keys(uint32_t server, size_t set) const {
    return parts_[server * sets_ + set].keys;
  }
  /// Their places among the keys of the set; empty: all, in order.
  std::span<const uint32_t> places(uint32_t server, size_t set) const {
    return parts_[server * sets_ + set].places;
  }
  /// Side columns as they are sent, of the key sets that have any.
  std::span<const std::byte> columns(uint32_t server) const {
    return std::as_bytes(std::span(columns_[server]));
  }
  uint64_t number = 0;  // of the exchange that pulls them; 0: none does

 private:
  struct Part {
    std::vector<Key> keys;
    std::vector<uint32_t> places;
  };
  void add_columns(const ServerShape& shape, uint32_t server, std::span<const RowColumns> columns);

  size_t sets_;
  std::vector<Part> parts_;                     // by server, then by key set
  std::vector<std::vector<uint32_t>> columns_;  // by server: values of 4 bytes
};

/// One round trip of a worker to all its servers: each applies the pushes, then answers the pulls.
/// The client owns it from exchange() until it calls done.
struct Exchange {
  // Pushed. The spans need to live only until exchange() returns:
  struct Push {
    std::shared_ptr<const KeyLists> lists;      // of an earlier exchange, or of none
    std::vector<std::span<const float>> grads;  // by table, by place
  };
  std::vector<Push> pushes = {};
  std::vector<std::span<const float>> dense = {};  // gradients by parameter; none: no push
  bool ends_step = false;
  Trained trained = {};  // progress of this worker, these pushes included

  // Pulled, into these spans:
  std::shared_ptr<KeyLists> lists = {};           // null: no rows
  std::vector<std::span<float>> rows = {};        // by table
  std::vector<std::span<float>> parameters = {};  // by parameter; none: not pulled
  bool inference = false;                         // make no rows, leave no lists

  /// Called once, on any thread, with the error or null.
  std::function<void(std::exception_ptr)> done = {};

  // Once done:
  uint64_t step = 0;  // the lowest step at which a server read the values
  uint64_t staleness = 0, stale_pushes = 0;
};

/// The oldest thing that a server still owes this worker.
struct ClientWait {
  uint32_t server = 0;
  std::string what = {};  // "exchange 912: rows of emb", "gather metrics of an epoch"
  Env::Time since = {};
};

/// A worker's connections to all its servers. Exchanges go out in the order of the calls, one frame
/// to each server; what is unanswered when a link breaks is sent again over the next, and applied
/// once. The client fails for good, every call with an IoError that names the server, when one is
/// dead (nobody accepts at its address for `quiet` or `away`, whichever is longer) or has not been
/// ready for `give_up`: it has never come, or it accepts connections and stays silent. A state
/// machine driven by links and timers, like Server. Thread safety: full. Invariants:
///
///   1. Numbers. submit() gives every exchange the next sequence, the same at all servers. None is
///      given before every server has sent a welcome: a restarted worker continues behind the
///      highest sequence that any server has of its earlier incarnations (first_), and exchanges
///      wait in early_ until then.
///   2. Channel::unanswered holds, in sequence order, what this server has not answered. It is
///      emptied by replies and by failure only, never by a lost link. An answered exchange that is
///      not in the server's journal yet goes on to Channel::kept, so unanswered and kept together
///      have no gap. A server that comes back from its journal gets the kept ones again, in front
///      of the unanswered ones, without their pulls: who waited for those has the values.
///   3. A link carries only hellos before its first welcome. Every welcome makes the channel send
///      all of `unanswered` and the first verb again, in order. Other retries follow a pong: what
///      was sent before its ping and has not arrived there, or was applied there without a reply
///      arriving here, and a verb sent before it. The server's ledger drops duplicates.
///   4. A push names its list by the sequence of the exchange that pulled it. Retries carry the
///      keys too, and so do pushes of lists that were never pulled or that died with an earlier
///      server process (Channel::forgotten).
///   5. At most one verb per server is on the wire: the front of Channel::asked. It follows the
///      exchanges that are sent again (Channel::again): a worker that pauses has no step left to
///      end.
///   6. Events of a link are ignored once Channel::attempt has moved on to the next.
///   7. Every done and every on_result is called exactly once, without mutex_ held. Once done has
///      been called nobody writes to the exchange's spans: replies are copied under landing_
///      (shared), and a failure takes it exclusively before it reports.
///   8. failure_ is set once. From then on there are no links and nothing is pending.
class Client : public std::enable_shared_from_this<Client> {
 public:
  using Done = std::function<void(std::exception_ptr)>;
  using OnResult = std::function<void(std::exception_ptr, std::vector<std::byte> result)>;

  /// Begins to connect. The transport must end before the environment does.
  static std::shared_ptr<Client> make(Env& env, Transport& transport, Placement placement,
                                      ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void exchange(std::shared_ptr<Exchange> exchange);
  /// Sends a verb. A server performs the verbs of one worker in order, one at a time.
  void ask(uint32_t server, Request request, OnResult on_result);
  /// The number of the last exchange; those that wait for the first welcomes have none yet.
  uint64_t last_exchange() const;
  /// Closes the links. Whatever is still unanswered fails.
  void close();

  /// Where the servers went on (wire.h, settling), once they have answered something.
  uint64_t settled() const;
  /// Whether this server has come back with its journal, so that others send again what it lacks.
  bool recovered(uint32_t server) const;
  /// Before the first exchange: how far each server has the data of this worker, which goes on from
  /// where all have them. What a server has already is not pushed to it again.
  void servers_have(std::vector<Trained> had);

  /// One for each server that owes an answer or has no link. Cheap: it never blocks the client.
  std::vector<ClientWait> waits() const;
  /// Exchanges that at least one server has not answered yet.
  size_t under_way() const;
  /// Steps between pull and push, summed over all pushes so far.
  struct Staleness {
    uint64_t steps = 0, pushes = 0;
  };
  Staleness staleness() const;
  const std::shared_ptr<Metrics>& metrics() const { return options_.metrics; }
  const ClientMetrics& counts() const { return metrics_; }
  const Placement& placement() const { return placement_; }
  const ClientOptions& options() const { return options_; }

 private:
  class Events;
  /// One server's part of an exchange.
  struct Pending {
    uint64_t sequence = 0;
    std::shared_ptr<Exchange> exchange;            // null: it was answered by an earlier process
    std::shared_ptr<std::atomic<size_t>> missing;  // servers that have not answered it
    ExchangeHead head;
    std::vector<std::shared_ptr<const KeyLists>> pushed;
    std::shared_ptr<Buffer> counts, floats;
    Env::Time since, sent;  // sent: most recently
    size_t bytes() const { return counts->size() + floats->size(); }
  };
  struct Asked {
    uint64_t id = 0;
    Request request;
    std::shared_ptr<const std::vector<std::byte>> bytes;
    OnResult on_result;
    Env::Time since, sent;
  };
  enum class State : uint8_t { down, connecting, greeting, ready };
  struct Channel {
    State state = State::down;
    std::shared_ptr<Link> link;
    uint64_t attempt = 0;  // numbers the links; events of older ones are ignored
    Env::Duration pause{};
    Env::Time down_since, alive, heard, spoke, pinged;  // alive: last accepted connection
    bool was_ready = false;
    bool useful = false;                    // this link has delivered more than the welcome
    uint64_t incarnation = 0;               // of the server's process
    uint64_t forgotten = 0;                 // key lists up to this one died with an earlier process
    uint64_t applied = 0;                   // last exchange applied, by the first welcome
    uint64_t settled = settling::kNowhere;  // by the welcome
    bool recovered = false;                 // likewise: from its journal
    Offers offers = {};                     // instead of it, so far
    // A restarted server is told these:
    uint64_t step = 0;
    KnownOfServer known;
    std::string trouble;  // the last one
    std::string waits_for;
    std::deque<Pending> unanswered, kept;
    uint64_t durable = 0;     // the server's journal has exchanges up to here
    size_t again = 0;         // of unanswered: those that were answered by an earlier process
    std::deque<Asked> asked;  // only the front one has been sent
    uint64_t last_asked = 0;
  };
  Client(Env& env, Transport& transport, Placement placement, ClientOptions options);
  void say(const std::string& text) const;
  std::string name(uint32_t server) const;
  void arm_timer();
  void tick();
  void leave_out(Env::Duration time) REQUIRES(mutex_);
  std::string is_over_with(uint32_t server, Env::Time now) const REQUIRES(mutex_);
  std::optional<Env::Time> waits_since(const Channel& channel) const REQUIRES(mutex_);
  std::string words_of(uint32_t server, const Pending& pending) const;
  void connect(uint32_t server) REQUIRES(mutex_);
  void connect_later(uint32_t server) REQUIRES(mutex_);
  std::shared_ptr<LinkEvents> connected(uint32_t server, uint64_t attempt,
                                        std::shared_ptr<Link> link, const std::string& error);
  void send_hello(uint32_t server) REQUIRES(mutex_);
  void on_part(uint32_t server, uint64_t attempt);
  void on_frame(uint32_t server, uint64_t attempt, InFrame frame);
  void on_close(uint32_t server, uint64_t attempt, const std::string& reason);
  void take_welcome(uint32_t server, const InFrame& frame) REQUIRES(mutex_);
  void take_offers(uint32_t server, const InFrame& frame) REQUIRES(mutex_);
  void settle_if_all_have_spoken() REQUIRES(mutex_);
  uint64_t choose_place() const REQUIRES(mutex_);
  void begin_behind_all() REQUIRES(mutex_);
  bool may_submit() const REQUIRES(mutex_);
  void submit_early() REQUIRES(mutex_);
  void keep(Channel& channel, const Pending& answered) REQUIRES(mutex_);
  void let_go(Channel& channel, uint64_t durable) REQUIRES(mutex_);
  size_t take_back_kept(uint32_t server) REQUIRES(mutex_);
  void take_reply(uint32_t server, const InFrame& frame);
  void take_result(uint32_t server, const InFrame& frame);
  void take_pong(uint32_t server, const InFrame& frame) REQUIRES(mutex_);
  void land(uint32_t server, const Pending& pending, const ReplyView& view) const;
  Pending encode_for(uint32_t server, const Exchange& exchange);
  void take_floats(uint32_t server, const Exchange& exchange, float* to) const;
  std::vector<size_t> key_counts(uint32_t server, const Exchange& exchange) const;
  void submit(std::shared_ptr<Exchange> exchange, std::vector<Pending> parts) REQUIRES(mutex_);
  bool leads_record(const Exchange& exchange) REQUIRES(mutex_);
  enum class Keys : uint8_t { named, carried };
  void send(uint32_t server, Pending& pending, Keys keys) REQUIRES(mutex_);
  void send_request(uint32_t server) REQUIRES(mutex_);
  void send_all_again(uint32_t server) REQUIRES(mutex_);
  void fail_all(std::exception_ptr why);

  Env& env_;
  Transport& transport_;
  const Placement placement_;
  const ClientOptions options_;
  const uint64_t incarnation_, plan_hash_;
  std::vector<ServerShape> shapes_;
  BufferPool buffers_;
  ClientMetrics metrics_;
  mutable Mutex staleness_mutex_;
  mutable Staleness staleness_ GUARDED_BY(staleness_mutex_);
  std::shared_mutex landing_;  // held shared while a reply is copied to its spans
  mutable Mutex mutex_;
  std::vector<Channel> channels_ GUARDED_BY(mutex_);
  bool started_ GUARDED_BY(mutex_) = false;  // all servers have been reached
  struct Early {
    std::shared_ptr<Exchange> exchange;
    std::vector<Pending> parts;
  };
  std::deque<Early> early_ GUARDED_BY(mutex_);  // exchanges that wait for that, or for room
  size_t kept_bytes_ GUARDED_BY(mutex_) = 0;    // of all channels
  uint64_t sequence_ GUARDED_BY(mutex_) = 0;
  uint64_t first_ GUARDED_BY(mutex_) = 0;  // last sequence of the previous incarnation
  uint64_t settled_ GUARDED_BY(mutex_) = settling::kNowhere;  // as worker 0 has chosen
  Env::Time led_ GUARDED_BY(mutex_);     // the last step that servers were to record
  size_t unled_ GUARDED_BY(mutex_) = 0;  // bytes since
  std::vector<Trained> had_;             // by server; does not change once there are exchanges
  std::exception_ptr failure_ GUARDED_BY(mutex_);
  Env::Time ticked_ GUARDED_BY(mutex_);
  Env::TimerId timer_ = 0;
};

}  // namespace argosy::ps
