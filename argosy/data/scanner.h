#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "argosy/base/bytes.h"

namespace argosy {

/// Walks the text of one line. Numbers are read eight digits at a time, without a branch per
/// digit, and no byte outside of the line is touched. A small value that is passed as such: a
/// scanner whose address is taken would live in memory, at a third of the speed.
class Scanner {
 public:
  /// Copy of a line of less than eight bytes.
  using Pad = std::array<char, sizeof(uint64_t)>;

  /// Line and pad outlive the scanner.
  Scanner(std::string_view line, Pad& pad) : begin_(line.data()) {
    if (line.size() < pad.size()) {
      pad.fill(0);
      std::copy(line.begin(), line.end(), pad.begin());
      begin_ = pad.data();
    }
    at_ = begin_;
    end_ = begin_ + line.size();
    last_word_ = end_ - std::min(line.size(), pad.size());
  }

  bool at_end() const { return at_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  /// The rest that is not read yet.
  std::string_view rest() const { return {at_, left()}; }
  size_t column() const { return static_cast<size_t>(at_ - begin_) + 1; }  // 1 = first byte
  void move_to(size_t column) { at_ = begin_ + (column - 1); }
  void skip(size_t n) { at_ += n; }

  bool skip_if(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  void skip_blanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t')) ++at_;
  }
  /// Passes one or more blanks; the end of the line will do as well.
  bool skip_separator() {
    if (at_ == end_) return true;
    if (*at_ != ' ' && *at_ != '\t') return false;
    ++at_;
    skip_blanks();
    return true;
  }

  /// One digit and a blank: nearly every count of the MultiSlot text.
  std::optional<uint64_t> small_count() {
    if (left() < 2 || at_[1] != ' ' || at_[0] < '0' || at_[0] > '9') return std::nullopt;
    const auto value = static_cast<uint64_t>(at_[0] - '0');
    ++at_;
    return value;
  }

  /// A decimal id of the full uint64 range; a negative int64 is read as uint64. Absent, without
  /// advancing, if there is none or it is out of range.
  std::optional<uint64_t> id() {
    if (at_ == end_) return std::nullopt;
    if (*at_ == '-') [[unlikely]]
      return take(negative_id(at_, end_));
    const uint64_t digits = word(at_) ^ kZeros;
    const unsigned n = leading_digits(digits);
    if (n == 0) return std::nullopt;
    const uint64_t value = eight_digits(digits << (64 - 8 * n));
    if (n == 8 && at_ + 8 != end_ && is_digit(at_[8])) return take(long_id(at_, end_));
    at_ += n;
    return value;
  }

  /// A finite decimal number, correctly rounded; else as id().
  std::optional<float> real() {
    if (at_ == end_) return std::nullopt;
    const bool negative = *at_ == '-';
    const char* const start = at_ + (negative ? 1 : 0);
    if (start == end_) return std::nullopt;
    const uint64_t digits = word(start) ^ kZeros;
    const uint64_t others = not_digits(digits);
    const unsigned before = first_byte(others);  // digits before the point
    if (before == 8) return take(long_real(at_, end_));
    unsigned length = before, decimals = 0;
    uint64_t joined = digits;
    if (byte_of(digits, before) == ('.' ^ '0')) {
      length = first_byte(others & (others - 1));
      decimals = length - before - 1;
      const uint64_t low = (uint64_t{1} << (8 * before)) - 1;
      joined = (digits & low) | ((digits >> 8) & ~low);
    }
    const unsigned count = before + decimals;
    if (count == 0 || continues(start, length)) return take(long_real(at_, end_));
    // At most seven digits and 10^7 are exact as floats, so the quotient is correctly rounded.
    const auto whole = static_cast<int64_t>(eight_digits(joined << (64 - 8 * count)));
    const auto value = static_cast<float>(whole);  // signed: one instruction
    at_ = start + length;
    return (negative ? -value : value) / kPowers[decimals];
  }

  /// The word at the cursor, quoted and shortened for a message: 'abc', or "the end of the line".
  std::string found() const;

 private:
  static constexpr uint64_t kZeros = 0x3030303030303030;
  static constexpr std::array<float, 8> kPowers = {1e0F, 1e1F, 1e2F, 1e3F, 1e4F, 1e5F, 1e6F, 1e7F};

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  /// The high bit of each byte that is not 0 to 9. Bytes after one above 0x89 may be marked
  /// wrongly, so only what comes up to such a byte counts.
  static uint64_t not_digits(uint64_t digits) {
    return ((digits + 0x7676767676767676) | digits) & 0x8080808080808080;
  }
  static unsigned first_byte(uint64_t marks) {
    return static_cast<unsigned>(std::countr_zero(marks)) / 8;
  }
  static unsigned leading_digits(uint64_t digits) { return first_byte(not_digits(digits)); }
  static unsigned byte_of(uint64_t word, unsigned i) { return (word >> (8 * i)) & 0xFF; }
  /// The value of eight bytes 0 to 9, the most significant first.
  static uint64_t eight_digits(uint64_t digits) {
    digits = digits * 10 + (digits >> 8);
    constexpr uint64_t kPairs = 0x000000FF000000FF;
    return ((digits & kPairs) * 0x000F424000000064 +
            ((digits >> 16) & kPairs) * 0x0000271000000001) >>
           32;
  }
  /// Eight bytes from `at`, which is inside the line, with zeros for what lies beyond its end.
  uint64_t word(const char* at) const {
    const char* const from = std::min(at, last_word_);
    uint64_t bytes = 0;
    std::memcpy(&bytes, from, sizeof(bytes));
    return bytes >> (8 * (at - from));
  }
  /// Whether a number may go on after the `length` bytes looked at.
  bool continues(const char* start, unsigned length) const {
    if (start + length == end_) return false;
    const char next = start[length];
    return is_digit(next) || next == '.' || (next | 0x20) == 'e';
  }

  /// A number and its end; null if there is none.
  template <class T>
  struct Read {
    T value = 0;
    const char* stop = nullptr;
  };
  template <class T>
  std::optional<T> take(const Read<T>& read) {
    if (read.stop == nullptr) return std::nullopt;
    at_ = read.stop;
    return read.value;
  }
  static Read<uint64_t> negative_id(const char* at, const char* end);
  static Read<uint64_t> long_id(const char* at, const char* end);
  static Read<float> long_real(const char* at, const char* end);

  const char *begin_, *at_, *end_, *last_word_;
};

/// 'text' for a message: cut after a few bytes, and with ? for what cannot be printed.
std::string quoted(std::string_view text);

}  // namespace argosy
