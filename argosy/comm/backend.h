#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "argosy/comm/call.h"

namespace argosy {

/// A call and the memory it works on. What count means, and which memory there is, is said at the
/// functions of group.h that make one.
struct Collective {
  GroupCall call = {};
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
};

/// Carries out the calls of one rank of a group, one at a time. All but abandon() throw IoError
/// that names a rank which has died, left or not come in time, and ConfigError where ranks do not
/// make the same call; it is of no use any more then. To destroy it leaves the group.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Calls are work for the cores of one host, and hardly ever wait for a network.
  virtual bool on_one_host() const { return false; }
  /// Everything but arena and sub_group.
  virtual void run(const Collective& work) = 0;
  /// Memory that lives as long as the backend; zeroed.
  virtual std::span<std::byte> arena(const GroupCall& call) = 0;
  /// A backend of its own for these ranks of this one, of which this must be one.
  virtual std::unique_ptr<Backend> sub_group(std::span<const int> ranks, uint64_t id) = 0;
  /// Tells the others why this rank stops, so that they stop with the same reason.
  virtual void abandon(const std::string& reason) noexcept = 0;
};

}  // namespace argosy
