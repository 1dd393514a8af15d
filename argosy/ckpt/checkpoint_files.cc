#include "argosy/ckpt/checkpoint_files.h"

#include <algorithm>
#include <filesystem>

#include "argosy/base/call.h"
#include "argosy/base/error.h"
#include "argosy/train/saved_cut.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_name(const std::string& dir, const char* what, const std::string& name,
                              const std::vector<std::string>& known) {
  const std::string near = nearest(name, known);
  fail<ConfigError>(dir, ": has no ", what, " '", name, "'",
                    near.empty() ? "" : ", did you mean " + near + "?");
}

}  // namespace

std::vector<std::string> CheckpointFiles::tables() const {
  std::vector<std::string> names;
  for (const ps::SavedTable& saved : manifest.tables)
    if (std::ranges::find(names, saved.table) == names.end()) names.push_back(saved.table);
  return names;
}

std::vector<ps::SavedTable> CheckpointFiles::files_of(const std::string& table) const {
  std::vector<ps::SavedTable> files;
  for (const ps::SavedTable& saved : manifest.tables)
    if (saved.table == table) files.push_back(saved);
  if (files.empty()) refuse_name(dir, "table", table, tables());
  return files;
}

const NamedTensor& CheckpointFiles::tensor(const std::string& name) const {
  const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  if (found != tensors.end()) return *found;
  std::vector<std::string> names;
  for (const NamedTensor& known : tensors) names.push_back(known.name);
  refuse_name(dir, "parameter", name, names);
}

CheckpointFiles open_checkpoint(Env& env, const std::string& dir) {
  const std::string path = manifest_path(dir);
  check<ConfigError>(env.file_exists(path), dir,
                     ": no checkpoint, expected a folder with persistables.argosy");
  CheckpointContent content = read_checkpoint(env, dir);
  return {dir, std::move(content.manifest), std::move(content.tensors)};
}

std::vector<std::string> folders_with(const std::string& dir, const std::string& file) {
  std::error_code error;
  std::vector<std::string> folders;
  if (fs::exists(fs::path(dir) / file, error)) folders.push_back(dir);
  auto entry = fs::recursive_directory_iterator(dir, error);
  check<IoError>(!error, dir, ": cannot be listed: ", error.message());
  for (; !error && entry != fs::end(entry); entry.increment(error))
    if (entry->is_directory(error) && fs::exists(entry->path() / file, error))
      folders.push_back(entry->path().string());
  check<IoError>(!error, dir, ": cannot be listed: ", error.message());
  std::ranges::sort(folders);
  return folders;
}

std::vector<ImageColumn> columns_of(const ps::TableLayout& layout) {
  std::vector<ImageColumn> columns;
  size_t at = 0;
  const auto add = [&](const char* name, size_t size) {
    if (size > 0) columns.push_back({name, at, size});
    at += size;
  };
  constexpr size_t kShowAndClick = 2;
  add("unseen", layout.unseen ? 1 : 0);
  add("scores", layout.scores ? kShowAndClick : 0);
  add("weights", layout.dim);
  add("state", layout.state_floats());
  return columns;
}

TableMerge::TableMerge(Env& env, const std::string& dir, std::span<const ps::SavedTable> files) {
  check<ConfigError>(!files.empty(), dir, ": a table without files");
  for (const ps::SavedTable& saved : files) {
    check_table_file(env, dir, saved);
    Part& part = *parts_.emplace_back(std::make_unique<Part>(env, dir, saved));
    part.noted_rows = saved.sum.rows;
    part.has_note = saved.sum.bytes > 0;
    check<DataError>(part.reader.layout() == layout(), part.reader.what(), ": holds ",
                     part.reader.layout().dim, " weights in ", part.reader.layout().row_floats,
                     " floats a row, but ", parts_.front()->reader.what(), " ", layout().dim,
                     " in ", layout().row_floats);
  }
  for (size_t i = 0; i < parts_.size(); ++i) push_head(i);
}

void TableMerge::push_head(size_t index) {
  Part& part = *parts_[index];
  if (!part.block || part.at == part.block->keys.size()) {
    part.block = part.reader.next();
    part.at = 0;
  }
  if (part.block) return heads_.push({part.block->section, part.block->keys[part.at], index});
  check<DataError>(part.source->left() == 0, part.reader.what(), ": ", part.source->left(),
                   " bytes too many");
  check<DataError>(!part.has_note || part.reader.sum().rows == part.noted_rows, part.reader.what(),
                   ": has ", part.reader.sum().rows, " rows, expected the ", part.noted_rows,
                   " that were saved");
}

std::optional<TableMerge::Row> TableMerge::next() {
  if (last_) {
    ++parts_[last_->part]->at;
    push_head(last_->part);
  }
  if (heads_.empty()) {
    last_.reset();
    return std::nullopt;
  }
  const Head head = heads_.top();
  heads_.pop();
  check<DataError>(!last_ || last_->section != head.section || last_->key != head.key,
                   parts_[head.part]->reader.what(), ": has key ", head.key, ", which is also in ",
                   last_ ? parts_[last_->part]->reader.what() : "");
  last_ = head;
  const Part& part = *parts_[head.part];
  const size_t width = layout().floats(head.section);
  return Row{head.section, head.key, part.block->images.subspan(part.at * width, width)};
}

}  // namespace argosy
