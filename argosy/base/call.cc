#include "argosy/base/call.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "argosy/base/error.h"

namespace argosy {
namespace {

std::string trimmed(std::string_view s) {
  const auto first = s.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return std::string(s.substr(first, s.find_last_not_of(" \t") - first + 1));
}

bool is_name(std::string_view s) {
  const auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  return !s.empty() && !std::isdigit(static_cast<unsigned char>(s[0])) &&
         std::ranges::all_of(s, word);
}

/// Insertions, deletions, replacements and swaps of neighbours that turn a into b.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1), above(b.size() + 1), above_that(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    above_that.swap(above);
    above.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min(
          {above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1] ? size_t{1} : 0)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], above_that[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

bool is_plain_name(std::string_view name) {
  return !name.empty() && std::ranges::none_of(name, [](char c) {
    return (c >= 0 && c <= ' ') || c == 0x7f ||
           std::string_view(",()[]{}=\"").find(c) != std::string_view::npos;
  });
}

Call::Call(std::string_view text) : text_(text) {
  const auto open = text.find('(');
  name_ = trimmed(text.substr(0, open));
  check<ConfigError>(is_name(name_), "'", text, "': expected name or name(arguments)");
  if (open == std::string_view::npos) return;

  std::string rest = trimmed(text.substr(open + 1));
  check<ConfigError>(!rest.empty() && rest.back() == ')', "'", text, "': the closing ) is missing");
  rest = trimmed(std::string_view(rest).substr(0, rest.size() - 1));
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const std::string part = trimmed(std::string_view(rest).substr(0, comma));
    const auto equals = part.find('=');
    Argument argument = equals == std::string::npos ? Argument{"", part}
                                                    : Argument{trimmed(part.substr(0, equals)),
                                                               trimmed(part.substr(equals + 1))};
    check<ConfigError>(
        !argument.value.empty() && (equals == std::string::npos || is_name(argument.name)), "'",
        text, "': '", part, "' is not an argument");
    arguments_.push_back(std::move(argument));
    rest = comma == std::string::npos ? "" : trimmed(std::string_view(rest).substr(comma + 1));
  }
}

const Call::Argument* Call::find(size_t position, std::string_view name) const {
  size_t unnamed = 0;
  for (const Argument& argument : arguments_) {
    if (argument.name.empty() ? unnamed++ == position : argument.name == name) return &argument;
  }
  return nullptr;
}

double Call::to_number(const Argument& argument) const {
  double value = 0;
  const char* end = argument.value.data() + argument.value.size();
  const auto [stop, error] = std::from_chars(argument.value.data(), end, value);
  check<ConfigError>(error == std::errc() && stop == end, "'", text_, "': '", argument.value,
                     "' is not a number");
  return value;
}

double Call::number(size_t position, std::string_view name, double otherwise) const {
  const Argument* argument = find(position, name);
  return argument == nullptr ? otherwise : to_number(*argument);
}

double Call::number(size_t position, std::string_view name) const {
  const Argument* argument = find(position, name);
  check<ConfigError>(argument != nullptr, "'", text_, "': ", name_, " needs ", name);
  return to_number(*argument);
}

std::string Call::word(std::string_view name, std::string_view otherwise) const {
  const auto found = std::ranges::find(arguments_, name, &Argument::name);
  return std::string(found == arguments_.end() ? otherwise : found->value);
}

std::vector<double> Call::numbers() const {
  std::vector<double> values;
  for (const Argument& argument : arguments_)
    if (argument.name.empty()) values.push_back(to_number(argument));
  return values;
}

std::vector<std::string> Call::words() const {
  std::vector<std::string> values;
  for (const Argument& argument : arguments_)
    if (argument.name.empty()) values.push_back(argument.value);
  return values;
}

void Call::expect(std::string_view what, size_t positions,
                  std::initializer_list<std::string_view> names) const {
  const std::vector<std::string> known(names.begin(), names.end());
  size_t unnamed = 0;
  for (const Argument& argument : arguments_) {
    if (argument.name.empty()) {
      ++unnamed;
      continue;
    }
    if (std::ranges::find(known, argument.name) != known.end()) continue;
    const std::string near = nearest(argument.name, known);
    fail<ConfigError>("'", text_, "': ", what, " ", name_, " has no argument '", argument.name, "'",
                      near.empty() ? "" : ", did you mean " + near + "?");
  }
  check<ConfigError>(unnamed <= positions, "'", text_, "': ", what, " ", name_, " takes ",
                     positions, " values without a name, got ", unnamed);
}

std::string nearest(std::string_view name, const std::vector<std::string>& known) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, name.size() / 2);
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace argosy
