#include "argosy/data/lines.h"

#include <algorithm>
#include <cstring>

#include "argosy/base/error.h"

namespace argosy {

Lines::Lines(std::unique_ptr<ByteStream> bytes, LinesOptions options)
    : bytes_(std::move(bytes)), options_(options), block_(std::max<size_t>(options.block, 1)) {
  check<ConfigError>(options.longest_line > 0, "the longest line allowed must not be 0 bytes");
}

size_t Lines::find_end() const {
  const char* const from = block_.data() + at_ + searched_;
  const void* const found = std::memchr(from, '\n', end_ - at_ - searched_);
  if (found == nullptr) return kNone;
  return static_cast<size_t>(static_cast<const char*>(found) - block_.data()) - at_;
}

Line Lines::take(size_t size) {
  std::string_view text(block_.data() + at_, size);
  at_ = std::min(at_ + size + 1, end_);
  searched_ = 0;
  ++number_;
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (text.size() > options_.longest_line)
    return {{},
            "a line of " + std::to_string(text.size()) + " bytes, the limit is " +
                std::to_string(options_.longest_line)};
  if (may_hold_nul_)
    if (const size_t nul = text.find('\0'); nul != std::string_view::npos)
      return {{}, "a NUL at byte " + std::to_string(nul + 1)};
  return {text, {}};
}

std::optional<Line> Lines::next() {
  while (true) {
    const size_t size = find_end();
    if (size != kNone) return take(size);
    searched_ = end_ - at_;
    if (searched_ > options_.longest_line + 1) return skip_long_line();  // one more for a \r
    if (read_more()) continue;
    if (at_ == end_) return std::nullopt;
    return take(end_ - at_);
  }
}

/// Moves the start of a line to the front and fills the rest of the block; false at the end.
bool Lines::read_more() {
  if (ended_) return false;
  std::memmove(block_.data(), block_.data() + at_, end_ - at_);
  end_ -= at_;
  at_ = 0;
  if (end_ == block_.size()) block_.resize(2 * block_.size());
  const std::span<char> room = std::span(block_).subspan(end_);
  const size_t n =
      bytes_->read(room.first(std::min(room.size(), std::max<size_t>(options_.block, 1))));
  ended_ = n == 0;
  end_ += n;
  // Search the carried-over bytes again: they may hold a NUL too.
  may_hold_nul_ = std::memchr(block_.data(), '\0', end_) != nullptr;
  return !ended_;
}

Line Lines::skip_long_line() {
  uint64_t size = end_ - at_;
  at_ = end_;
  searched_ = 0;
  size_t found = kNone;
  while (read_more()) {
    found = find_end();
    if (found != kNone) break;
    size += end_;
    at_ = end_;
  }
  if (found != kNone) {
    size += found;
    at_ += found + 1;
  }
  ++number_;
  return {{},
          "a line of " + std::to_string(size) + " bytes, the limit is " +
              std::to_string(options_.longest_line)};
}

}  // namespace argosy
