#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "argosy/fleet/clip.h"
#include "argosy/fleet/communicator.h"
#include "argosy/fleet/server_calls.h"
#include "argosy/fleet/states.h"

namespace argosy {

/// Parameters, rows and optimizer state on servers, for the worker that saves and loads.
class RemoteStore final : public TableStore {
 public:
  RemoteStore(const Plan& plan, const WorkerStates& states, PsClient& client);

  std::vector<NamedTensor> persistables() override;
  void restore(const std::vector<NamedTensor>& values) override;
  std::vector<std::string> sparse_tables() const override;
  SavedTables save(Env& env, const std::string& folder, uint64_t generation) override;
  void load(Env& env, const std::string& folder, std::span<const SavedTable> tables) override;
  TableRows rows(const std::string& table) override;
  size_t shrink(uint32_t unseen) override;

 private:
  const Plan& plan_;
  const WorkerStates& states_;
  PsClient& client_;
};

/// What the modes with servers share: where the values of a batch come from and go to.
class Remote : public Communicator {
 public:
  void set_threads(int threads) override;
  void fetch(Batch& batch, Purpose purpose) override;
  void deliver(Batch& batch, const Edge& edge, const Tensor& value) override;
  void pass(Pass event) override;
  TableStore& store() override { return store_; }
  std::vector<std::string> notes() override;

 protected:
  Remote(int lookahead, const Plan& plan, const Strategy& strategy, const Wires& wires);

  /// What a batch carries from prepare to commit.
  struct Flight final : Carried {
    std::shared_ptr<KeyLists> lists;
    std::shared_ptr<Exchange> exchange;  // that brings its values
    std::shared_ptr<Arrival> arrival;    // null: not sent yet
  };
  static Flight& flight(Batch& batch);

  /// An exchange that will bring the batch its parameters and rows; not sent.
  std::shared_ptr<Exchange> pull_of(Batch& batch, Purpose purpose);
  /// Adds the batch's gradients, which are looked at when the exchange is sent.
  void add_push(Exchange& exchange, Batch& batch) const;
  /// Of the batch's values; sends for them if no commit has taken their pull along.
  virtual std::shared_ptr<Arrival> arrival_of(Batch& batch);
  /// Checks that every gradient is there, and clips them; one thread at a time, as clipped copies
  /// are good until the next call only.
  void finish_gradients(Batch& batch);
  void note(const Exchange& exchange);

  PsClient& client() { return *client_; }
  const Plan& plan() const { return plan_; }
  WorkerStates& states() { return states_; }
  const Strategy& strategy() const { return strategy_; }

 private:
  const Plan& plan_;
  Strategy strategy_;
  std::shared_ptr<PsClient> client_;
  WorkerStates states_;
  RemoteStore store_;
  NormClip clip_{plan_.clip};
  std::mutex notes_mutex_;
  uint64_t staleness_ = 0, longest_ = 0, pushes_ = 0;
};

}  // namespace argosy
