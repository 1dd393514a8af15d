#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/descriptor.h"
#include "argosy/base/mutex.h"

namespace argosy {

/// The first that ranks tell each other on a connection.
struct Hello {
  static constexpr uint32_t kMagic = 0x4b4e4152;  // "RANK"
  static constexpr uint32_t kVersion = 1;
  enum Purpose : uint32_t { watch = 1, data = 2 };

  uint32_t magic = kMagic, version = kVersion;
  int32_t rank = 0, ranks = 0;
  Purpose purpose = watch;
  int32_t process = 0;
  uint64_t group = 0;      // 0: of all ranks
  uint64_t endpoints = 0;  // hash of the list
  uint64_t nonce = 0;      // of this process and group
  char job[64] = {};
  char refusal[400] = {};  // why the connection is not wanted
};

/// Where connections of other ranks come in, for a group and its sub-groups. Those that nobody asks
/// for yet are kept. Thread safety: full.
class Door {
 public:
  explicit Door(Descriptor listening) : listening_(std::move(listening)) {}

  struct Guest {
    Descriptor socket;
    Hello hello = {};
    size_t received = 0;  // bytes of the hello
  };
  /// One that has come with such a hello, if there is any. Does not block.
  std::optional<Guest> take(const std::function<bool(const Hello&)>& wanted);
  /// Readable when somebody comes.
  int fd() const { return listening_.get(); }

 private:
  void accept_all() REQUIRES(mutex_);
  void read_hellos() REQUIRES(mutex_);

  const Descriptor listening_;
  Mutex mutex_;
  std::vector<Guest> guests_ GUARDED_BY(mutex_);
};

/// Reads on; false where the connection is of no use: closed, or not a rank's.
bool read_hello(Door::Guest& guest);
bool is_complete(const Door::Guest& guest);

}  // namespace argosy
