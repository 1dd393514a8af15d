#include "argosy/data/line_tally.h"

#include "argosy/base/error.h"

namespace argosy {

std::string BadLine::text() const { return file + ":" + std::to_string(line) + ": " + reason; }

LineTally::LineTally(double max_bad_ratio) : max_bad_ratio_(max_bad_ratio) {
  check<ConfigError>(max_bad_ratio >= 0 && max_bad_ratio <= 1, "max_bad_ratio ", max_bad_ratio,
                     ": expected 0 to 1");
}

void LineTally::bad(std::string_view file, uint64_t line, std::string_view reason) {
  ++lines_;
  ++bad_lines_;
  if (first_bad_.size() < kMostKept)
    first_bad_.push_back({std::string(file), line, std::string(reason)});
  if (lines_ >= kEnoughLines && too_many()) refuse();
}

void LineTally::finish() const {
  if (too_many()) refuse();
}

void LineTally::merge(const LineTally& other) {
  lines_ += other.lines_;
  bad_lines_ += other.bad_lines_;
  for (const BadLine& line : other.first_bad_)
    if (first_bad_.size() < kMostKept) first_bad_.push_back(line);
}

std::vector<std::string> LineTally::notes() const {
  if (bad_lines_ == 0) return {};
  return {std::to_string(bad_lines_) + " of " + std::to_string(lines_) +
          " lines are bad and were skipped, the first is " + first_bad_[0].text()};
}

void LineTally::refuse() const {
  constexpr size_t kMostShown = 3;
  std::string examples;
  for (size_t i = 0; i < first_bad_.size() && i < kMostShown; ++i)
    examples += "; " + first_bad_[i].text();
  fail<DataError>(bad_lines_, " of ", lines_, " lines are bad, max_bad_ratio allows ",
                  max_bad_ratio_, examples);
}

}  // namespace argosy
