#pragma once

#include <sys/types.h>

#include "argosy/base/descriptor.h"

namespace argosy {

/// A small process of its own that kills the groups it was told of when this process is gone,
/// however it went: what they started would live on without it.
class Guard {
 public:
  Guard();  // throws IoError
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  void watch(pid_t group);
  /// To be called before the group's leader is waited for, as its number may come again then.
  void forget(pid_t group);

 private:
  void tell(pid_t number) const;

  Descriptor link_;
  pid_t pid_;
};

}  // namespace argosy
