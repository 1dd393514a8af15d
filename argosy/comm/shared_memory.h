#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "argosy/base/descriptor.h"
#include "argosy/comm/peers.h"

namespace argosy {

/// Gives the ranks of one host memory that all of them see. It has no name: rank 0 makes it and
/// hands it to the others over a socket, and nothing is left of it when all are gone, whatever
/// ended them.
class SharedMemory {
 public:
  /// Every rank of `peers` makes one. Throws IoError.
  explicit SharedMemory(Peers& peers);
  /// Zeroed. Every rank calls it, with the same size.
  std::shared_ptr<std::byte> make(size_t bytes);

 private:
  void let_members_in();
  void connect_to_first();
  void hand_out(const Descriptor& memory) const;
  Descriptor take() const;

  Peers& peers_;
  std::vector<Descriptor> members_;  // of rank 0: the others
  Descriptor first_;                 // of the others: rank 0
};

}  // namespace argosy
