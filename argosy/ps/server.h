#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/function_ref.h"
#include "argosy/base/mutex.h"
#include "argosy/base/thread.h"
#include "argosy/net/transport.h"
#include "argosy/ps/exchange_job.h"
#include "argosy/ps/file_queue.h"
#include "argosy/ps/journal.h"
#include "argosy/ps/lanes.h"
#include "argosy/ps/ledger.h"
#include "argosy/ps/meetings.h"
#include "argosy/ps/placement.h"
#include "argosy/ps/ps_metrics.h"
#include "argosy/ps/roster.h"
#include "argosy/ps/shard.h"
#include "argosy/ps/step_group.h"
#include "argosy/ps/verb.h"
#include "argosy/ps/wire.h"

namespace argosy::ps {

struct ServerOptions {
  uint32_t index = 0;  // of this server
  uint32_t workers = 1;
  std::string job = "default";
  /// True: a step ends when every worker has pushed; gradients are averaged in worker order and
  /// applied once. False: each push is a step.
  bool sync = false;
  /// Threads that work on rows and parameters, one per part. 1: the thread that delivers an
  /// exchange does it, since to hand it over costs more than it gains. 0: likewise, and nothing
  /// else has a thread of its own, as in a simulation.
  size_t threads = 0;
  RosterLimits limits = {};
  Env::Duration patience = Tolerance().patience;  // longer waits are logged
  std::function<void(const std::string&)> log = {};
  /// Called before a save begins, so that a restarted process can find it.
  std::function<void(const std::string& folder, uint64_t generation)> on_save = {};
  std::shared_ptr<Metrics> metrics = {};  // of the process; none: the server has its own
  /// What is applied goes there, and workers keep what is not there yet; none: a server that is
  /// lost comes back with its last save.
  std::optional<JournalOptions> journal = {};
  /// Called when the journal begins, with the number of the run that it is of, 0 until worker 0
  /// has come; and with nothing when one that was offered is gone on with.
  std::function<void(std::optional<uint64_t> run)> on_settled = {};
  /// Where tables keep rows that are not in memory, for this server alone; "": nowhere.
  std::string table_folder = {};
  /// Runs saves and loads; none: they run inline.
  std::function<void(std::function<void()>)> background = {};
};

/// Workers that a server waits for.
struct ServerWait {
  enum class Until : uint8_t { step_ended, gathered, all_here };
  Until until = Until::step_ended;
  std::string what = {};  // "step 412", "gather the epoch is saved", "hello"
  std::vector<uint32_t> workers = {};
  std::vector<uint32_t> held = {};  // those whose answers are held until then
  Env::Time since = {};
};

/// What a server is waiting for and working on, exchanges aside.
struct ServerActivity {
  std::vector<ServerWait> waits = {};
  struct Task {
    std::string verb = {};  // in progress
    Env::Time since = {};
  };
  std::vector<Task> tasks = {};
};

/// Holds its part of a placement and serves workers: exchanges (apply the pushes, then answer the
/// pulls), and the verbs of verbs/. A retry is answered but never applied twice. A client can break
/// its own link, never the server.
///
///   link -> session -> ledger (taken once?) -> step group (sync) -> lanes -> shard -> reply
///                   -> verb -> meetings, shard
///
/// Roster (who is alive), ledger (what was applied), step group (who ends a step together),
/// meetings (who waits for whom) and file queue (who reads what) are state machines without locks,
/// behind one mutex held briefly; the threads of the lanes work on rows and parameters. All events
/// come from links and timers. Thread safety: full.
class Server : public std::enable_shared_from_this<Server> {
 public:
  static std::shared_ptr<Server> make(Env& env, Placement placement, ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// For Transport::listen; the transport must not outlive the environment.
  Transport::OnAccept acceptor();
  /// True once every worker has left or stayed away for too long, or one has sent stop.
  bool done() const;
  /// Why it had to end before its workers did; "": it had not.
  std::string failure();
  /// Returns when done, or when `stop` (polled ten times a second) says so.
  void wait(const std::function<bool()>& stop = {});
  /// Waits until all links are closed, so that the last answers arrive.
  void wait_for_goodbyes(Env::Duration at_most);

  Env& env() { return env_; }
  Shard& shard() { return shard_; }
  const Metrics& metrics() const { return *options_.metrics; }
  uint64_t step() const { return step_; }
  /// The step of the save that was loaded.
  void set_step(uint64_t step) { step_ = step; }
  /// Whether it offers to go on from its journal and does not know yet whether it will.
  bool offers();
  /// This server replaces a lost one, from the save with this mark made after `milestone`. It logs
  /// for each worker what was lost.
  void goes_on_from(ServerMark mark, uint64_t milestone);
  /// Cheap: it never blocks the server.
  ServerActivity activity();

  // For verbs:
  /// Runs `task` while no exchange is applied and nothing is collected for the journal. Waits.
  void alone(FunctionRef<void()> task);
  /// Runs `task` once everything applied so far is in the journal; without one, at once.
  void when_durable(std::function<void()> task);
  /// Performs the rest of a verb, and answers it, then.
  template <class Perform>
  auto once_durable(const Asker& asker, Perform perform) -> std::optional<decltype(perform())> {
    if (journal_ == nullptr) return perform();
    when_durable([self = shared_from_this(), asker, perform] {
      self->answer_well(asker, encode_fields(perform()));
    });
    return std::nullopt;
  }
  void say(const std::string& text) const;
  /// It is about to leave, as the next record of the journal says.
  void begin_leaving(uint32_t worker);
  void leave(uint32_t worker);
  void pause(uint32_t worker, uint64_t pass);
  template <class V>
  void meet(const Asker& asker, const V& verb) {
    {
      const Lock lock(mutex_);
      ledger_[asker.worker].asked.meets = true;
      meetings_.come(asker, verb, env_.now());
    }
    settle_meetings();
  }
  /// Answers when the cut is on the disk, or at once where there can be none.
  std::optional<verbs::Cut::Result> cut(const Asker& asker, const verbs::Cut& verb);
  /// Answers when a cut will add little more than what has changed since the last one.
  void prepare_cut(const Asker& asker);
  void ask_standing(const Asker& asker, const std::string& series);
  Trained trained(uint32_t worker);
  /// What was loaded has these batches of the workers, none of which has pushed yet.
  void resume(std::vector<Trained> trained);
  ServerMark mark();
  /// Calls ServerOptions::on_save.
  void saves(const std::string& folder, uint64_t generation) const;
  verbs::Missed::Result missed();
  template <class Task>
  auto with_files(Task task) {
    const Lock lock(mutex_);
    return task(files_);
  }
  void stop();

 private:
  class Session;   // server_session.h
  struct Refused;  // server_session.h

  Server(Env& env, Placement placement, ServerOptions options);
  void arm_timer();
  void tick();
  void open_journal();
  bool find_offers() REQUIRES(mutex_);
  bool is_settled(Session& session, const Hello& hello);
  void settle(uint64_t where, uint64_t run);
  void find_run(const Hello& hello);
  void go_on_at_offer() REQUIRES(mutex_);
  void begin_records();
  void want_record();
  PastMeetings past_meetings() const REQUIRES(mutex_);
  void arm_journal_timer();
  void run_journal(const std::stop_token& stop);
  bool record_is_due() REQUIRES(mutex_);
  void commit();
  void record_written(const JournalState& state);
  struct CutUnderWay {
    Asker asker;
    verbs::Cut verb;
    ServerMark mark = {};
    std::vector<uint64_t> rows = {};  // by table
  };
  bool cut_is_due() REQUIRES(mutex_);
  bool waits_for_cut(ExchangeJob& job) REQUIRES(mutex_);
  void make_cut(CutUnderWay cut);
  void finish_cut(CutUnderWay& cut, SealedLog sealed);
  void give_up_cut(std::optional<CutUnderWay>& cut, const std::string& why);
  void answer_gathered();
  void refuse(const Asker& asker, const std::string& why);
  void job_done();
  void end_without_journal(Env::Time now);
  void welcome_when_durable(uint32_t worker, uint64_t sequence, std::function<void()> send);
  void greet(Session& session, const InFrame& frame);
  void check_hello(const Session& session, const Hello& hello) const;
  void heard(const Session& session);
  void lost(Session& session, const std::string& reason);
  void answer_ping(Session& session, uint64_t id);

  void take_exchange(Session& session, InFrame frame);
  enum class Then : uint8_t { next, record };
  void add_job(uint32_t lane, std::vector<std::shared_ptr<TakenExchange>> exchanges,
               uint64_t steps_before, Then then = Then::next) REQUIRES(mutex_);
  uint64_t applied_step() const REQUIRES(mutex_);
  void post_jobs();
  void end_step_if_complete();
  void exchanged(ExchangeJob& job, const std::string& trouble);
  void turn_away(uint32_t worker, const std::string& why);

  void take_verb(Session& session, const InFrame& frame);
  void answer(const Asker& asker, SharedResult result);
  void answer_well(const Asker& asker, std::vector<std::byte> result);
  void settle_meetings();
  void end_if_all_are_gone();

  void begin_anew(const Hello& hello) REQUIRES(mutex_);
  std::string losses(const Hello& hello) const REQUIRES(mutex_);
  std::vector<ServerWait> find_waits() REQUIRES(mutex_);
  std::string waits_for(Env::Duration at_least);

  Env& env_;
  const ServerOptions options_;
  ServerMetrics metrics_;
  const uint64_t incarnation_;
  const std::map<std::string, Verb> verbs_;
  Shard shard_;
  std::atomic<uint64_t> step_ = 0;
  BufferPool buffers_;
  StepMemory memory_;

  Mutex mutex_;
  Roster roster_ GUARDED_BY(mutex_);
  Ledger ledger_ GUARDED_BY(mutex_);
  StepGroup group_ GUARDED_BY(mutex_);
  Meetings meetings_ GUARDED_BY(mutex_);
  FileQueue files_ GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Link>> links_ GUARDED_BY(mutex_);  // by worker; null: none
  struct Posting {
    uint32_t lane;
    std::shared_ptr<ExchangeJob> job;
    uint64_t steps_before = 0;
    bool recorded = false;  // before anything behind it is posted
  };
  std::deque<Posting> to_post_ GUARDED_BY(mutex_);  // in the order taken
  bool posting_ GUARDED_BY(mutex_) = false;
  size_t jobs_ GUARDED_BY(mutex_) = 0;         // posted and not done
  bool alone_ GUARDED_BY(mutex_) = false;      // nothing is posted
  bool recording_ GUARDED_BY(mutex_) = false;  // likewise, until a record is collected
  CondVar at_rest_;
  struct Stranger {
    std::weak_ptr<Link> link;
    Env::Time since;
  };
  std::map<const Link*, Stranger> strangers_ GUARDED_BY(mutex_);  // have not said hello yet
  std::optional<ServerMark> save_ GUARDED_BY(mutex_);             // the save it started from
  const Env::Time started_;
  Env::Time spoke_ GUARDED_BY(mutex_);

  mutable Mutex done_mutex_;
  CondVar done_changed_;
  bool done_ GUARDED_BY(done_mutex_) = false;
  Env::TimerId timer_ = 0;
  // Of the journal; the pointer does not change once the server is made.
  std::unique_ptr<Journal> journal_;
  std::vector<uint64_t> durable_ GUARDED_BY(mutex_);  // by worker
  std::vector<bool> leaving_ GUARDED_BY(mutex_);      // the same
  uint64_t meetings_written_ GUARDED_BY(mutex_) = 0;  // their version in the journal
  bool progressed_ GUARDED_BY(mutex_) = false;        // something was applied since the last record
  Env::Time recorded_ GUARDED_BY(mutex_);             // when it was begun
  Env::Time led_ GUARDED_BY(mutex_);  // when one was begun at a step that all servers record
  enum class Settling : uint8_t { offers, begun, over };
  Settling settling_ GUARDED_BY(mutex_) = Settling::over;
  uint64_t settled_ GUARDED_BY(mutex_) = settling::kNowhere;
  uint64_t run_ GUARDED_BY(mutex_) = 0;                              // 0: not known yet
  std::vector<std::shared_ptr<Link>> unsettled_ GUARDED_BY(mutex_);  // have got offers
  std::vector<std::function<void()>> when_durable_ GUARDED_BY(mutex_);
  std::optional<Env::Time> journal_trouble_ GUARDED_BY(mutex_);  // since then nothing was written
  Env::Time journal_spoke_ GUARDED_BY(mutex_);
  std::string failure_ GUARDED_BY(mutex_);
  std::optional<CutUnderWay> cut_ GUARDED_BY(mutex_);  // until it is collected
  std::vector<uint64_t> posted_ GUARDED_BY(mutex_);    // by worker: the last exchange
  std::vector<Asker> gathering_ GUARDED_BY(mutex_);    // they wait for that
  bool gathers_ GUARDED_BY(mutex_) = false;            // the journal is to begin with it
  CondVar journal_wanted_;
  Env::TimerId journal_timer_ = 0;
  Lanes lanes_;
  Thread journal_thread_;  // last, so that it ends first, then those of the lanes
};

}  // namespace argosy::ps
