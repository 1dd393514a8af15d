#pragma once

#include <memory>
#include <vector>

#include "argosy/ps/client.h"

namespace argosy {

/// Merges the gradients of several batches into one push: dense ones are summed, row gradients stay
/// with their batch's keys. Thread safety: none.
class Merged {
 public:
  /// Copies the pushes of an exchange.
  void add(const ps::Exchange& one);
  int batches() const { return batches_; }
  /// The spans refer to this object, which must not change until the exchange has been sent.
  void put_into(ps::Exchange& exchange) const;
  void clear();

 private:
  struct Part {
    std::shared_ptr<const ps::KeyLists> lists;
    std::vector<std::vector<float>> grads;
  };
  std::vector<std::vector<float>> dense_;
  std::vector<Part> parts_;
  Trained trained_;
  int batches_ = 0;
};

}  // namespace argosy
