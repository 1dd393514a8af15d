#pragma once

#include <memory>
#include <vector>

#include "argosy/ps/client.h"

namespace argosy {

/// Gradients of several batches as one push: those of parameters are added up, those of rows go
/// with the keys of their own batch. Thread safety: none.
class Merged {
 public:
  /// Takes copies of what an exchange would push.
  void add(const Exchange& one);
  int batches() const { return batches_; }
  /// Spans of this object, which must stay as it is until the exchange has been sent.
  void put_into(Exchange& exchange) const;
  void clear();

 private:
  struct Part {
    std::shared_ptr<const KeyLists> lists;
    std::vector<std::vector<float>> grads;
  };
  std::vector<std::vector<float>> dense_;
  std::vector<Part> parts_;
  int batches_ = 0;
};

}  // namespace argosy
