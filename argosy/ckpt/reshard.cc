#include <fmt/format.h>

#include "argosy/base/error.h"
#include "argosy/base/file_sink.h"
#include "argosy/ckpt/checkpoint_files.h"
#include "argosy/ckpt/ckpt.h"
#include "argosy/ps/placement.h"

namespace argosy {
namespace {

constexpr uint64_t kGeneration = 1;

struct Output {
  Output(Env& env, const std::string& path, const ps::TableLayout& layout)
      : file(env, path), writer(file, layout) {}
  FileSink file;
  ps::TableWriter writer;
};

std::string file_name(const std::string& table, uint32_t server, uint32_t servers) {
  if (servers == 0) return fmt::format("{}.{}.rows", table, kGeneration);
  return fmt::format("{}.{}.{}-of-{}.rows", table, kGeneration, server, servers);
}

/// The new files of a table.
std::vector<ps::SavedTable> deal_out(Env& env, const CheckpointFiles& files,
                                     const std::string& table, uint32_t servers,
                                     const std::string& to) {
  TableMerge merge(env, files.dir, files.files_of(table));
  const uint32_t count = servers == 0 ? 1 : servers;
  const ps::Placement placement = ps::place({}, {}, {}, count);
  std::vector<ps::SavedTable> saved;
  std::vector<std::unique_ptr<Output>> outputs;
  for (uint32_t i = 0; i < count; ++i) {
    saved.push_back({table, file_name(table, i, servers)});
    outputs.push_back(std::make_unique<Output>(env, to + "/" + saved[i].file, merge.layout()));
  }
  while (const auto row = merge.next())
    outputs[placement.server_of(row->key)]->writer.add(row->section, std::span(&row->key, 1),
                                                       row->image);
  for (uint32_t i = 0; i < count; ++i) {
    saved[i].sum = outputs[i]->writer.finish();
    outputs[i]->file.finish();
  }
  return saved;
}

}  // namespace

void reshard_checkpoint(Env& env, const std::string& dir, uint32_t servers, const std::string& to,
                        std::FILE* out) {
  const CheckpointFiles files = open_checkpoint(env, dir);
  check<ConfigError>(!env.file_exists(manifest_path(to)), to,
                     ": has a checkpoint already, expected a folder without one");
  env.make_directories(to);
  // Without marks: where servers stood says nothing about servers that have other keys.
  Manifest manifest{.resume = files.manifest.resume,
                    .tables = {},
                    .replaced = {},
                    .marks = {},
                    .generation = kGeneration};
  uint64_t rows = 0;
  for (const std::string& table : files.tables())
    for (ps::SavedTable& saved : deal_out(env, files, table, servers, to)) {
      rows += saved.sum.rows;
      manifest.tables.push_back(std::move(saved));
    }
  save_model(env, manifest_path(to), {manifest.text(), files.tensors});
  fmt::print(out, "{}: {} rows of {} tables in {} files\n", to, rows, files.tables().size(),
             manifest.tables.size());
}

}  // namespace argosy
