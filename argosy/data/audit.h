#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "argosy/data/batch.h"

namespace argosy {

/// Proves that every instance of an epoch was delivered exactly once. Thread safety: none.
class Audit {
 public:
  /// Throws Error for an instance that was delivered before.
  void delivered(const std::vector<Origin>& origins);
  /// A reader found this instance.
  void found(const std::vector<Origin>& origins);
  /// Throws Error if one was found and not delivered; else says how many there were.
  std::string finish(size_t left_out) const;

 private:
  using Lines = std::vector<bool>;
  std::map<uint32_t, Lines> delivered_;
  uint64_t n_delivered_ = 0, n_found_ = 0;
};

}  // namespace argosy
