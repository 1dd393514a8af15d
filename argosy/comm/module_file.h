#pragma once

#include <string>

#include "argosy/comm/engine.h"

namespace argosy::comm {

/// Loads libargosy_NAME.so from beside this program or library, or from ../lib/argosy relative to
/// it, for good. Throws ConfigError that names the places searched and how to get it.
const EngineModule& load_module(const std::string& name);

}  // namespace argosy::comm
