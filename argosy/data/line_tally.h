#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace argosy {

struct BadLine {
  std::string file;
  uint64_t line = 0;
  std::string reason;
  std::string text() const;  // file:line: reason
};

/// Counts lines, keeps the first bad ones, and ends a run that meets too many of them. One per
/// reading thread; merge() joins them.
class LineTally {
 public:
  /// Bad lines up to this share are skipped; the share is looked at from kEnoughLines on and in
  /// finish().
  explicit LineTally(double max_bad_ratio = 0.01);

  void good() { ++lines_; }
  /// Throws DataError with the first bad lines once there are too many.
  void bad(std::string_view file, uint64_t line, std::string_view reason);
  /// To be called when all lines are counted: throws as bad() does, however few they were.
  void finish() const;
  void merge(const LineTally& other);

  uint64_t lines() const { return lines_; }  // good and bad
  uint64_t bad_lines() const { return bad_lines_; }
  /// The first kMostKept.
  const std::vector<BadLine>& first_bad() const { return first_bad_; }
  /// For a user, after an epoch: how many lines were skipped, and the first of them.
  std::vector<std::string> notes() const;

  static constexpr uint64_t kEnoughLines = 500;
  static constexpr size_t kMostKept = 10;

 private:
  bool too_many() const {
    return static_cast<double>(bad_lines_) > max_bad_ratio_ * static_cast<double>(lines_);
  }
  [[noreturn]] void refuse() const;

  double max_bad_ratio_;
  uint64_t lines_ = 0, bad_lines_ = 0;
  std::vector<BadLine> first_bad_;
};

}  // namespace argosy
