#pragma once

#include <memory>

#include "argosy/base/env.h"

namespace argosy {

/// The Env of this machine: steady clock, one timer thread, POSIX files. Destroying it waits
/// for a running timer task and drops the rest. Thread safety: full.
std::unique_ptr<Env> real_env();

}  // namespace argosy
