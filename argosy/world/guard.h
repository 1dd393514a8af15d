#pragma once

#include <sys/types.h>

#include <string>

#include "argosy/base/descriptor.h"

namespace argosy {

/// A small separate process that kills what this one has started, however this one ends, kill -9
/// included: the process groups it was told of, and every process with the mark in its environment,
/// as descendants may have left their group. The destructor does the same. Thread safety: full.
class Guard {
 public:
  Guard();  // throws IoError
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// For children that may live as long as this process; started on first use.
  static Guard& of_this_process();

  /// "NAME=1", for the environment of everything that must end with this.
  const std::string& mark() const { return mark_; }
  /// For enter_guard(), by which the leader of a group registers itself.
  int link() const { return link_.get(); }
  /// Call it before waiting for the group's leader: afterwards its number may be reused.
  void forget(pid_t group) const;

 private:
  pid_t owner_;  // the process that made it
  std::string mark_;
  Descriptor link_;
  pid_t pid_;
};

/// Called by a child between fork and exec: registers its group with the guard. The child does it
/// itself, as its parent might be killed before it could. Makes system calls only.
void enter_guard(int link);

}  // namespace argosy
