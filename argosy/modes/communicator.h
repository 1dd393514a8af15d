#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/base/trained.h"
#include "argosy/data/batch.h"
#include "argosy/modes/table_store.h"
#include "argosy/plan/plan.h"
#include "argosy/plan/strategy.h"
#include "argosy/ps/row_table.h"

namespace argosy {

namespace comm {
class Group;
}
namespace ps {
class Client;
}
class SumOverRanks;
class ShardedStore;

/// Events of a worker's pass over the data.
enum class Pass : uint8_t {
  loaded,       // before the first pass: worker 0 has loaded a model
  begin,        // before its first batch
  thread_done,  // one of Strategy::threads has run out of batches
  end,          // after the last batch, when all threads are done
  leave,        // no other pass will follow
};

/// Carries one batch at a time: brings it its parameters and takes its gradients away. It holds
/// what the mode keeps of the batch between the calls, which are
///   1. prepare, once it has been read. Optional: fetch does it otherwise.
///   2. fetch, which puts parameters, states and the rows of its keys into batch.feeds.
///   3. deliver for each gradient and each state's next value, as they become final.
///   4. commit, once all are delivered; for a replayed batch it keeps the states only. Then the
///      lane is free for the next batch.
/// The batch belongs to the caller and must not move from the first call to the last. Thread
/// safety: none; each thread has its own lanes.
class Lane {
 public:
  virtual ~Lane() = default;
  virtual void prepare(Batch& batch) = 0;
  /// May block. For inference it is the last call.
  virtual void fetch(Batch& batch, ps::Purpose purpose = ps::Purpose::training) = 0;
  /// The tensor must stay valid until commit returns.
  virtual void deliver(Batch& batch, const Edge& edge, const Tensor& value) = 0;
  virtual void commit(Batch& batch) = 0;
};

/// A lane that holds a State and passes it to the mode with each call.
template <class Owner, class State>
class LaneOf final : public Lane {
 public:
  template <class... Args>
  explicit LaneOf(Owner& owner, Args&&... args)
      : owner_(owner), state_{std::forward<Args>(args)...} {}
  void prepare(Batch& batch) override { owner_.prepare(state_, batch); }
  void fetch(Batch& batch, ps::Purpose purpose) override { owner_.fetch(state_, batch, purpose); }
  void deliver(Batch& batch, const Edge& edge, const Tensor& value) override {
    owner_.deliver(batch, edge, value);
  }
  void commit(Batch& batch) override { owner_.commit(state_, batch); }

 private:
  Owner& owner_;
  State state_;
};

/// Extra facilities a rank's trainer uses.
struct RankDuties {
  uint64_t rank = 0, ranks = 1;
  /// By parameter: where to compute its gradient, so that deliver need not copy it; an empty tensor
  /// or none: anywhere.
  std::vector<Tensor> places = {};
  SumOverRanks* sum = nullptr;      // for ops that need the batches of other ranks
  ShardedStore* sharded = nullptr;  // the store in sharded mode

  /// Global batch number of this rank's batch in `step`, from 1.
  uint64_t batch_number(uint64_t step) const { return (step - 1) * ranks + rank + 1; }
};

/// A mode of training at work; each is a file of communicators/. It relies on its callers:
///   1. Up to Strategy::threads threads have lookahead() + 1 lanes each, and prepare batches in the
///      order in which they fetch them.
///   2. A thread prepares batch t + 1 before it commits t, and t + lookahead() before it fetches t,
///      as long as there are any. So the push of one batch carries the pull of another, and each
///      batch costs one exchange per server; tests count them.
///   3. drain, pass and store are called while no lane is between fetch and commit.
class Communicator {
 public:
  virtual ~Communicator() = default;
  /// How many batches to prepare ahead of the one being computed.
  int lookahead() const { return lookahead_; }
  /// How far servers have the pushes of earlier incarnations of this worker: batches up to there
  /// are computed but not pushed (Batch::replayed).
  const Trained& replays() const { return replays_; }
  /// Likewise for what an earlier job has pushed. Before the first pass.
  void replay(const Trained& trained) { replays_ = std::max(replays_, trained); }
  /// The next pass has at least number passes + 1, in the count that all workers share.
  void skip_passes(uint64_t passes) { passes_ = std::max(passes_, passes); }

  /// The lane must not outlive the communicator.
  virtual std::unique_ptr<Lane> make_lane() = 0;
  /// Between passes: how many threads compute from now on, at most Strategy::threads.
  virtual void set_threads(int threads) = 0;
  /// Returns once everything committed has been applied.
  virtual void drain() = 0;
  virtual void pass(Pass event) = 0;
  virtual TableStore& store() = 0;
  /// Remarks on the last pass for the user, one per line.
  virtual std::vector<std::string> notes() = 0;
  /// Only ranks have any; they do not change.
  virtual RankDuties duties() { return {}; }

 protected:
  explicit Communicator(int lookahead, const Trained& replays = {})
      : lookahead_(lookahead), replays_(replays) {}
  uint64_t next_pass() { return ++passes_; }
  uint64_t this_pass() const { return passes_; }

 private:
  int lookahead_;
  Trained replays_;
  uint64_t passes_ = 0;
};

/// The connections of a communicator.
struct Wires {
  std::shared_ptr<ps::Client> servers = {};
  std::shared_ptr<comm::Group> group = {};  // the ranks that train together
  Trained replays = {};                     // for Communicator::replays()
  ps::TableHome home = {};                  // of the tables in this process
};
/// Between ranks.
inline Wires wires_of(std::shared_ptr<comm::Group> group) {
  return {.servers = {}, .group = std::move(group), .replays = {}};
}

/// By strategy.mode. The plan must outlive it. Throws ConfigError for an unknown mode or one whose
/// wires are missing.
std::unique_ptr<Communicator> make_communicator(const Plan& plan, const Strategy& strategy,
                                                const Wires& wires = {});

}  // namespace argosy
