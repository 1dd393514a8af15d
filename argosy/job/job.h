#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/data/file_dataset.h"
#include "argosy/modes/communicator.h"
#include "argosy/modes/serve.h"
#include "argosy/modes/server_calls.h"
#include "argosy/net/transport.h"
#include "argosy/plan/role.h"
#include "argosy/ps/file_queue.h"
#include "argosy/train/metric_tally.h"
#include "argosy/train/trainer.h"
#include "argosy/watch/status_report.h"

namespace argosy {

/// A point that every worker of a job reaches once, in the order of the numbers.
struct Milestone {
  uint32_t number = 0;
  std::string name;

  static Milestone data_are_there() { return {1, "the data are there"}; }
  static Milestone model_is_loaded() { return {2, "the model is loaded"}; }
  // Epochs count from 1, passes of an epoch (SharedFiles) from 0.
  static Milestone begins(int epoch);  // of the first epoch that this job trains
  static Milestone passed(int epoch, uint64_t pass);
  static Milestone passes_on(int epoch, uint64_t pass);  // files are left, the next pass begins
  static Milestone trained(int epoch);
  static std::optional<int> trained_epoch(uint64_t number);  // if it is a trained()
  static Milestone saved(int epoch);
};

struct JobOptions {
  /// The folder in which the job saves its epochs, if known in advance. A server keeps its notes of
  /// saves there, otherwise in Role::notes.
  std::string saves = {};
  /// Journals and saves of an earlier job in that folder count too; Role::resume says so as well,
  /// of journals.
  bool resume = false;
  /// Of a server, instead of what its role says.
  std::string durability = {}, log_path = {};
  std::FILE* out = stdout;
};

/// This process in its job: its role, its wires to the others, the meetings of all, and what it
/// finds after a restart. YAML configurations, Fleet and Python are front ends of it. Without a job
/// every call returns at once. The environment must outlive it. Not thread-safe.
class Job {
 public:
  Job(Env& env, Role role, JobOptions options);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  Env& env() const { return env_; }
  const Role& role() const { return role_; }
  const JobOptions& options() const { return options_; }
  bool shared() const { return role_.kind != RoleKind::local; }
  bool first() const { return role_.first_worker(); }
  /// True for ranks, which train together without servers.
  bool collective() const { return role_.is_rank(); }
  /// Prints a line to the job's output and flushes it.
  void say(const std::string& line) const;

  /// The ranks, or this process alone; the first call meets them.
  comm::Group& group(const CollectiveStrategy& strategy = {});
  /// Connects to the servers or ranks that hold the plan; called once. A restarted worker waits for
  /// all others, and learns how far the job is, and so does one that resumes.
  Wires connect(const Plan& plan, const Strategy& strategy);
  /// Reports this worker's activity to the launcher while it lives. Call it after connect().
  std::unique_ptr<StatusReport> report(const Activity& activity) const;

  /// The last milestone that was complete when this process connected, 0 if none.
  uint64_t standing() const { return standing_.milestone; }
  bool is_over(const Milestone& at) const { return at.number <= standing_.milestone; }
  /// The last milestone that is complete now.
  uint64_t ask_standing() const;
  /// Whether it goes on from journals of an earlier run, if there are some.
  bool resumes() const { return options_.resume || role_.resume; }
  /// How far earlier incarnations of this worker have pushed its data.
  const Trained& trained() const { return trained_; }
  /// Whether all processes of the job were lost and this one goes on from the servers' journals.
  bool goes_on_from_journals() const { return from_journals_; }

  /// The first worker has loaded a cut, with these batches of each worker.
  void resume(const std::vector<Trained>& trained);
  /// How far the servers have this worker's data by now, which trained() is from then on.
  const Trained& ask_trained();

  /// Waits for every worker and returns all workers' bytes. If the milestone is already complete:
  /// at once, with nothing unless the server still has it.
  std::vector<std::vector<std::byte>> meet(const Milestone& at, std::span<const std::byte> mine);
  /// Waits for every worker; returns at once if the milestone is already complete.
  void barrier(const Milestone& at);
  /// Returns worker 0's text, which is not empty, to all. Throws IoError if that worker is gone.
  std::string from_first(const Milestone& at, const std::string& text);
  /// Merges the metrics of all workers into `metrics`.
  void join(const Milestone& at, MetricTally& metrics);

  /// The n-th call of this worker meets the n-th of every other. Returns the bytes of all in worker
  /// order; a call that was complete before this process started returns what it returned then.
  std::vector<std::vector<std::byte>> gather(const std::string& name,
                                             std::span<const std::byte> mine);
  /// Whether the next `gathers` calls of gather() were complete when this process connected.
  bool are_over(uint64_t gathers) const { return gathers_ + gathers <= standing_.gather; }
  /// Skips gathers that are complete, if nobody needs their results.
  void skip(uint64_t gathers) { gathers_ += gathers; }

  /// This worker's share of the files, perhaps none. If there are fewer files than ranks, ranks
  /// share the batches of all files instead.
  std::vector<std::string> share(std::vector<std::string> all);
  /// A queue of these files, from which workers take as they get free until every file is trained;
  /// see job_files.h. `epoch` returns the current epoch, from 1.
  std::shared_ptr<SharedFiles> queue(std::vector<std::string> all, ps::Stealing stealing,
                                     std::function<int()> epoch);
  /// This process' share of the batches of its files.
  Share batches() const { return batches_; }
  /// Lists epochs trained without some workers, and the files they missed; "" if none.
  std::string untrained() const;

 private:
  void find_standing();
  void find_trained();
  bool can_catch_up(uint32_t server, const Trained& has, const Trained& most) const;
  bool connected() const { return client_ != nullptr || group_ != nullptr; }

  Env& env_;
  const Role role_;
  const JobOptions options_;
  std::unique_ptr<Transport> transport_;
  std::shared_ptr<ps::Client> client_;
  std::shared_ptr<comm::Group> group_;
  ps::verbs::Standing::Result standing_;
  Trained trained_;
  bool steps_together_ = false;  // those of all workers
  bool from_journals_ = false;
  std::string lost_;      // with an earlier incarnation, once this one is back
  uint64_t gathers_ = 0;  // so far
  Share batches_;
  std::vector<std::string> dealt_;  // files, to all workers
  bool queued_ = false;             // files are, instead
};

/// How this mode treats batches that an earlier incarnation of this worker has pushed ("are
/// computed and not pushed"), and what it loses with a process.
std::string replay_text(const Strategy& strategy);

/// Plan, then wires, then a trainer over them, which reports its progress to the launcher.
std::unique_ptr<Trainer> make_trainer(Job& job, const Model& model, TrainerOptions options);

/// Serves this process' role until all workers have left, or until SIGTERM or SIGINT. A restarted
/// server goes on from its journal, and so does one of a job that resumes, if all servers have one.
/// Without one it starts from the newest save of its job instead of options.before, and throws
/// IoError if there is none: fresh values in the middle of training would be worse than no job.
void serve(const Job& job, const ps::Placement& placement, ServeOptions options);

}  // namespace argosy
