#pragma once

#include <string>
#include <vector>

#include "argosy/base/settings.h"

namespace argosy {

/// One term of a network written in YAML, such as
///   mlp(concat(emb, dense), sizes=[400, 400], activation=relu) + wide
/// Sums and products become calls of add, sub, mul and div.
struct Expression {
  enum class Kind : uint8_t { name, number, text, list, call };

  Kind kind = Kind::name;
  std::string text = {};  // the name, the number as written, the text, or what is called
  std::vector<Expression> items = {};  // of a list; arguments of a call
  int column = 0;                      // in the line of the file, from 1
  std::string key = {};                // of an argument written as key=value
  int key_column = 0;                  // start of the argument, its key included
};

/// Throws ConfigError "FILE:LINE:COLUMN: ...", saying what was expected.
Expression parse_expression(const Setting& setting);

/// Throws ConfigError "FILE:LINE:COLUMN: network.h: ...".
template <class... Parts>
[[noreturn]] void fail_in(const Setting& setting, int column, const Parts&... parts) {
  if (setting.at.line == 0) fail_at(setting, parts...);
  fail<ConfigError>(setting.at, ":", column, ": ", setting.name, ": ", parts...);
}

}  // namespace argosy
