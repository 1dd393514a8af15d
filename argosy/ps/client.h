#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/mutex.h"
#include "argosy/net/transport.h"
#include "argosy/ps/placement.h"
#include "argosy/ps/wire.h"

namespace argosy {

struct ClientOptions {
  std::vector<Endpoint> servers;
  uint32_t worker = 0, workers = 1;
  std::string job = {};
  uint32_t restarts = 0;  // how often this process has been started again
  uint32_t inflight = 8;  // exchanges whose key lists are kept
  Env::Duration connect_within = std::chrono::seconds(60);  // all servers, at the start
  Env::Duration give_up = std::chrono::seconds(30);         // on a server that was lost
  Env::Duration quiet = std::chrono::seconds(10);    // a link without a frame is cut after this
  Env::Duration patience = std::chrono::seconds(5);  // a wait that is longer is spoken of
  std::function<void(const std::string&)> log = {};
};

/// The keys of one batch, each with its server.
class KeyLists {
 public:
  /// `keys` by key set; each key comes once in its set.
  KeyLists(const Placement& placement, std::span<const std::vector<Key>> keys);

  std::span<const Key> keys(uint32_t server, size_t set) const {
    return parts_[server * sets_ + set].keys;
  }
  /// Their places among the keys of the set; empty: all, in order.
  std::span<const uint32_t> places(uint32_t server, size_t set) const {
    return parts_[server * sets_ + set].places;
  }
  uint64_t number = 0;  // of the exchange that pulls them; 0: none does

 private:
  struct Part {
    std::vector<Key> keys;
    std::vector<uint32_t> places;
  };
  size_t sets_;
  std::vector<Part> parts_;  // by server, then by key set
};

/// What happens between a worker and all servers in one go: the pushes are applied, then the pulls
/// answered. Belongs to the client from exchange() until done is called.
struct Exchange {
  // What to push; looked at only during the call of exchange():
  struct Push {
    std::shared_ptr<const KeyLists> lists;      // of an earlier exchange, or of none
    std::vector<std::span<const float>> grads;  // by sparse table, by place
  };
  std::vector<Push> pushes = {};
  std::vector<std::span<const float>> dense = {};  // gradients by dense table; none: no push
  bool ends_step = false;

  // What to pull, and where it goes:
  std::shared_ptr<KeyLists> lists = {};           // null: no rows
  std::vector<std::span<float>> rows = {};        // by sparse table
  std::vector<std::span<float>> parameters = {};  // by dense table; none: not pulled
  bool inference = false;                         // make no rows, leave no lists

  /// With the error, or null. Called by a thread of the transport.
  std::function<void(std::exception_ptr)> done = {};

  // Once done:
  uint64_t step = 0;  // the earliest of the servers' steps at which values were read
  uint64_t staleness = 0, stale_pushes = 0;
};

/// What a worker has wanted for the longest time from a server that owes it something.
struct ClientWait {
  uint32_t server = 0;
  std::string what = {};  // "exchange 912: rows of emb", "gather figures of an epoch"
  Env::Time since = {};
};

/// A worker's side of all its servers. Exchanges go out in the order of the calls, one frame to
/// each server; what was sent and not answered is sent again over a new link, and applied once.
/// A server that stays away for too long ends the client: everything fails with an IoError that
/// names it. A state machine, as PsServer. Thread safety: full.
class PsClient : public std::enable_shared_from_this<PsClient> {
 public:
  using Done = std::function<void(std::exception_ptr)>;
  using OnResult = std::function<void(std::exception_ptr, std::vector<std::byte> result)>;

  /// Begins to connect. The transport must end before the environment does.
  static std::shared_ptr<PsClient> make(Env& env, Transport& transport, Placement placement,
                                        ClientOptions options);
  ~PsClient();
  PsClient(const PsClient&) = delete;
  PsClient& operator=(const PsClient&) = delete;

  void exchange(std::shared_ptr<Exchange> exchange);
  /// A verb of PsServer; those for one server are performed one after the other.
  void control(uint32_t server, Control control, OnResult on_result);
  /// Cuts the links; what is under way fails.
  void close();

  /// One for each server that owes something, or that is not linked. Nobody waits for long because
  /// of this call.
  std::vector<ClientWait> waits() const;
  /// Exchanges that some server has not answered.
  size_t under_way() const;
  /// Of all pushes so far: the steps from their pulls to them, added up.
  struct Staleness {
    uint64_t steps = 0, pushes = 0;
  };
  Staleness staleness() const;
  /// Payloads of exchanges and their answers so far.
  uint64_t bytes_sent() const { return bytes_sent_; }
  uint64_t bytes_received() const { return bytes_received_; }
  const Placement& placement() const { return placement_; }
  const ClientOptions& options() const { return options_; }

