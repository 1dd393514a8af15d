#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <map>

#include "argosy/base/error.h"
#include "argosy/ckpt/checkpoint_files.h"
#include "argosy/ckpt/ckpt.h"
#include "argosy/ps/cut.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

std::string written(const std::string& path) {
  const auto age = fs::file_time_type::clock::now() - fs::last_write_time(path);
  const auto when = std::chrono::system_clock::now() -
                    std::chrono::duration_cast<std::chrono::system_clock::duration>(age);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}",
                     fmt::localtime(std::chrono::system_clock::to_time_t(when)));
}

/// Rows of a file that nobody has counted: hops from block to block.
uint64_t count_rows(Env& env, const std::string& path) {
  FileSource header(env, path);
  const ps::TableReader reader(header);  // checks it
  const auto file = env.open_file(path);
  uint64_t rows = 0, at = ps::TableReader::kHeaderBytes;
  const uint64_t row_bytes = sizeof(Key) + reader.layout().row_floats * sizeof(float);
  for (uint32_t n = 1; n > 0; rows += n) {
    file->read_at(at, std::as_writable_bytes(std::span(&n, 1)));
    at += sizeof n + n * row_bytes;
  }
  return rows;
}

struct TableLine {
  size_t files = 0;
  uint64_t rows = 0, bytes = 0;
};

void list_checkpoint(Env& env, const std::string& dir, std::FILE* out) {
  const std::string text = load_model(env, manifest_path(dir)).program;
  const CheckpointFiles files{dir, Manifest::parse(text, manifest_path(dir)), {}};
  const Manifest& manifest = files.manifest;
  uint64_t bytes = fs::file_size(manifest_path(dir));
  std::map<std::string, TableLine> tables;
  for (const ps::SavedTable& saved : manifest.tables) {
    const std::string path = dir + "/" + saved.file;
    check<IoError>(fs::exists(path), path, ": is missing");
    TableLine& table = tables[saved.table];
    ++table.files;
    if (!ps::is_cut_file(saved.file)) table.bytes += fs::file_size(path);
    table.rows += saved.sum.bytes > 0 ? saved.sum.rows : count_rows(env, path);
  }
  for (const auto& [name, table] : tables) bytes += table.bytes;
  for (const ps::SavedTable& part : manifest.cuts)
    bytes += ps::read_cut_part(env, dir, part.file).bytes();
  const size_t batches = manifest.resume.data.batches;
  fmt::print(out, "{}: {}goes on with epoch {}{}, generation {}, {} bytes{}, {}\n", dir,
             manifest.cuts.empty() ? "" : "a cut, ", manifest.resume.epoch,
             batches > 0 ? fmt::format(" batch {}", batches + 1) : "", manifest.generation, bytes,
             manifest.marks.empty() ? "" : fmt::format(", {} servers", manifest.marks.size()),
             written(manifest_path(dir)));
  for (const std::string& name : files.tables()) {
    const TableLine& table = tables[name];
    const std::string size = manifest.cuts.empty()
                                 ? fmt::format("{} bytes in {} file", table.bytes, table.files)
                                 : fmt::format("in {} journal", table.files);
    fmt::print(out, "  {}: {} rows, {}{}\n", name, table.rows, size, table.files == 1 ? "" : "s");
  }
}

}  // namespace

void list_checkpoints(Env& env, const std::string& dir, std::FILE* out) {
  const std::vector<std::string> checkpoints = folders_with(dir, "persistables.argosy");
  const std::vector<std::string> exported = folders_with(dir, "inference.argosy");
  check<ConfigError>(!checkpoints.empty() || !exported.empty(), dir,
                     ": no model at or below it, expected persistables.argosy or inference.argosy");
  std::string trouble;
  for (const std::string& folder : checkpoints) {
    try {
      list_checkpoint(env, folder, out);
    } catch (const Error& e) {
      fmt::print(out, "{}: cannot be read: {}\n", folder, e.what());
      if (trouble.empty()) trouble = e.what();
    }
  }
  for (const std::string& folder : exported) {
    const std::string path = folder + "/inference.argosy";
    fmt::print(out, "{}: exported for inference, {} bytes, {}\n", folder, fs::file_size(path),
               written(path));
  }
  check<DataError>(trouble.empty(), trouble);
}

}  // namespace argosy
