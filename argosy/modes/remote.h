#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argosy/base/mutex.h"
#include "argosy/modes/batch_gradients.h"
#include "argosy/modes/communicator.h"
#include "argosy/modes/server_calls.h"
#include "argosy/modes/states.h"

namespace argosy {

/// The servers' parameters, rows and optimizer state, for the worker that saves and loads.
class RemoteStore final : public TableStore {
 public:
  RemoteStore(const Plan& plan, const WorkerStates& states, ps::Client& client);

  std::vector<NamedTensor> persistables() override;
  void restore(const std::vector<NamedTensor>& values) override;
  std::vector<std::string> sparse_tables() const override;
  SavedTables save(Env& env, const std::string& folder, uint64_t generation) override;
  void load(Env& env, const std::string& folder, std::span<const ps::SavedTable> tables) override;
  TableRows rows(const std::string& table) override;
  size_t shrink(uint32_t unseen) override;
  /// Has every server prepare a cut, and does not wait; the call that it returns does.
  std::function<void()> prepare_cut();
  /// Asks every server for its part of a cut in a folder, behind what this worker has sent so far,
  /// and does not wait; the call that it returns does, once. That throws what a server says.
  std::function<SavedCut()> begin_cut(const std::string& folder);

 private:
  const Plan& plan_;
  const WorkerStates& states_;
  ps::Client& client_;
};

/// Base of modes with servers: pulls the values of a batch and pushes its gradients.
class Remote : public Communicator {
 public:
  std::unique_ptr<Lane> make_lane() override;
  void set_threads(int threads) override;
  void pass(Pass event) override;
  TableStore& store() override { return store_; }
  std::vector<std::string> notes() override;

  /// The pull of a batch, and the keys that its gradients are pushed by.
  struct Flight {
    std::shared_ptr<ps::KeyLists> lists = {};
    std::shared_ptr<ps::Exchange> exchange = {};  // the pull; null: not prepared
    std::shared_ptr<Arrival> arrival = {};        // null: not sent yet
  };
  // Called by lanes:
  void prepare(Flight& own, Batch& batch);
  void fetch(Flight& own, Batch& batch, ps::Purpose purpose);
  void deliver(Batch& batch, const Edge& edge, const Tensor& value);
  void commit(Flight& own, Batch& batch);

 protected:
  Remote(int lookahead, const Plan& plan, const Strategy& strategy, const Wires& wires);

  /// The batch's pull has been built but not sent.
  virtual void prepared(Flight&) {}
  /// Arrival of the batch's values; sends the pull if no commit has carried it.
  virtual std::shared_ptr<Arrival> arrival_of(Flight& own);
  /// Pushes the batch's gradients (add_push). They are read when the exchange is sent.
  virtual void push(Flight& own, Batch& batch) = 0;

  void add_push(ps::Exchange& exchange, const Flight& own, const Batch& batch) const;
  /// At the end of a pass: what was pushed in it is in all servers' journals, so none can lack it
  /// when the job goes on behind the pass.
  void secure();
  /// Checks that no gradient is missing and clips them. One thread at a time: clipped copies are
  /// valid until the next call only.
  void finish_gradients(Batch& batch);
  void note(const ps::Exchange& exchange);

  ps::Client& client() { return *client_; }
  const Plan& plan() const { return plan_; }
  const Strategy& strategy() const { return strategy_; }

 private:
  std::shared_ptr<ps::Exchange> pull_of(Batch& batch, ps::Purpose purpose);

  const Plan& plan_;
  Strategy strategy_;
  std::shared_ptr<ps::Client> client_;
  std::vector<Shape> shapes_;  // by parameter
  WorkerStates states_;
  RemoteStore store_;
  BatchClip clip_{plan_};
  Mutex notes_mutex_;
  uint64_t staleness_ GUARDED_BY(notes_mutex_) = 0;
  uint64_t longest_ GUARDED_BY(notes_mutex_) = 0;
  uint64_t pushes_ GUARDED_BY(notes_mutex_) = 0;
};

}  // namespace argosy
