#include <fmt/format.h>

#include <filesystem>

#include "argosy/base/error.h"
#include "argosy/base/finite.h"
#include "argosy/ckpt/checkpoint_files.h"
#include "argosy/ckpt/ckpt.h"
#include "argosy/tensor/finite.h"

namespace argosy {
namespace {

class Verification {
 public:
  Verification(Env& env, std::FILE* out) : env_(env), out_(out) {}

  void checkpoint(const std::string& dir) {
    const std::string path = manifest_path(dir);
    CheckpointFiles files;
    look(path, [&] {
      files = open_checkpoint(env_, dir);
      return tensors(path, files.tensors);
    });
    bool sound = true;
    for (const ps::SavedTable& saved : files.manifest.tables)
      sound &= look(dir + "/" + saved.file, [&] { return table_file(dir, saved); });
    if (!sound) return;
    for (const std::string& table : files.tables()) {
      const std::vector<ps::SavedTable> parts = files.files_of(table);
      if (parts.size() == 1) continue;
      look(fmt::format("{} table {}", dir, table), [&] { return keys_of_parts(dir, parts); });
    }
  }

  void exported(const std::string& path) {
    look(path, [&] { return tensors(path, load_model(env_, path).tensors); });
  }

  void finish() const {
    check<DataError>(bad_ == 0, bad_, " of ", looked_, " bad, the first: ", first_);
    fmt::print(out_, "{} sound\n", looked_);
  }

 private:
  /// `what` returns what it found or throws. Returns whether it was sound.
  template <class F>
  bool look(const std::string& path, F what) {
    ++looked_;
    try {
      fmt::print(out_, "ok   {}: {}\n", path, what());
      return true;
    } catch (const Error& e) {
      fmt::print(out_, "BAD  {}\n", e.what());
      if (++bad_ == 1) first_ = e.what();
      return false;
    }
  }

  static std::string tensors(const std::string& path, const std::vector<NamedTensor>& all) {
    uint64_t bytes = 0;
    for (const auto& [name, value] : all) {
      check<DataError>(all_finite(value), path, ": '", name, "' holds NaN or infinity");
      bytes += value.bytes();
    }
    return fmt::format("{} tensors of {} bytes", all.size(), bytes);
  }

  std::string table_file(const std::string& dir, const ps::SavedTable& saved) {
    check_table_file(env_, dir, saved);
    const auto source = open_table_file(env_, dir, saved);
    ps::TableReader reader(*source);
    while (const auto block = reader.next()) {
      if (all_finite(block->images)) continue;
      const size_t width = reader.layout().floats(block->section);
      for (size_t i = 0; i < block->keys.size(); ++i)
        check<DataError>(all_finite(block->images.subspan(i * width, width)), source->what(),
                         ": the row of key ", block->keys[i], " holds NaN or infinity");
    }
    check<DataError>(source->left() == 0, source->what(), ": ", source->left(), " bytes too many");
    const ps::FileSum& sum = reader.sum();
    const bool noted = saved.sum.bytes > 0;
    check<DataError>(!noted || sum.rows == saved.sum.rows, source->what(), ": has ", sum.rows,
                     " rows, expected the ", saved.sum.rows, " that were saved");
    return fmt::format("{} rows of {} weights, sum {:016x}{}", sum.rows, reader.layout().dim,
                       sum.sum, noted ? "" : ", which the checkpoint has not noted");
  }

  std::string keys_of_parts(const std::string& dir, const std::vector<ps::SavedTable>& parts) {
    TableMerge merge(env_, dir, parts);
    while (merge.next()) continue;
    return fmt::format("each key in one of {} files", parts.size());
  }

  Env& env_;
  std::FILE* out_;
  size_t looked_ = 0, bad_ = 0;
  std::string first_;
};

}  // namespace

void verify_checkpoints(Env& env, const std::string& dir, std::FILE* out) {
  const std::vector<std::string> checkpoints = folders_with(dir, "persistables.argosy");
  const std::vector<std::string> exported = folders_with(dir, "inference.argosy");
  check<ConfigError>(!checkpoints.empty() || !exported.empty(), dir,
                     ": no model at or below it, expected persistables.argosy or inference.argosy");
  Verification verification(env, out);
  for (const std::string& folder : checkpoints) verification.checkpoint(folder);
  for (const std::string& folder : exported) verification.exported(folder + "/inference.argosy");
  verification.finish();
}

}  // namespace argosy
