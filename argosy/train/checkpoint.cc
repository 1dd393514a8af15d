#include "argosy/train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>

#include "argosy/base/error.h"
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
///   replaced factors.6.rows
struct Manifest {
  ResumePoint resume;
  std::vector<SavedTable> tables;
  std::vector<std::string> replaced;  // files of the generation before, which may be left
  uint64_t generation = 0;            // of the table files

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
    for (const SavedTable& entry : tables)
      fmt::format_to(line, "table {} {}\n", entry.table, entry.file);
    for (const std::string& file : replaced) fmt::format_to(line, "replaced {}\n", file);
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
        SavedTable& entry = manifest.tables.emplace_back();
        words >> entry.table >> entry.file;
      } else if (what == "replaced") {
        words >> manifest.replaced.emplace_back();
      } else {
        words.setstate(std::ios::failbit);
      }
      check<DataError>(!words.fail(), path, ": cannot read '", line, "' of the checkpoint");
    }
    return manifest;
  }
};

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

void save_checkpoint(Env& env, const std::string& dir, TableStore& store,
                     const ResumePoint& resume) {
  env.make_directories(dir);
  const Manifest before = previous_manifest(env, dir);
  // A save that was killed between its last two steps has left the tables it replaced.
  for (const std::string& old : before.replaced) env.remove_file(dir + "/" + old);
  Manifest manifest{
      .resume = resume, .tables = {}, .replaced = {}, .generation = before.generation + 1};
  manifest.tables = store.save(env, dir, manifest.generation);
  for (const SavedTable& old : before.tables) manifest.replaced.push_back(old.file);
  save_model(env, manifest_path(dir), {manifest.text(), store.persistables()});
  for (const SavedTable& old : before.tables) env.remove_file(dir + "/" + old.file);
}

ResumePoint load_checkpoint(Env& env, const std::string& dir, TableStore& store) {
  const std::string path = manifest_path(dir);
  const SavedModel saved = load_model(env, path);
  const Manifest manifest = Manifest::parse(saved.program, path);
  const std::vector<NamedTensor> persistables = store.persistables();
  // What was saved without optimizer state, as in geo mode, begins a new one.
  std::vector<NamedTensor> expected;
  std::ranges::copy_if(persistables, std::back_inserter(expected), [&](const NamedTensor& tensor) {
    return !tensor.name.ends_with("@state") ||
           std::ranges::find(saved.tensors, tensor.name, &NamedTensor::name) != saved.tensors.end();
  });
  check_fits(saved, path, expected);
  const std::vector<std::string> wanted = store.sparse_tables();
  std::set<std::string> held;
  for (const SavedTable& table : manifest.tables) held.insert(table.table);
  check<DataError>(held.size() == wanted.size(), path, ": holds ", held.size(),
                   " sparse tables, the model has ", wanted.size());
  for (const std::string& name : wanted)
    check<DataError>(held.contains(name), path, ": has no table '", name,
                     "', which the model needs");
  store.load(env, dir, manifest.tables);
  copy_values(saved, expected);
  store.restore(persistables);
  return manifest.resume;
}

}  // namespace argosy
