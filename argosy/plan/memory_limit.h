#pragma once

#include <cstdint>
#include <vector>

#include "argosy/plan/plan.h"

namespace argosy {

/// Shares out `bytes` of a process' memory among the tables that would be in memory alone, by their
/// sizes if all of them have one, else by the bytes of their rows; the rest of their rows are on
/// the disk. Tables with a store of their own are left alone. 0: no limit. Throws ConfigError where
/// there is less than a kilobyte for one.
void limit_memory(std::vector<ps::TableSpec>& tables, const TablesOptions& options, uint64_t bytes);

}  // namespace argosy
