#include "argosy/net/endpoint.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "argosy/base/error.h"

namespace argosy {
namespace {

constexpr size_t kLongestName = 253;  // of a host, by the rules of DNS

bool is_address(int family, const std::string& text) {
  std::array<std::byte, sizeof(in6_addr)> ignored;
  return ::inet_pton(family, text.c_str(), ignored.data()) == 1;
}

/// Accepts a zone suffix: "fe80::1%eth0".
bool is_ipv6(const std::string& text) {
  return is_address(AF_INET6, text.substr(0, text.find('%')));
}

bool is_name(const std::string& text) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
  };
  return !text.empty() && text.size() <= kLongestName && text.front() != '.' &&
         text.front() != '-' && std::ranges::all_of(text, allowed);
}

/// Digits and dots only: an IPv4 address or a mistyped one, never a name.
bool looks_like_ipv4(const std::string& text) {
  return std::ranges::all_of(text,
                             [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; });
}

}  // namespace

std::string Endpoint::text() const {
  const bool bare = host.find(':') == std::string::npos;
  return (bare ? host : "[" + host + "]") + ":" + std::to_string(port);
}

Endpoint parse_endpoint(std::string_view text) {
  const auto expect = [&](bool ok, const char* what) {
    check<ConfigError>(ok, "endpoint '", text, "': ", what);
  };
  const size_t colon = text.rfind(':');
  expect(colon != std::string_view::npos && colon > 0,
         "expected HOST:PORT, such as 10.0.0.1:7000, [::1]:7000 or name:7000");
  const std::string_view host = text.substr(0, colon), port = text.substr(colon + 1);

  Endpoint endpoint;
  const char* end = port.data() + port.size();
  const auto parsed = std::from_chars(port.data(), end, endpoint.port);
  expect(!port.empty() && parsed.ec == std::errc() && parsed.ptr == end,
         "expected a port of 0 to 65535 behind the last colon");

  if (host.front() == '[') {
    expect(host.back() == ']', "expected ']' behind the IPv6 address");
    endpoint.host = host.substr(1, host.size() - 2);
    expect(is_ipv6(endpoint.host), "expected an IPv6 address between the brackets");
    return endpoint;
  }
  endpoint.host = host;
  expect(host.find(':') == std::string_view::npos,
         "expected brackets around an IPv6 address, such as [::1]:7000");
  if (looks_like_ipv4(endpoint.host))
    expect(is_address(AF_INET, endpoint.host), "expected four numbers of 0 to 255 in the address");
  else
    expect(is_name(endpoint.host), "expected a host name of letters, digits, '-', '_' and '.'");
  return endpoint;
}

std::vector<Endpoint> parse_endpoints(std::string_view text) {
  std::vector<Endpoint> endpoints;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    check<ConfigError>(end > begin, "endpoints '", text, "': number ", endpoints.size() + 1,
                       " is empty, expected HOST:PORT");
    const Endpoint next = parse_endpoint(text.substr(begin, end - begin));
    check<ConfigError>(std::ranges::find(endpoints, next) == endpoints.end(), "endpoints '", text,
                       "': ", next.text(), " comes twice, expected each once");
    endpoints.push_back(next);
    begin = end + 1;
  }
  return endpoints;
}

}  // namespace argosy
