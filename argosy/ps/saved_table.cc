#include "argosy/ps/saved_table.h"

#include <fmt/format.h>

#include <cstring>

#include "argosy/base/error.h"
#include "argosy/base/file_sink.h"
#include "argosy/base/file_source.h"
#include "argosy/ps/cut.h"
#include "argosy/ps/table_file.h"

namespace argosy::ps {

SavedTable save_table_file(Env& env, const std::string& folder, std::string file, RowTable& table) {
  FileSink out(env, folder + "/" + file);
  const FileSum sum = save_table(table, out);
  out.finish();
  env.sync_folder(folder);  // whoever names the file relies on it
  return {table.spec().name, std::move(file), sum};
}

void check_table_file(Env& env, const std::string& folder, const SavedTable& saved) {
  if (saved.sum.bytes == 0) return;
  const std::string path = folder + "/" + saved.file;
  const auto file = env.open_file(path);
  check<DataError>(file->size() == saved.sum.bytes, path, ": has ", file->size(),
                   " bytes, expected the ", saved.sum.bytes, " that were saved");
  uint64_t sum = 0;
  file->read_at(file->size() - sizeof sum, std::as_writable_bytes(std::span(&sum, 1)));
  check<DataError>(sum == saved.sum.sum, path,
                   fmt::format(": is of another save, its sum is {:016x}, expected {:016x}", sum,
                               saved.sum.sum));
}

std::unique_ptr<ByteReader> open_table_file(Env& env, const std::string& folder,
                                            const SavedTable& saved) {
  if (is_cut_file(saved.file)) return open_cut_table(env, folder, saved);
  return std::make_unique<FileSource>(env, folder + "/" + saved.file);
}

void load_table_files(Env& env, const std::string& folder, std::span<const SavedTable> files,
                      std::span<const std::unique_ptr<RowTable>> tables,
                      FunctionRef<bool(Key)> keep) {
  // Every server gets all names, so that all refuse a file that one of them would.
  for (const SavedTable& saved : files) check_table_file(env, folder, saved);
  std::vector<TableLoad> loads;
  for (const auto& table : tables) {
    TableLoad& load = loads.emplace_back(*table);
    size_t parts = 0;
    for (const SavedTable& saved : files) {
      if (saved.table != table->spec().name) continue;
      const auto part = open_table_file(env, folder, saved);
      load.add(*part, keep);
      check<DataError>(part->left() == 0, part->what(), ": ", part->left(), " bytes too many");
      ++parts;
    }
    check<DataError>(parts > 0, folder, ": has no table '", table->spec().name, "'");
  }
  for (TableLoad& load : loads) load.finish();
}

}  // namespace argosy::ps
