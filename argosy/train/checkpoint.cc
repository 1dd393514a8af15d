#include "argosy/train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <sstream>

#include "argosy/base/error.h"
#include "argosy/ps/sparse_table.h"
#include "argosy/train/saved_model.h"

namespace argosy {
namespace {

constexpr std::string_view kHeader = "argosy checkpoint 1";

/// What the text of persistables.argosy says, line by line:
///   argosy checkpoint 1
///   epoch 2                      the one to go on with
///   batches 340                  of it that are done
///   file 3 1200                  lines of file 3 that are done; file 3 whole
///   table factors factors.7.rows
struct Manifest {
  ResumePoint resume;
  struct Entry {
    std::string table, file;
  };
  std::vector<Entry> tables;
  uint64_t generation = 0;  // of the table files

  std::string text() const {
    std::string out = fmt::format("{}\nepoch {}\nbatches {}\ngeneration {}\n", kHeader,
                                  resume.epoch, resume.data.batches, generation);
    auto line = std::back_inserter(out);
    for (const FileMark& mark : resume.data.files) {
      if (mark.lines == FileMark::kWhole)
        fmt::format_to(line, "file {} whole\n", mark.file);
      else
        fmt::format_to(line, "file {} {}\n", mark.file, mark.lines);
    }
    for (const Entry& entry : tables)
      fmt::format_to(line, "table {} {}\n", entry.table, entry.file);
    return out;
  }

  /// An empty text is a model without tables, saved before its first epoch.
  static Manifest parse(const std::string& text, const std::string& path) {
    Manifest manifest;
    if (text.empty()) return manifest;
    std::istringstream lines(text);
    std::string line;
    std::getline(lines, line);
    check<DataError>(line == kHeader, path, ": begins with '", line, "', expected '", kHeader, "'");
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string what, lines_done;
      words >> what;
      if (what == "epoch") {
        words >> manifest.resume.epoch;
      } else if (what == "batches") {
        words >> manifest.resume.data.batches;
      } else if (what == "generation") {
        words >> manifest.generation;
      } else if (what == "file") {
        FileMark& mark = manifest.resume.data.files.emplace_back();
        words >> mark.file >> lines_done;
        if (lines_done == "whole")
          mark.lines = FileMark::kWhole;
        else
          std::istringstream(lines_done) >> mark.lines;
      } else if (what == "table") {
        Entry& entry = manifest.tables.emplace_back();
        words >> entry.table >> entry.file;
      } else {
        words.setstate(std::ios::failbit);
      }
      check<DataError>(!words.fail(), path, ": cannot read '", line, "' of the checkpoint");
    }
    return manifest;
  }
};

/// Collects small writes, so that a table of many rows makes few system calls.
class FileSink final : public ByteSink {
 public:
  FileSink(Env& env, const std::string& path) : file_(env.create_file(path)) {
    buffer_.reserve(kBuffer);
  }
  void write(std::span<const std::byte> bytes) override {
    if (buffer_.size() + bytes.size() > kBuffer) flush();
    if (bytes.size() > kBuffer)
      file_->append(bytes);
    else
      buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  void finish() {
    flush();
    file_->sync();
  }

 private:
  static constexpr size_t kBuffer = 1 << 20;
  void flush() {
    file_->append(buffer_);
    buffer_.clear();
  }

  std::unique_ptr<WritableFile> file_;
  std::vector<std::byte> buffer_;
};

std::string table_file(const std::string& table, uint64_t generation) {
  return fmt::format("{}.{}.rows", table, generation);
}

std::string manifest_path(const std::string& dir) { return dir + "/persistables.argosy"; }

/// Of the checkpoint that is there; nothing if there is none, or none that can be read.
Manifest previous_manifest(Env& env, const std::string& dir) {
  if (!env.file_exists(manifest_path(dir))) return {};
  try {
    return Manifest::parse(load_model(env, manifest_path(dir)).program, manifest_path(dir));
  } catch (const Error&) {
    return {};  // it is about to be replaced
  }
}

}  // namespace

void save_checkpoint(Env& env, const std::string& dir, const std::vector<NamedTensor>& persistables,
                     std::span<SparseTable* const> tables, const ResumePoint& resume) {
  env.make_directories(dir);
  const Manifest before = previous_manifest(env, dir);
  // A save that was killed between its last two steps has left the tables it replaced.
  for (const Manifest::Entry& old : before.tables)
    if (before.generation > 1)
      env.remove_file(dir + "/" + table_file(old.table, before.generation - 1));
  Manifest manifest{.resume = resume, .tables = {}, .generation = before.generation + 1};
  manifest.tables.reserve(tables.size());
  for (const SparseTable* table : tables) {
    const std::string& name = table->spec().name;
    manifest.tables.push_back({name, table_file(name, manifest.generation)});
    FileSink file(env, dir + "/" + manifest.tables.back().file);
    table->save(file);
    file.finish();
  }
  save_model(env, manifest_path(dir), {manifest.text(), persistables});
  for (const Manifest::Entry& old : before.tables) env.remove_file(dir + "/" + old.file);
}

ResumePoint load_checkpoint(Env& env, const std::string& dir,
                            const std::vector<NamedTensor>& persistables,
                            std::span<SparseTable* const> tables) {
  const std::string path = manifest_path(dir);
  const SavedModel saved = load_model(env, path);
  const Manifest manifest = Manifest::parse(saved.program, path);
  check_fits(saved, path, persistables);
  check<DataError>(manifest.tables.size() == tables.size(), path, ": holds ",
                   manifest.tables.size(), " sparse tables, the model has ", tables.size());
  for (SparseTable* table : tables) {
    const auto entry =
        std::ranges::find(manifest.tables, table->spec().name, &Manifest::Entry::table);
    check<DataError>(entry != manifest.tables.end(), path, ": has no table '", table->spec().name,
                     "', which the model needs");
    const std::string file = dir + "/" + entry->file;
    const std::vector<std::byte> bytes = env.read_file(file);
    ByteSource in(bytes, file);
    table->load(in);
    check<DataError>(in.left() == 0, file, ": ", in.left(), " bytes too many");
  }
  copy_values(saved, persistables);
  return manifest.resume;
}

}  // namespace argosy
