#pragma once

#include <deque>
#include <functional>
#include <optional>

#include "argosy/data/file_dataset.h"
#include "argosy/data/lines.h"

namespace argosy {

/// The parser of the options. Throws ConfigError for inconsistent options, and for slots that do
/// not match the layout.
std::unique_ptr<Parser> make_fitting_parser(const BatchLayout& layout, const FileOptions& options);

/// Reads files one after the other: what one reading thread does.
class FileLane {
 public:
  struct File {
    uint32_t number;
    std::string path;
    uint64_t skip = 0;  // lines that are done with
  };
  /// One file after another, then absent; called by the reading thread.
  using NextFile = std::function<std::optional<File>()>;
  FileLane(NextFile next, const FileOptions& options, const Parser& parser);

  /// Adds instances until there are `rows` of them; false once the files are at their end. Marks
  /// every file it took lines from, and gives the origin of each instance in an audit.
  bool read(size_t rows, Columns& out, std::vector<FileMark>& marks, std::vector<Origin>& origins,
            const std::stop_token& stop);
  const LineTally& tally() const { return tally_; }

 private:
  bool open_next(const std::stop_token& stop);

  NextFile next_;
  const FileOptions& options_;
  const Parser& parser_;
  LineTally tally_;
  std::deque<File> piped_;           // given to pipes_ and not read yet
  std::optional<PipedFiles> pipes_;  // made by the thread that reads
  File file_ = {};
  std::optional<Lines> lines_;  // of file_
  std::vector<uint64_t> numbers_;
};

FileLane::NextFile one_after_another(std::vector<FileLane::File> files);

}  // namespace argosy
