#include "argosy/data/file_lane.h"

#include "argosy/base/error.h"
#include "argosy/data/batcher.h"
#include "argosy/data/parse_lines.h"

namespace argosy {

std::unique_ptr<Parser> make_fitting_parser(const BatchLayout& layout, const FileOptions& options) {
  check<ConfigError>(!options.files.empty(), "a data set needs at least one file");
  check<ConfigError>(options.batch_size > 0, "batch_size must be positive");
  check<ConfigError>(options.threads > 0, "a data set needs at least one reading thread");
  auto parser = make_parser(options.parser, options.slots);
  static_cast<void>(Batcher(layout, parser->slots()));
  return parser;
}

FileLane::FileLane(std::vector<File> files, const FileOptions& options, const Parser& parser)
    : files_(std::move(files)), options_(options), parser_(parser), tally_(options.max_bad_ratio) {}

bool FileLane::open_next(const std::stop_token& stop) {
  if (at_ == files_.size()) return false;
  std::unique_ptr<ByteStream> stream;
  if (options_.pipe.command.empty()) {
    stream = open_file(files_[at_].path);
  } else {
    if (!pipes_) {
      auto next_path = [this, next = at_]() mutable {
        return next < files_.size() ? std::optional(files_[next++].path) : std::nullopt;
      };
      pipes_.emplace(std::move(next_path), options_.pipe, stop);
    }
    stream = pipes_->next();
  }
  lines_.emplace(std::move(stream));
  const File& file = files_[at_++];
  while (lines_->number() < file.skip) {
    if (lines_->next()) continue;
    fail<DataError>(file.path, ": has ", lines_->number(), " lines, and an earlier run has read ",
                    file.skip, ": it is another file");
  }
  return true;
}

bool FileLane::read(size_t rows, Columns& out, std::vector<FileMark>& marks,
                    std::vector<Origin>& origins, const std::stop_token& stop) {
  while (out.rows() < rows) {
    if (!lines_ && !open_next(stop)) return false;
    numbers_.clear();
    const bool more =
        parse_lines(*lines_, parser_, rows, out, tally_, options_.audit ? &numbers_ : nullptr);
    const uint32_t file = files_[at_ - 1].number;
    marks.push_back({file, more ? lines_->number() : FileMark::kWhole});
    for (uint64_t line : numbers_) origins.push_back({file, line});
    if (!more) lines_.reset();
  }
  return true;
}

}  // namespace argosy
