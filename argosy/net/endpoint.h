#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace argosy {

/// An address to listen at: host name, IPv4 or IPv6 address, and port.
struct Endpoint {
  std::string host;
  uint16_t port = 0;  // 0 to listen: any that is free
  /// "host:7000"; an IPv6 address in brackets: "[::1]:7000".
  std::string text() const;
  auto operator<=>(const Endpoint&) const = default;
};

/// Throws ConfigError that quotes the text and says what was expected.
Endpoint parse_endpoint(std::string_view text);
/// Separated by commas; none may be empty or come twice.
std::vector<Endpoint> parse_endpoints(std::string_view text);

}  // namespace argosy
