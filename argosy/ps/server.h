#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/mutex.h"
#include "argosy/base/thread_team.h"
#include "argosy/net/transport.h"
#include "argosy/ps/dense_table.h"
#include "argosy/ps/placement.h"
#include "argosy/ps/server_mark.h"
#include "argosy/ps/sparse_table.h"
#include "argosy/ps/wire.h"

namespace argosy {

struct ServerOptions {
  uint32_t index = 0;  // of this server
  uint32_t workers = 1;
  std::string job = {};
  /// Every worker ends each step before any goes on: gradients are averaged in the order of the
  /// workers, then applied as one step. Otherwise each push is a step.
  bool sync = false;
  size_t threads = 1;  // that share a large exchange
  Env::Duration come_within =
      std::chrono::seconds(120);                     // a worker that has not come by then is dead
  Env::Duration grace = std::chrono::seconds(3);     // a worker without a link is dead after this
  Env::Duration away = std::chrono::seconds(0);      // for so long a dead worker may come back
  Env::Duration quiet = std::chrono::seconds(15);    // a link without a frame is cut after this
  Env::Duration patience = std::chrono::seconds(5);  // a wait that is longer is spoken of
  std::function<void(const std::string&)> log = {};
  /// Runs what takes long, saves and loads; none: at once, where it was asked for.
  std::function<void(std::function<void()>)> background = {};
};

/// Workers that a server waits for.
struct ServerWait {
  enum class Until : uint8_t { step_ended, gathered, all_here };
  Until until = Until::step_ended;
  std::string what = {};  // "step 412", "gather the epoch is saved", "hello"
  std::vector<uint32_t> workers = {};
  std::vector<uint32_t> held = {};  // those whose answers it holds back until then
  Env::Time since = {};
};

/// What a server is at, besides exchanges, which are answered at once.
struct ServerActivity {
  std::vector<ServerWait> waits = {};
  struct Task {
    std::string line = {};  // a control verb that is being performed
    Env::Time since = {};
  };
  std::vector<Task> tasks = {};
};

/// Holds its part of a placement's tables and serves workers: exchanges (apply the pushes, then
/// answer the pulls), and control verbs:
///   leave | pause                   the job for good, the step group for now
///   join PASS                       the step group for a pass, when every worker that is left
///                                   wants to; at once if the pass has begun
///   gather NAME + bytes             answered, when every worker that is left has sent its bytes,
///                                   with all of them in the order of the workers
///   milestone NUMBER NAME + bytes   the same for a place that all workers come to once, in the
///                                   order of the numbers. It waits for the first worker while that
///                                   one may come back. One that is over, or that somebody is
///                                   beyond, is answered at once: the last that was completed with
///                                   its bytes, others with none
///   standing                        the last milestone, and the most pushes that an earlier
///   process
///                                   of this worker has made since; once all workers have come
///   dense | set_dense + bytes       weights and optimizer state of its slices, and the step
///   mark                            a ServerMark
///   save GENERATION FOLDER          a file for each sparse table; answers "table file" lines
///   load FOLDER + lines             such files, of any number of servers: keeps its own keys
///   rows TABLE                      keys and weights of all rows
///   shrink N | stats | stop
/// A worker that sends again what it had sent before is answered, but nothing is applied twice. A
/// client can make its own link fail, never the server. A state machine: whatever happens comes in
/// through links and timers. Thread safety: full.
class PsServer : public std::enable_shared_from_this<PsServer> {
 public:
  static std::shared_ptr<PsServer> make(Env& env, Placement placement, ServerOptions options);
  ~PsServer();
  PsServer(const PsServer&) = delete;
  PsServer& operator=(const PsServer&) = delete;

  /// For Transport::listen; the transport must not outlive the environment.
  Transport::OnAccept acceptor();
  /// All declared workers have come and left, or died and stayed away, or one said stop.
  bool done() const;
  /// Returns when done, or when `stop` says so (asked ten times a second).
  void wait(const std::function<bool()>& stop = {});
  /// Until all links are closed, so that the last answers arrive.
  void wait_for_goodbyes(Env::Duration at_most);
  /// The tables of a save, of any number of servers, that was made by save verbs.
  void load(const std::string& folder, const std::vector<std::string>& lines);
  /// Weights and optimizer state of its slices, behind the step.
  std::vector<std::byte> dense_state() const;
  void set_dense_state(std::span<const std::byte> bytes);
  /// This server goes on for one that was lost, from a save with this mark, which was made behind
  /// this milestone: it says of each worker what is lost.
  void goes_on_from(ServerMark mark, uint64_t milestone);
  uint64_t step() const { return step_; }
  /// Nobody waits for long because of this call.
  ServerActivity activity();
  /// Of all sparse tables.
  size_t rows() const;
  std::vector<SparseTable*> sparse_tables();

