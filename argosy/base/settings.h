#pragma once

#include <cstdint>
#include <limits>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/call.h"
#include "argosy/base/error.h"

namespace argosy {

/// The origin of a setting: a line of a file, or an option of the command line.
struct Place {
  std::string source = {};   // "models/rank/dnn/config.yaml" or "-o runner.epochs=2"
  int line = 0, column = 0;  // from 1; 0: the source has no lines

  friend std::ostream& operator<<(std::ostream& out, const Place& at) {
    out << at.source;
    return at.line > 0 ? out << ':' << at.line : out;
  }
};

/// One value of a configuration, its dotted name and its place: what a YAML file holds, without
/// the YAML. Quotes make no difference; who reads a value says what it has to be.
struct Setting {
  enum class Kind : uint8_t { null, scalar, list, map };

  Kind kind = Kind::null;
  std::string name = {};            // "runner.epochs"; empty for the whole file
  std::string text = {};            // of a scalar
  std::vector<Setting> items = {};  // of a list or a map, in the order of the file
  Place at = {};

  std::string_view key() const;  // the last part of the name
  const Setting* find(std::string_view key) const;
  bool given() const { return kind != Kind::null; }
};

/// Throws ConfigError "models/rank/dnn/config.yaml:12: runner.epochs: ...".
template <class... Parts>
[[noreturn]] void fail_at(const Setting& setting, const Parts&... parts) {
  fail<ConfigError>(setting.at, ": ", setting.name, ": ", parts...);
}

/// Whole numbers or reals that a setting may take, both ends included.
struct Limits {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};
/// "a whole number of at least 1".
std::string wanted_integer(const Limits& limits);
std::string wanted_real(const Limits& limits);

// Each throws ConfigError with the expected and the actual value.
bool read_flag(const Setting& setting);
int64_t read_integer(const Setting& setting, const Limits& limits = {});
double read_real(const Setting& setting, const Limits& limits = {});
const std::string& read_text(const Setting& setting);
std::vector<int64_t> read_integers(const Setting& setting, const Limits& limits = {});
std::vector<std::string> read_texts(const Setting& setting);
const Setting& expect_map(const Setting& setting);

/// Throws "FILE:LINE: unknown key runner.epoch, did you mean runner.epochs?".
[[noreturn]] void fail_unknown_key(const Setting& setting, const std::vector<std::string>& known);

/// "C1..C26" as C1, C2, ... C26; any other text as itself. Throws ConfigError that quotes the text.
std::vector<std::string> expand_range(std::string_view text);

/// The setting as YAML on one line, for messages and print-outs.
std::string one_line(const Setting& setting);

}  // namespace argosy
