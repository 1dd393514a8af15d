#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "argosy/data/batch.h"
#include "argosy/data/batcher.h"

namespace argosy {

/// An array fed by name: axis 0 is the batch or, with offsets, the concatenated values of all
/// instances.
struct Fed {
  Tensor values;
  std::vector<uint32_t> offsets = {};  // where each instance's values start, and the end
};
using FedByName = std::map<std::string, Fed, std::less<>>;
using SlotLimits = std::map<std::string, uint64_t, std::less<>>;

/// Makes batches of arrays: ids that tables are looked up by become unique keys and row numbers,
/// all else is passed on unchanged. Thread safety: none.
class FeedBatcher {
 public:
  /// Ids of a slot that are `limits` of it and above are refused.
  explicit FeedBatcher(BatchLayout layout, SlotLimits limits = {});

  /// Replaces what the previous fill put into the batch. Throws ConfigError naming a feed that is
  /// missing or does not fit, DataError for an id beyond its limit.
  void fill(const FedByName& feeds, Batch& batch);

 private:
  void fill_slots(const FedByName& feeds, Batch& batch);
  SlotSpec slot_of(const std::string& name, const Fed& fed) const;
  bool is_slot(const std::string& name) const;

  BatchLayout indices_;  // without the columns
  SlotLimits limits_;
  std::vector<std::string> slots_;
  std::optional<Batcher> batcher_;  // these two for slots of the widths that came last
  std::optional<Columns> columns_;
  std::vector<std::string> fed_;  // feeds that the previous fill put into the batch
};

}  // namespace argosy
