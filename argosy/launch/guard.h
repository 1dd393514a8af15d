#pragma once

#include <sys/types.h>

#include <string>

#include "argosy/base/descriptor.h"

namespace argosy {

/// A small process of its own that kills the groups it was told of when this one is gone, however
/// it went, and whatever has the mark in its environment: what they started may have left its group
/// and would live on without it. The same is done when this is destroyed.
class Guard {
 public:
  Guard();  // throws IoError
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// "NAME=VALUE" for the environment of all that is to end with this.
  const std::string& mark() const { return mark_; }
  void watch(pid_t group);
  /// To be called before the group's leader is waited for, as its number may come again then.
  void forget(pid_t group);

 private:
  void tell(pid_t number) const;

  std::string mark_;
  Descriptor link_;
  pid_t pid_;
};

}  // namespace argosy
