#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace argosy {

/// A setting written as a call: "adam(beta1=0.9)", "uniform(-0.1, 0.1)", "zeros". Rules,
/// initializers, schedules, regularizers and clips are named this way in programs, in YAML and
/// on the wire, so one small text means the same thing everywhere.
class Call {
 public:
  /// Throws ConfigError that quotes the text.
  explicit Call(std::string_view text);

  const std::string& name() const { return name_; }
  const std::string& text() const { return text_; }

  /// Argument by position or by name, else the default.
  double number(size_t position, std::string_view name, double otherwise) const;
  /// As above, for a required argument.
  double number(size_t position, std::string_view name) const;
  /// A word such as true or row; by name only.
  std::string word(std::string_view name, std::string_view otherwise) const;
  /// All arguments without a name.
  std::vector<double> numbers() const;
  std::vector<std::string> words() const;

  /// Throws unless every named argument is one of these and at most `positions` have no name.
  void expect(std::string_view what, size_t positions,
              std::initializer_list<std::string_view> names) const;

 private:
  struct Argument {
    std::string name, value;
  };
  const Argument* find(size_t position, std::string_view name) const;
  double to_number(const Argument& argument) const;

  std::string text_, name_;
  std::vector<Argument> arguments_;
};

/// Whether this can name a variable, parameter, table, slot or input. Program texts, saved models
/// and calls such as these are read word by word, so some characters would not be read back.
bool is_plain_name(std::string_view name);
inline constexpr std::string_view kPlainName =
    "expected a name without blanks, quotes, commas, brackets and =";

/// The name among `known` closest to `name`, for "did you mean"; empty when none is close.
std::string nearest(std::string_view name, const std::vector<std::string>& known);

}  // namespace argosy
