#pragma once

#include <string>

#include "argosy/comm/group.h"
#include "argosy/modes/local_store.h"
#include "argosy/modes/ranks/dirty_rows.h"
#include "argosy/plan/plan.h"

namespace argosy {

/// If the texts of two ranks differ, throws ConfigError on every rank with both sides of the first
/// line that does.
void check_same_text(comm::Group& group, const std::string& text);

/// Copies parameters, optimizer state, states and the step from rank 0; rows too if `rows` is true
/// on rank 0.
void take_from_first(comm::Group& group, LocalStore& store, bool rows);

/// Averages states with a next value, such as running means, over the ranks. Those computed over
/// all ranks together are taken from a rank that took part in the most batches.
void average_states(comm::Group& group, const Plan& plan, LocalStore& store, uint64_t batches);

/// recent: parameters and recently dirty rows. all: all rows and states too; states differ between
/// ranks until a pass ends.
enum class Compared : uint8_t { recent, all };
/// Throws DataError naming the first parameter or table that differs between ranks, and the ranks
/// that hold each of its values. `dirty` is by table; empty if rows are sharded, which are not
/// compared.
void check_same_values(comm::Group& group, const Plan& plan, LocalStore& store,
                       std::span<DirtyRows> dirty, Compared compared);

}  // namespace argosy
