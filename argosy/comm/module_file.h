#pragma once

#include <string>

#include "argosy/comm/engine.h"

namespace argosy::comm {

/// Loads libargosy_NAME.so, which lies beside this program or library, or in ../lib/argosy from
/// there. It stays. Throws ConfigError that says where it was looked for and how to get it.
const EngineModule& load_module(const std::string& name);

}  // namespace argosy::comm
