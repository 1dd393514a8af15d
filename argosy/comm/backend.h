#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "argosy/comm/call.h"

namespace argosy::comm {

/// A call and its memory. The functions of group.h that build one define what `count` and the spans
/// mean for each kind.
struct Collective {
  GroupCall call = {};
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
};

/// Performs the calls of one rank of a group, one at a time. All but abandon() throw IoError naming
/// a rank that has died, left or not come in time, and ConfigError if ranks make different calls;
/// the backend is unusable afterwards. Destroying it leaves the group.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// True if calls are work for the cores of one host and hardly wait for a network.
  virtual bool on_one_host() const { return false; }
  /// Everything but arena and sub_group.
  virtual void run(const Collective& work) = 0;
  /// Memory that lives as long as the backend; zeroed.
  virtual std::span<std::byte> arena(const GroupCall& call) = 0;
  /// A separate backend for some ranks of this one, which must include this rank.
  virtual std::unique_ptr<Backend> sub_group(std::span<const int> ranks, uint64_t id) = 0;
  /// Tells the others why this rank stops, so that they stop with the same reason.
  virtual void abandon(const std::string& reason) noexcept = 0;
};

}  // namespace argosy::comm
