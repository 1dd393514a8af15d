#include "argosy/data/file_lane.h"

#include "argosy/base/error.h"
#include "argosy/data/batcher.h"
#include "argosy/data/parse_lines.h"

namespace argosy {

std::unique_ptr<Parser> make_fitting_parser(const BatchLayout& layout, const FileOptions& options) {
  check<ConfigError>(!options.files.empty(), "a data set needs at least one file");
  check<ConfigError>(options.batch_size > 0, "batch_size must be positive");
  check<ConfigError>(options.threads > 0, "a data set needs at least one reading thread");
  auto parser = make_parser(options.parser, options.slots, layout);
  static_cast<void>(Batcher(layout, parser->slots()));
  return parser;
}

FileLane::FileLane(NextFile next, const FileOptions& options, const Parser& parser)
    : next_(std::move(next)), options_(options), parser_(parser), tally_(options.max_bad_ratio) {}

FileLane::NextFile one_after_another(std::vector<FileLane::File> files) {
  return [files = std::move(files), next = size_t{0}]() mutable -> std::optional<FileLane::File> {
    if (next == files.size()) return std::nullopt;
    return files[next++];
  };
}

bool FileLane::open_next(const std::stop_token& stop) {
  std::unique_ptr<ByteStream> stream;
  if (options_.pipe.command.empty()) {
    auto file = next_();
    if (!file) return false;
    file_ = std::move(*file);
    stream = open_file(file_.path, options_.source, stop);
  } else {
    if (!pipes_) {
      auto next_path = [this]() -> std::optional<std::string> {
        auto file = next_();
        if (!file) return std::nullopt;
        return piped_.emplace_back(std::move(*file)).path;
      };
      pipes_.emplace(std::move(next_path), options_.pipe, options_.source, stop);
    }
    stream = pipes_->next();
    if (stream == nullptr) return false;
    file_ = std::move(piped_.front());
    piped_.pop_front();
  }
  lines_.emplace(std::move(stream));
  while (lines_->number() < file_.skip) {
    if (lines_->next()) continue;
    fail<DataError>(file_.path, ": has ", lines_->number(), " lines, and an earlier run has read ",
                    file_.skip, ": it is another file");
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
    marks.push_back({file_.number, more ? lines_->number() : FileMark::kWhole});
    for (uint64_t line : numbers_) origins.push_back({file_.number, line});
    if (!more) lines_.reset();
  }
  return true;
}

}  // namespace argosy
