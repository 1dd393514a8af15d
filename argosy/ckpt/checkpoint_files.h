#pragma once

#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/file_source.h"
#include "argosy/ps/table_file.h"
#include "argosy/train/manifest.h"
#include "argosy/train/saved_model.h"

namespace argosy {

/// A checkpoint as its files have it, without a model that it belongs to.
struct CheckpointFiles {
  std::string dir;
  Manifest manifest;
  std::vector<NamedTensor> tensors;

  /// Names, each once, in the order of the manifest.
  std::vector<std::string> tables() const;
  /// Throws ConfigError with the nearest name for a table or a tensor that is not there.
  std::vector<ps::SavedTable> files_of(const std::string& table) const;
  const NamedTensor& tensor(const std::string& name) const;
};

/// Throws DataError or IoError; ConfigError where the folder has no checkpoint.
CheckpointFiles open_checkpoint(Env& env, const std::string& dir);

/// Folders at or below `dir` that hold the file, sorted.
std::vector<std::string> folders_with(const std::string& dir, const std::string& file);

/// A part of each image that means something by itself.
struct ImageColumn {
  std::string name;  // unseen, scores, weights or state
  size_t first = 0, size = 0;
};
std::vector<ImageColumn> columns_of(const ps::TableLayout& layout);

/// The rows of a table's files, in the order of their keys, then the keys that are still counted.
/// Throws DataError for a file that is not the one of the manifest, that is damaged or has rows of
/// another width, and for a key that is in two files.
class TableMerge {
 public:
  TableMerge(Env& env, const std::string& dir, std::span<const ps::SavedTable> files);

  struct Row {
    ps::Section section;
    Key key;
    std::span<const float> image;  // good until the next call
  };
  std::optional<Row> next();
  const ps::TableLayout& layout() const { return parts_.front()->reader.layout(); }

 private:
  struct Part {
    Part(Env& env, const std::string& dir, const ps::SavedTable& saved)
        : source(open_table_file(env, dir, saved)), reader(*source) {}
    std::unique_ptr<ByteReader> source;
    ps::TableReader reader;
    std::optional<ps::TableReader::Block> block;
    size_t at = 0;  // in the block
    uint64_t noted_rows = 0;
    bool has_note = false;
  };
  struct Head {
    ps::Section section;
    Key key;
    size_t part;
    auto operator<=>(const Head&) const = default;
  };
  void push_head(size_t part);

  std::vector<std::unique_ptr<Part>> parts_;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads_;
  std::optional<Head> last_;  // whose part has not moved on yet
};

}  // namespace argosy
