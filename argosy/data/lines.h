#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/data/byte_stream.h"

namespace argosy {

/// One line without its end ("\n" or "\r\n"), or the reason why it is bad.
struct Line {
  std::string_view text;  // valid until the next line is asked for
  std::string bad;        // empty, or: too long, holds a NUL
};

struct LinesOptions {
  size_t block = 1 << 18;         // bytes asked for at once; about what the second cache holds
  size_t longest_line = 1 << 20;  // a longer one is bad, and skipped without being held
};

/// Cuts a stream into lines: views into a block that is read whole, so that only a line across
/// the border of two blocks is copied. A last line needs no end. Memory is bounded by one block
/// and the longest line.
class Lines {
 public:
  explicit Lines(std::unique_ptr<ByteStream> bytes, LinesOptions options = {});

  /// Absent at the end. Throws what the stream throws.
  std::optional<Line> next();
  /// Number of the line given last; the first is 1.
  uint64_t number() const { return number_; }
  const std::string& name() const { return bytes_->name(); }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  /// Bytes before the next end of line that the block holds, or kNone.
  size_t find_end() const;
  Line take(size_t size);
  bool read_more();
  Line skip_long_line();

  std::unique_ptr<ByteStream> bytes_;
  LinesOptions options_;
  std::vector<char> block_;
  size_t at_ = 0, end_ = 0;  // what of the block is not given out yet
  size_t searched_ = 0;      // from at_ on, bytes known to hold no end of line
  uint64_t number_ = 0;
  bool may_hold_nul_ = false, ended_ = false;
};

}  // namespace argosy
