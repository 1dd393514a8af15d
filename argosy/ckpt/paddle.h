#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/env.h"

namespace argosy {

/// A folder with the rows of a table, as Paddle's servers save it.
struct PaddleTable {
  std::string folder, name;
  size_t dim = 1;  // weights of a row; a row of more or fewer is refused
};
/// Of FOLDER=NAME:DIM. Throws ConfigError.
PaddleTable parse_paddle_table(const std::string& text);

struct PaddleImport {
  std::vector<PaddleTable> tables = {};
  std::string accessor = "sparse";  // sparse, ctr, ctr_double or common
  std::string rule = "adagrad";  // of the accessor: naive, adagrad, std_adagrad, adam, shared_adam
  std::map<std::string, std::string> renames = {};  // of parameters
  bool keep_scores = false, keep_unseen = false;    // for tables that have them
  std::optional<int64_t> step = {};                 // else what an optimizer's file tells, or 0
  size_t run_bytes = size_t{256} << 20;             // rows that are sorted in memory at a time
};

/// Makes a checkpoint in `to` of what Paddle has saved below `folder`: *.pdparams and *.pdopt
/// (pickles), and tables of text files. Rows come without optimizer state and get a fresh one.
/// Throws ConfigError, DataError with file and line, or IoError.
void import_paddle(Env& env, const std::string& folder, const PaddleImport& import,
                   const std::string& to, std::FILE* out);

}  // namespace argosy
