#pragma once

#include <poll.h>

#include <cstddef>
#include <span>
#include <vector>

#include "argosy/base/descriptor.h"
#include "argosy/comm/peers.h"

namespace argosy::comm {

/// Data connections between ranks, opened on first use. Each message begins with its call, so that
/// ranks notice when their calls differ.
class Links {
 public:
  explicit Links(Peers& peers)
      : peers_(peers), links_(static_cast<size_t>(peers.size())), directions_(links_.size() * 2) {}

  struct Outgoing {
    int to;
    std::span<const std::byte> bytes;
  };
  struct Incoming {
    int from;
    std::span<std::byte> bytes;
  };
  /// Sends and receives everything concurrently; at most one message to and from each rank.
  void exchange(const GroupCall& call, std::span<const Outgoing> out, std::span<const Incoming> in);

 private:
  /// A message in progress, in one direction.
  struct Direction {
    int rank = 0;
    std::byte* bytes = nullptr;
    size_t size = 0, done = 0;  // the call counts
    GroupCall theirs = {};      // of an incoming message
    bool over() const { return done == size + sizeof(GroupCall); }
  };

  void open(int rank);
  void send_some(Direction& direction, const GroupCall& call);
  void receive_some(Direction& direction, const GroupCall& call);
  void wait(size_t directions, size_t outgoing, const GroupCall& call, Env::Time until);

  Peers& peers_;
  std::vector<Descriptor> links_;  // by rank
  std::vector<Direction> directions_;
  std::vector<pollfd> polled_;
};

}  // namespace argosy::comm
