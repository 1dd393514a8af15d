#pragma once

#include <memory>
#include <vector>

#include "argosy/base/mutex.h"
#include "argosy/ps/gradient.h"
#include "argosy/ps/initializer.h"
#include "argosy/ps/rule.h"
#include "argosy/ps/schedule.h"
#include "argosy/ps/table.h"

namespace argosy {

/// A dense parameter in blocks of spec.dim floats, keys 0, 1, ... The last block may be short: in
/// the spans of pull, push and assign its row still takes dim floats, of which the tail is zero on
/// pull and ignored otherwise. Weights lie in one piece, so that a worker in the same process
/// computes on them without a copy. Keys, sizes or steps that do not fit throw DataError and
/// change nothing.
class DenseTable final : public Table {
 public:
  explicit DenseTable(TableSpec spec);

  void pull(std::span<const Key> keys, std::span<float> rows) override;
  void push(std::span<const Key> keys, std::span<const float> grads, uint64_t step) override;
  void assign(std::span<const Key> keys, std::span<const float> rows) override;
  size_t size() const override { return blocks_; }
  void save(ByteSink& out) const override;
  void load(ByteSource& in) override;

  const TableSpec& spec() const { return spec_; }
  /// The whole parameter. The span stays good; its content may be read or written only while no
  /// other method runs.
  std::span<float> weights() { return {weights_.get(), spec_.elements}; }
  /// Optimizer state, one piece per block. The same care applies.
  std::span<float> state() { return {state_.get(), state_size_}; }
  /// push() and pull() of every block at once, without keys.
  void push_all(std::span<const float> grads, uint64_t step);
  void pull_all(std::span<float> weights) const;
  void assign_all(std::span<const float> weights);
  /// Weights, then the state.
  void copy_out(std::span<float> weights, std::span<float> state) const;
  void copy_in(std::span<const float> weights, std::span<const float> state);
  size_t state_size() const { return state_size_; }

 private:
  using Floats = std::unique_ptr<float[], void (*)(float*)>;
  struct Block {
    std::span<float> weights, state;
  };
  static Floats aligned_floats(size_t n);  // zeros
  Block block(Key key) const;
  void check_rows(std::span<const Key> keys, size_t floats) const;
  Update update(uint64_t step) const;
  void apply(const Block& block, std::span<const float> grad, const Update& update)
      REQUIRES(mutex_);

  TableSpec spec_;
  std::unique_ptr<Rule> rule_;
  Schedule schedule_;
  GradientPolicy policy_;
  size_t blocks_, state_per_block_, state_size_;
  mutable Mutex mutex_;  // guards the content of weights_ and state_
  Floats weights_, state_;
  std::vector<float> scratch_ GUARDED_BY(mutex_);  // a gradient being clipped or decayed
};

}  // namespace argosy
