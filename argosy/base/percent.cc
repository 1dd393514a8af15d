#include "argosy/base/percent.h"

#include <charconv>

namespace argosy {

std::string percent_escape(std::string_view text, bool (*plain)(char)) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : text) {
    if (c != '%' && plain(c)) {
      escaped += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    escaped += '%';
    escaped += kDigits[byte / 16];
    escaped += kDigits[byte % 16];
  }
  return escaped;
}

std::optional<std::string> percent_unescape(std::string_view escaped) {
  std::string text;
  for (size_t at = 0; at < escaped.size(); ++at) {
    if (escaped[at] != '%') {
      text += escaped[at];
      continue;
    }
    const std::string_view digits = escaped.substr(at + 1, 2);
    unsigned char byte = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2) return std::nullopt;
    text += static_cast<char>(byte);
    at += 2;
  }
  return text;
}

}  // namespace argosy
