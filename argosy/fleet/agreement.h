#pragma once

#include <string>

#include "argosy/comm/group.h"
#include "argosy/fleet/local_store.h"
#include "argosy/fleet/plan.h"

namespace argosy {

/// Throws ConfigError on every rank where the texts of two ranks differ: shows both sides of the
/// first line that does.
void check_same_text(Group& group, const std::string& text);

/// All parameters, optimizer state, states and the step become those of rank 0. Rows too, where
/// `rows` says so on rank 0.
void take_from_first(Group& group, const Plan& plan, LocalStore& store, bool rows);

/// States with a next value, such as running means, become the mean over ranks.
void average_states(Group& group, const Plan& plan, LocalStore& store);

/// How much of the tables is compared.
enum class Compared : uint8_t { parameters, rows_too };
/// Throws DataError naming the first parameter or table that is not the same on all ranks, and the
/// ranks that hold each of its values.
void check_same_values(Group& group, const Plan& plan, LocalStore& store, Compared compared);

}  // namespace argosy
