#pragma once

#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace argosy {

/// The whole of a small file such as those of /proc; "" where it cannot be read.
inline std::string content_of(const std::string& path) {
  std::ostringstream text;  // an iterator would throw where the process is gone meanwhile
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// The number that a text begins with; nothing: it is something else, such as "max".
inline std::optional<uint64_t> leading_number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

/// Splits at white space.
inline std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

}  // namespace argosy
