#pragma once

#include <functional>
#include <string>

#include "argosy/base/env.h"

namespace argosy {

/// When another process counts as slow and when as dead. Every wait for another process uses the
/// same names.
struct Tolerance {
  Env::Duration patience = std::chrono::seconds(5);  // longer waits are logged
  Env::Duration quiet = std::chrono::seconds(20);    // silent for so long means dead
  Env::Duration give_up = std::chrono::minutes(10);  // on a process that lives but does not come
};

/// The value of a variable; "": it is not set.
using GetVariable = std::function<std::string(const std::string& name)>;

/// From ARGOSY_PATIENCE, ARGOSY_QUIET and ARGOSY_GIVE_UP, in seconds. Throws ConfigError.
Tolerance tolerance_from_env(const GetVariable& get);
/// From the environment of this process.
Tolerance tolerance_from_env();

}  // namespace argosy
