#pragma once

#include <memory>
#include <span>

#include "argosy/base/key.h"
#include "argosy/data/batch.h"
#include "argosy/ps/row_table.h"

namespace argosy {

/// Brings all ranks' row gradients of a step to the rows' owners. A step is begin_step(), put() for
/// each batch, send_keys(), send() in bucket order, settle() and take(). Thread safety: none.
class RowGradients {
 public:
  virtual ~RowGradients() = default;
  /// Clears the previous step.
  virtual void begin_step() = 0;
  virtual void put(size_t table, std::span<const float> grad, float share) = 0;
  /// Multiplies everything put so far.
  virtual void scale(float factor) = 0;
  virtual void send_keys() = 0;
  virtual void send(size_t table) = 0;
  /// `active` ranks had a batch in this step.
  virtual void settle(int active) = 0;

  struct Rows {
    std::span<const Key> keys;  // in rank order; keys may repeat
    std::span<float> grads;
    ps::RowColumns columns = {};  // by key, in sharded mode
  };
  /// Gradients of the rows that this rank updates. Waits for them.
  virtual Rows take(size_t table) = 0;
};

/// The rows of tables, replicated on all ranks or sharded among them.
class RowsOfRanks : public RowGradients {
 public:
  /// Every rank begins a pass; drops what was prepared.
  virtual void begin_pass() = 0;
  /// Batches are fetched in the order they were prepared.
  virtual void prepare(const Batch& batch) = 0;
  /// Puts the rows of the batch's keys into its feeds. Every rank calls it once for each batch of a
  /// step; null: this rank has no more batches in this pass.
  virtual void fetch(Batch* batch) = 0;
  /// All batches of the step have been fetched; gradients are computed next.
  virtual void end_fetches() = 0;
  virtual void infer(Batch& batch) = 0;
};

}  // namespace argosy
