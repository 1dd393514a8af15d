#pragma once

#include <memory>
#include <string>
#include <vector>

#include "argosy/modes/communicator.h"
#include "argosy/modes/local_store.h"
#include "argosy/modes/states.h"

namespace argosy {

/// Base of modes whose parameters and tables live in this process. A single thread computes on the
/// parameters in place; several take copies, as others may update them meanwhile.
class InProcess : public Communicator {
 public:
  std::unique_ptr<Lane> make_lane() override;
  void drain() override {}
  TableStore& store() override { return store_; }
  std::vector<std::string> notes() override { return {}; }

  LocalStore& tables() { return store_; }

  /// Tickets of a batch's rows, by table, so that commit need not look them up again.
  struct Located {
    std::vector<ps::Ticket> tickets = {};
  };
  // Calls of lanes:
  virtual void prepare(Located&, Batch&) {}
  virtual void fetch(Located& own, Batch& batch, ps::Purpose purpose);
  virtual void deliver(Batch& batch, const Edge& edge, const Tensor& value) = 0;
  virtual void commit(Located& own, Batch& batch) = 0;

 protected:
  explicit InProcess(const Plan& plan, const ps::TableHome& home, int lookahead = 0);

  const Plan& plan() const { return plan_; }
  WorkerStates& states() { return states_; }
  /// Puts the rows of the batch's keys into its feeds.
  virtual void fetch_rows(Located& own, Batch& batch, ps::Purpose purpose);
  void set_shared(bool shared);

 private:
  void fetch_copy(size_t parameter, Tensor& feed);

  const Plan& plan_;
  bool shared_ = false;  // several threads compute
  WorkerStates states_;
  LocalStore store_;
};

/// The local mode, for modes built on it.
std::unique_ptr<InProcess> train_in_process(const Plan& plan, const Strategy& strategy,
                                            const ps::TableHome& home);

/// Reads the rows of a batch's keys from all tables into its feeds; fills tickets by table.
void fetch_located(const Plan& plan, LocalStore& store, Batch& batch, ps::Purpose purpose,
                   std::vector<ps::Ticket>& tickets);

}  // namespace argosy
