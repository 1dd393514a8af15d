#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "argosy/base/descriptor.h"
#include "argosy/comm/peers.h"

namespace argosy::comm {

/// Memory shared by the ranks of one host. It has no name: rank 0 makes it and passes a descriptor
/// to the others over a socket, so nothing is left when all ranks are gone, however they end.
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

}  // namespace argosy::comm
