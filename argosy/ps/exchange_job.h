#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argosy/base/mutex.h"
#include "argosy/ps/lanes.h"
#include "argosy/ps/ledger.h"
#include "argosy/ps/row_sums.h"
#include "argosy/ps/shard.h"
#include "argosy/ps/wire.h"

namespace argosy::ps {

/// An exchange from its arrival at the server until it is answered.
struct TakenExchange {
  uint32_t worker = 0;
  uint64_t incarnation = 0;  // of the worker
  InFrame frame = {};
  ExchangeView view = {};  // over the frame
  bool applies = true;     // false: already applied, only its pulls are answered
  std::shared_ptr<KeptLists> lists = {};
  struct Push {
    KeptLists::List* kept = nullptr;   // of `lists`; null: the keys came with the push
    std::vector<Ticket> carried = {};  // of those, by table, then by part
  };
  std::vector<Push> pushes = {};      // by list of the view
  KeptLists::List* pulled = nullptr;  // tickets of its pull; null: it pulls no rows
  KeptLists::List inference = {};     // what `pulled` points to if no list is kept
  uint64_t staleness = 0;  // steps from the pulls of the pushed lists to this push, in all
  std::shared_ptr<Buffer> reply = {};  // once done: a ReplyHead and what was pulled
};

/// Parses an exchange and finds its lists. Throws DataError if it cannot be applied; nothing has
/// changed then.
std::shared_ptr<TakenExchange> take_exchange(const Shard& shard, InFrame frame);
/// Called before anything is applied, so that an exchange is applied whole or not at all.
void check_lists(const Shard& shard, TakenExchange& exchange);

/// Buffers for steps that average several workers, reused from step to step. Thread safety: full.
class StepMemory {
 public:
  struct Part {
    std::vector<RowSums> sums;    // by table
    std::vector<Ticket> tickets;  // by table
  };
  struct Step {
    std::vector<Part> parts;
    std::vector<float> gradients;  // of all slices
  };
  std::unique_ptr<Step> take();
  void give_back(std::unique_ptr<Step> step);

 private:
  Mutex mutex_;
  std::vector<std::unique_ptr<Step>> spare_ GUARDED_BY(mutex_);
};

/// One step on a shard: applies the pushes of one exchange, or the mean of several in worker order
/// (the bits do not depend on who came first), then answers the pulls. Each part waits for its own
/// rows only.
class ExchangeJob final : public PartedWork {
 public:
  /// `trouble` is "" or the error. After an error the push may be half applied: never retry it.
  using OnDone = std::function<void(ExchangeJob& job, const std::string& trouble)>;

  /// The shard, the pools and whatever on_done uses must outlive it.
  ExchangeJob(Shard& shard, BufferPool& buffers, StepMemory& memory,
              std::vector<std::shared_ptr<TakenExchange>> exchanges, uint64_t step, OnDone on_done);
  ~ExchangeJob() override;

  bool advance(size_t part, const Resume& resume) override;
  void finish() override;

  std::vector<std::shared_ptr<TakenExchange>>& exchanges() { return exchanges_; }
  uint64_t step() const { return step_; }
  /// Whether threads are worth waking for it.
  Lanes::Size size() const { return size_; }

 private:
  /// How far a part is.
  struct Progress {
    bool begun = false;
    size_t pushed = 0, pulled = 0;  // table operations done
  };
  bool go_on(size_t part, const Resume& resume);
  void begin(size_t part);
  void begin_mean(size_t part);
  /// `keys` and `columns` by key set.
  void locate(size_t table, std::span<const std::span<const Key>> keys,
              std::span<const RowColumns> columns, size_t part, Ticket& ticket);
  void locate_pulls(size_t part);
  bool push_rows(size_t part, const Resume& resume);
  bool pull_rows(size_t part, const Resume& resume);
  bool wait_for(RowTable& table, Ticket& ticket, const Resume& resume);
  Ticket& push_ticket(TakenExchange::Push& push, size_t table, size_t part);
  Ticket& pull_ticket(TakenExchange& exchange, size_t table, size_t part);
  std::span<float> reply_floats(const TakenExchange& exchange) const;
  void prepare_reply(TakenExchange& exchange, BufferPool& buffers);
  void fail_with(const std::string& why);

  Shard& shard_;
  StepMemory& memory_;
  std::vector<std::shared_ptr<TakenExchange>> exchanges_;
  const uint64_t step_;
  OnDone on_done_;
  Lanes::Size size_ = Lanes::Size::small;
  std::vector<Progress> progress_;          // by part
  std::unique_ptr<StepMemory::Step> mean_;  // of several exchanges; null: there is one
  Mutex mutex_;
  std::string trouble_ GUARDED_BY(mutex_);
};

}  // namespace argosy::ps
