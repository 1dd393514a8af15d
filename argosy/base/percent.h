#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace argosy {

/// The text with %XX for each byte that is not plain; '%' never is.
std::string percent_escape(std::string_view text, bool (*plain)(char));
/// Inverts the escaping; absent if a '%' is not followed by two hexadecimal digits.
std::optional<std::string> percent_unescape(std::string_view escaped);

}  // namespace argosy
