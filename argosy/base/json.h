#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace argosy {

/// A text as JSON has it, with its quotes. Bytes that are not ASCII are taken for UTF-8.
inline std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    constexpr unsigned char kSpace = 0x20;
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < kSpace)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + '"';
}

inline std::string json_list(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + json_string(text);
  return "[" + out + "]";
}

}  // namespace argosy
