#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "argosy/base/bytes.h"
#include "argosy/base/env.h"
#include "argosy/base/function_ref.h"
#include "argosy/base/key.h"

namespace argosy::ps {

class RowTable;

/// What is known of a table's file from its writer. A swapped file has a sum of its own, however
/// sound it is.
struct FileSum {
  uint64_t rows = 0;
  uint64_t bytes = 0;  // 0: nothing is known, as of saves of the first releases
  uint64_t sum = 0;    // XXH3 of all bytes but the last 8, which hold it
  bool operator==(const FileSum&) const = default;
  template <class A>
  void fields(A& a) {
    a(rows, bytes, sum);
  }
};

/// A file with rows of a table: all of them, or a part. Of a cut (ps/cut.h) it is the file of a
/// server's part, which has rows of all tables.
struct SavedTable {
  std::string table, file;
  FileSum sum = {};
  template <class A>
  void fields(A& a) {
    a(table, file, sum);
  }
};

/// Writes `folder`/`file`, synced. Throws DataError where a row is not finite.
SavedTable save_table_file(Env& env, const std::string& folder, std::string file, RowTable& table);

/// Throws DataError, naming what was expected and what was found, unless size and sum of the file
/// are those that were noted. Reads only its end: a flipped bit shows when it is loaded.
void check_table_file(Env& env, const std::string& folder, const SavedTable& saved);

/// The rows of a table, as a file of one table has them; TableReader reads them.
std::unique_ptr<ByteReader> open_table_file(Env& env, const std::string& folder,
                                            const SavedTable& saved);

/// Replaces the content of all tables by the rows whose keys `keep` accepts. Throws DataError, and
/// changes nothing, where a file is missing, damaged, not the one that was saved, or does not fit.
void load_table_files(Env& env, const std::string& folder, std::span<const SavedTable> files,
                      std::span<const std::unique_ptr<RowTable>> tables,
                      FunctionRef<bool(Key)> keep);

}  // namespace argosy::ps