 private:
  class Events;
  /// One server's part of an exchange.
  struct Pending {
    uint64_t sequence = 0;
    std::shared_ptr<Exchange> exchange;
    std::shared_ptr<std::atomic<size_t>> missing;  // servers that have not answered it
    ExchangeHead head;
    std::vector<std::shared_ptr<const KeyLists>> pushed;
    std::shared_ptr<Buffer> counts, floats;
    Env::Time since, sent;  // sent: the last time
  };
  struct Asked {
    uint64_t id = 0;
    std::string line;
    std::shared_ptr<const std::vector<std::byte>> bytes;
    OnResult on_result;
    Env::Time since, sent;
  };
  enum class State : uint8_t { down, connecting, greeting, ready };
  struct Channel {
    State state = State::down;
    std::shared_ptr<Link> link;
    uint64_t attempt = 0;  // events of older links are ignored
    Env::Duration pause{};
    Env::Time down_since, heard, spoke, pinged;
    bool was_ready = false;
    bool useful = false;       // something has come after the welcome of this link
    uint64_t incarnation = 0;  // of the server's process
    uint64_t forgotten = 0;    // key lists up to this one were those of an earlier process
    uint64_t applied = 0;      // of this worker, as the first welcome said
    // What a server that is started anew has to be told, as in Hello:
    uint64_t step = 0, milestone = 0, pass = 0;
    bool paused = false;
    std::string trouble;  // the last one
    std::string waits_for;
    std::deque<Pending> unanswered;
    std::deque<Asked> controls;  // the first has been sent
    uint64_t last_control = 0;
  };
  PsClient(Env& env, Transport& transport, Placement placement, ClientOptions options);
  void say(const std::string& text) const;
  std::string name(uint32_t server) const;
  void arm_timer();
  void tick();
  std::optional<Env::Time> waits_since(const Channel& channel) const REQUIRES(mutex_);
  std::string words_of(uint32_t server, const Pending& pending) const;
  void connect(uint32_t server) REQUIRES(mutex_);
  void connect_later(uint32_t server) REQUIRES(mutex_);
  std::shared_ptr<LinkEvents> connected(uint32_t server, uint64_t attempt,
                                        std::shared_ptr<Link> link, const std::string& error);
  void send_hello(uint32_t server) REQUIRES(mutex_);
  void on_frame(uint32_t server, uint64_t attempt, InFrame frame);
  void on_close(uint32_t server, uint64_t attempt, const std::string& reason);
  void take_welcome(uint32_t server, const InFrame& frame) REQUIRES(mutex_);
  void begin_behind_all() REQUIRES(mutex_);
  static void note_result(Channel& channel, const std::string& line,
                          std::span<const std::byte> result);
  void take_reply(uint32_t server, const InFrame& frame);
  void take_result(uint32_t server, const InFrame& frame);
  void take_pong(uint32_t server, const InFrame& frame) REQUIRES(mutex_);
  void land(uint32_t server, const Pending& pending, const InFrame& frame) const;
  Pending encode_for(uint32_t server, const Exchange& exchange);
  void take_floats(uint32_t server, const Exchange& exchange, float* to) const;
  std::vector<size_t> key_counts(uint32_t server, const Exchange& exchange) const;
  void submit(std::shared_ptr<Exchange> exchange, std::vector<Pending> parts) REQUIRES(mutex_);
  enum class Keys : uint8_t { named, carried };
  void send(uint32_t server, Pending& pending, Keys keys) REQUIRES(mutex_);
  void send_control(uint32_t server) REQUIRES(mutex_);
  void send_all_again(uint32_t server) REQUIRES(mutex_);
  void fail_all(std::exception_ptr why);

  Env& env_;
  Transport& transport_;
  const Placement placement_;
  const ClientOptions options_;
  const uint64_t incarnation_, plan_hash_;
  std::vector<ServerShape> shapes_;
  std::vector<size_t> dense_number_;  // by table: which of the dense ones it is
  BufferPool buffers_;
  std::atomic<uint64_t> bytes_sent_ = 0, bytes_received_ = 0;
  mutable std::mutex figures_mutex_;  // of exchanges
  mutable Staleness staleness_;       // guarded by it
  std::shared_mutex landing_;         // held shared while answers are put where they belong
  mutable Mutex mutex_;
  std::vector<Channel> channels_ GUARDED_BY(mutex_);
  bool started_ GUARDED_BY(mutex_) = false;  // all servers have been reached
  struct Early {
    std::shared_ptr<Exchange> exchange;
    std::vector<Pending> parts;
  };
  std::vector<Early> early_ GUARDED_BY(mutex_);  // exchanges until then
  uint64_t sequence_ GUARDED_BY(mutex_) = 0;
  uint64_t first_ GUARDED_BY(mutex_) = 0;  // exchanges up to here were an earlier process'
  std::exception_ptr failure_ GUARDED_BY(mutex_);
  Env::TimerId timer_ = 0;
};

}  // namespace argosy
