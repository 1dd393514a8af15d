#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "argosy/data/batcher.h"
#include "argosy/train/trainer.h"

namespace argosy {

/// What is fed by name: an array, whose axis 0 is the batch, or with offsets the values of all
/// instances one after the other.
struct Fed {
  Tensor values;
  std::vector<uint32_t> offsets = {};  // where each instance's values start, and the end
};
using FedByName = std::map<std::string, Fed, std::less<>>;
using SlotLimits = std::map<std::string, uint64_t, std::less<>>;

/// Runs a trainer's program on arrays, as Executor.run of Paddle does, for the values of any of its
/// variables. The trainer outlives it. Not thread-safe.
class Session {
 public:
  /// Ids of a slot that are `limits` of it and above are refused.
  explicit Session(Trainer& trainer, SlotLimits limits = {});

  /// One batch of training (Purpose::training) or of inference. The values are copies. Throws
  /// ConfigError naming the variable that is missing or does not fit.
  std::vector<Tensor> run(const FedByName& feeds, std::span<const VarId> fetch, Purpose purpose);

 private:
  void fill(const FedByName& feeds);
  void fill_slots(const FedByName& feeds);
  SlotSpec slot_of(const std::string& name, const Fed& fed) const;

  Trainer& trainer_;
  SlotLimits limits_;
  std::vector<std::string> slots_;  // that tables are looked up by
  std::optional<Batcher> batcher_;
  std::optional<Columns> columns_;
  Batch batch_;
  std::vector<std::string> fed_;  // what the last run has put into the batch
};

}  // namespace argosy
