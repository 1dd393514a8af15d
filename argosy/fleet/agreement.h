#pragma once

#include <string>

#include "argosy/comm/group.h"
#include "argosy/fleet/local_store.h"
#include "argosy/fleet/plan.h"
#include "argosy/fleet/touched_rows.h"

namespace argosy {

/// Throws ConfigError on every rank where the texts of two ranks differ: shows both sides of the
/// first line that does.
void check_same_text(Group& group, const std::string& text);

/// All parameters, optimizer state, states and the step become those of rank 0. Rows too, where
/// `rows` says so on rank 0.
void take_from_first(Group& group, const Plan& plan, LocalStore& store, bool rows);

/// States with a next value, such as running means, become the mean over ranks. Those that were
/// computed over all ranks together become what a rank has that took part in most batches.
void average_states(Group& group, const Plan& plan, LocalStore& store, uint64_t batches);

/// How much is compared: parameters and the rows touched last, or also all rows and states, which
/// are each rank's own until a pass ends.
enum class Compared : uint8_t { recent, all };
/// Throws DataError naming the first parameter or table that is not the same on all ranks, and the
/// ranks that hold each of its values. `touched`: by table of the plan; none where each
/// rank has rows of its own, which are not compared.
void check_same_values(Group& group, const Plan& plan, LocalStore& store,
                       std::span<TouchedRows> touched, Compared compared);

}  // namespace argosy
