#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/descriptor.h"
#include "argosy/base/mutex.h"

namespace argosy::comm {

/// The first message of each side of a connection between ranks.
struct Hello {
  static constexpr uint32_t kMagic = 0x4b4e4152;  // "RANK"
  static constexpr uint32_t kVersion = 1;
  enum Purpose : uint32_t { watch = 1, data = 2 };

  uint32_t magic = kMagic, version = kVersion;
  int32_t rank = 0, ranks = 0;
  Purpose purpose = watch;
  int32_t process = 0;
  uint64_t group = 0;      // 0: the group of all ranks
  uint64_t endpoints = 0;  // hash of the list
  uint64_t nonce = 0;      // of this process and group
  char job[64] = {};
  char refusal[400] = {};  // why the connection is refused; "": it is not
};

/// Accepts the connections of other ranks, for a group and all its sub-groups, and keeps each until
/// the group that it is for takes it. Thread safety: full.
class RankListener {
 public:
  explicit RankListener(Descriptor listening) : listening_(std::move(listening)) {}

  struct Connection {
    Descriptor socket;
    Hello hello = {};
    size_t received = 0;  // bytes of the hello
  };
  /// A connection whose hello is wanted, if one has arrived. Does not block.
  std::optional<Connection> take(const std::function<bool(const Hello&)>& wanted);
  /// Readable when a connection arrives.
  int fd() const { return listening_.get(); }

 private:
  void accept_all() REQUIRES(mutex_);
  void read_hellos() REQUIRES(mutex_);

  const Descriptor listening_;
  Mutex mutex_;
  std::vector<Connection> connections_ GUARDED_BY(mutex_);
};

/// Reads what has arrived; false if the connection is closed or not a rank's.
bool read_hello(RankListener::Connection& connection);
bool is_complete(const RankListener::Connection& connection);

}  // namespace argosy::comm