 private:
  class Session;
  /// The keys of a pull, and where their rows are.
  struct KeptList {
    uint64_t number = 0, step = 0;
    std::vector<SparseTable::Located> tables;
  };
  /// An exchange that ends a step, until all workers have ended it.
  struct Held {
    InFrame frame;
    ExchangeView view;
    Env::Time since;
  };
  /// Members without a comment are guarded by `mutex`.
  struct Worker {
    Mutex mutex;
    uint64_t incarnation = 0;
    std::shared_ptr<Link> link;
    Env::Time lost, heard;  // when the link was lost; when something was last heard
    uint64_t applied = 0, received = 0;
    std::vector<KeptList> lists;
    std::optional<Held> held;
    uint32_t restarts = 0;
    uint64_t pushed = 0, repeats = 0;  // since the last milestone: now, by an earlier process
    uint64_t control = 0;              // the last one that was begun
    std::string verb;                  // of that one, with its words
    Env::Time asked;                   // when that was
    std::optional<std::vector<std::byte>> result;  // of that one; nothing: it is under way
    // Guarded by the server's group_:
    bool joined = false, left = false, dead = false, member = true;
    bool gone = false;  // it has left for good, or was dead for too long
    Env::Time died;
  };
  /// A process of a worker that waits for the result of a control.
  struct Asker {
    uint32_t worker = 0;
    uint64_t incarnation = 0, id = 0;
  };
  struct Answer {
    Asker asker;
    std::vector<std::byte> bytes;
  };
  struct Gathering {
    enum class Kind : uint8_t { gather, join, milestone };
    Kind kind = Kind::gather;
    uint64_t number = 0;                               // of a join or a milestone
    std::map<uint32_t, std::vector<std::byte>> parts;  // by worker
    std::map<uint32_t, Asker> asked;                   // by worker
    Env::Time since;
  };

  PsServer(Env& env, Placement placement, ServerOptions options);
  void say(const std::string& text) const;
  void arm_timer();
  void tick();

  void greet(Session& session, const InFrame& frame);
  void begin_anew(uint32_t number, Worker& worker, const Hello& hello)
      REQUIRES(group_, worker.mutex);
  std::string losses(uint32_t number, const Hello& hello) const REQUIRES(group_);
  void lost(Session& session, const std::string& reason);
  void take_exchange(Session& session, InFrame frame);
  void apply(Worker& worker, const ExchangeView& view, uint64_t step, uint64_t& staleness)
      REQUIRES(worker.mutex);
  void check_lists(Worker& worker, const ExchangeView& view, bool again) REQUIRES(worker.mutex);
  void answer(Worker& worker, const ExchangeView& view, uint64_t staleness) REQUIRES(worker.mutex);
  void fill_reply(Worker& worker, const ExchangeView& view, std::span<float> floats)
      REQUIRES(worker.mutex);
  KeptList* kept(Worker& worker, uint64_t number) REQUIRES(worker.mutex);
  void complete_step();
  void complete_step_of(const std::vector<Worker*>& members) REQUIRES(group_);
  void apply_mean(const std::vector<Worker*>& members, uint64_t step) REQUIRES(group_);
  void turn_away(Worker& worker, const std::string& why) REQUIRES(worker.mutex);
  std::string waits_for(Env::Duration at_least);
  std::vector<ServerWait> find_waits() REQUIRES(group_);
  std::optional<ServerWait> find_step_wait() REQUIRES(group_);
  void answer_ping(Session& session, uint64_t id);

  void take_control(Session& session, const InFrame& frame);
  std::optional<std::vector<std::byte>> perform(const Asker& asker, const Control& control);
  void finish(const Asker& asker, std::vector<std::byte> result);
  void gather(Gathering::Kind kind, uint64_t number, const Asker& asker, const Control& control);
  std::vector<uint32_t> missing(const Gathering& gathering) const REQUIRES(group_);
  bool is_over(const Gathering& gathering) const REQUIRES(group_);
  std::vector<std::byte> settle(const Gathering& gathering) REQUIRES(group_);
  void complete_gatherings();
  void answer_standing(std::vector<Answer>& answers) REQUIRES(group_);
  void end_if_all_are_gone();
  enum class Leaving : uint8_t { asked, dead };
  void leave(uint32_t worker, Leaving how, const std::string& why);
  ServerMark mark();
  std::string save(const std::string& folder, const std::string& generation);
  std::vector<std::byte> all_rows(const std::string& table) const;
  std::string stats();
  size_t shrink(uint32_t unseen);
  void run_jobs(size_t jobs, size_t floats, FunctionRef<void(size_t)> job);

  Env& env_;
  const Placement placement_;
  const ServerOptions options_;
  const ServerShape shape_;
  const Env::Time started_;
  const uint64_t incarnation_;
  std::vector<std::unique_ptr<DenseTable>> dense_;    // its slices
  std::vector<size_t> dense_at_;                      // where each begins among dense_floats
  std::vector<std::unique_ptr<SparseTable>> sparse_;  // all of them
  std::atomic<uint64_t> step_ = 0;
  std::deque<Worker> workers_;
  BufferPool buffers_;

  Mutex group_;  // taken before a worker's mutex
  std::map<std::string, Gathering> gatherings_ GUARDED_BY(group_);
  uint64_t pass_ GUARDED_BY(group_) = 0, milestone_ GUARDED_BY(group_) = 0;  // the last ones
  std::vector<std::byte> milestone_bytes_ GUARDED_BY(group_);
  std::vector<Asker> ask_standing_ GUARDED_BY(group_);
  std::optional<ServerMark> save_ GUARDED_BY(group_);  // that it goes on from
  struct Stranger {
    std::weak_ptr<Link> link;
    Env::Time since;
  };
  std::map<const Link*, Stranger> strangers_ GUARDED_BY(group_);  // have not said hello yet
  Env::Time spoke_ GUARDED_BY(group_);
  std::vector<float> sums_ GUARDED_BY(group_);
  std::vector<Key> step_keys_ GUARDED_BY(group_);
  std::vector<float> step_grads_ GUARDED_BY(group_);

  mutable std::mutex done_mutex_;
  std::condition_variable done_changed_;
  bool done_ = false;
  Env::TimerId timer_ = 0;
  Mutex team_mutex_;
  ThreadTeam team_ GUARDED_BY(team_mutex_);
};

}  // namespace argosy
