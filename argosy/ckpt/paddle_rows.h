#pragma once

#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/ckpt/paddle.h"
#include "argosy/ps/saved_table.h"

namespace argosy {

/// Reads the text files of a table (docs/reference/ckpt.md has their lines) and writes its rows to
/// `to`/TABLE.1.rows. Sorts run_bytes of rows at a time, so that a table may be larger than memory.
ps::SavedTable import_paddle_table(Env& env, const std::string& folder, const PaddleTable& table,
                                   const PaddleImport& import, const std::string& to);

}  // namespace argosy
