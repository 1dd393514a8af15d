#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/error.h"

/// Parsers of flag values; a bad value is a ConfigError that names the flag.
namespace argosy::launch {

inline std::vector<std::string> split(const std::string& list, char separator = ',') {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(separator, begin), list.size());
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

inline int number_in(const char* flag, const std::string& text, int least) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check<ConfigError>(error == std::errc() && end == text.data() + text.size() && value >= least,
                     flag, " is '", text, "', expected a number of at least ", least);
  return value;
}

/// Repeats f's ConfigError with the flag it is about.
template <class F>
auto named(const char* flag, F f) {
  try {
    return f();
  } catch (const ConfigError& e) {
    fail<ConfigError>(flag, ": ", e.what());
  }
}

inline void check_number(const std::optional<int>& number, const char* flag, int least = 1) {
  check<ConfigError>(!number || *number >= least, flag, " is ", number.value_or(0),
                     ", expected at least ", least);
}

inline void check_port(const std::optional<int>& port, const char* flag) {
  check<ConfigError>(!port || (*port > 0 && *port <= UINT16_MAX), flag, " is ", port.value_or(0),
                     ", expected a port number from 1 to 65535");
}

}  // namespace argosy::launch
