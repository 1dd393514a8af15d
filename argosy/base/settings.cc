#include "argosy/base/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace argosy {
namespace {

std::string found(const Setting& setting) {
  switch (setting.kind) {
    case Setting::Kind::null:
      return "nothing";
    case Setting::Kind::scalar:
      return "'" + setting.text + "'";
    case Setting::Kind::list:
      return "a list";
    case Setting::Kind::map:
      break;
  }
  return "a map of keys";
}

[[noreturn]] void wrong(const Setting& setting, std::string_view wanted) {
  fail_at(setting, "expected ", wanted, ", got ", found(setting));
}

std::string between(std::string what, const Limits& limits) {
  const auto text = [](double value) {
    std::ostringstream out;
    out.precision(17);
    out << value;
    return out.str();
  };
  if (std::isfinite(limits.low) && std::isfinite(limits.high))
    return what + " from " + text(limits.low) + " to " + text(limits.high);
  if (std::isfinite(limits.low)) return what + " of at least " + text(limits.low);
  if (std::isfinite(limits.high)) return what + " of at most " + text(limits.high);
  return what;
}

/// Parses the whole text as a number of this type; false if it is none.
template <class T>
bool parse_number(std::string_view text, T& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return result;
}

}  // namespace

std::string_view Setting::key() const {
  const auto dot = name.rfind('.');
  return dot == std::string::npos ? std::string_view(name) : std::string_view(name).substr(dot + 1);
}

const Setting* Setting::find(std::string_view key) const {
  const auto item = std::ranges::find(items, key, &Setting::key);
  return kind == Kind::map && item != items.end() ? &*item : nullptr;
}

std::string wanted_integer(const Limits& limits) { return between("a whole number", limits); }
std::string wanted_real(const Limits& limits) { return between("a number", limits); }

bool read_flag(const Setting& setting) {
  constexpr std::array<std::string_view, 4> kYes = {"true", "yes", "on", "1"};
  constexpr std::array<std::string_view, 4> kNo = {"false", "no", "off", "0"};
  const std::string text = lower(setting.text);
  if (setting.kind == Setting::Kind::scalar) {
    if (std::ranges::find(kYes, text) != kYes.end()) return true;
    if (std::ranges::find(kNo, text) != kNo.end()) return false;
  }
  wrong(setting, "True or False");
}

int64_t read_integer(const Setting& setting, const Limits& limits) {
  int64_t value = 0;
  const bool ok = setting.kind == Setting::Kind::scalar && parse_number(setting.text, value) &&
                  static_cast<double>(value) >= limits.low &&
                  static_cast<double>(value) <= limits.high;
  if (!ok) wrong(setting, wanted_integer(limits));
  return value;
}

double read_real(const Setting& setting, const Limits& limits) {
  double value = 0;
  const bool ok = setting.kind == Setting::Kind::scalar && parse_number(setting.text, value) &&
                  std::isfinite(value) && value >= limits.low && value <= limits.high;
  if (!ok) wrong(setting, wanted_real(limits));
  return value;
}

const std::string& read_text(const Setting& setting) {
  if (setting.kind != Setting::Kind::scalar) wrong(setting, "a text");
  return setting.text;
}

std::vector<int64_t> read_integers(const Setting& setting, const Limits& limits) {
  if (setting.kind != Setting::Kind::list) wrong(setting, "a list of whole numbers, as [400, 400]");
  std::vector<int64_t> values;
  values.reserve(setting.items.size());
  for (const Setting& item : setting.items) values.push_back(read_integer(item, limits));
  return values;
}

std::vector<std::string> read_texts(const Setting& setting) {
  if (setting.kind != Setting::Kind::list) wrong(setting, "a list of texts, as [a, b]");
  std::vector<std::string> values;
  values.reserve(setting.items.size());
  for (const Setting& item : setting.items) values.push_back(read_text(item));
  return values;
}

const Setting& expect_map(const Setting& setting) {
  if (setting.kind != Setting::Kind::map) wrong(setting, "keys with values below it");
  return setting;
}

void fail_unknown_key(const Setting& setting, const std::vector<std::string>& known) {
  const std::string near = nearest(setting.key(), known);
  const std::string section = setting.name.substr(0, setting.name.size() - setting.key().size());
  fail<ConfigError>(setting.at, ": unknown key ", setting.name,
                    near.empty() ? "" : ", did you mean " + section + near + "?");
}

std::vector<std::string> expand_range(std::string_view text) {
  constexpr int64_t kMost = 100'000;
  const auto dots = text.find("..");
  if (dots == std::string_view::npos) return {std::string(text)};
  const auto split = [](std::string_view part) {  // into its name and the digits after it
    const auto last = part.find_last_not_of("0123456789");
    const size_t digits = last == std::string_view::npos ? 0 : last + 1;
    return std::pair(part.substr(0, digits), part.substr(digits));
  };
  const auto [prefix, first_digits] = split(text.substr(0, dots));
  const auto [end_prefix, last_digits] = split(text.substr(dots + 2));
  const bool padded = first_digits.size() > 1 && first_digits.front() == '0';  // C01..C26
  int64_t first = 0, last = 0;
  check<ConfigError>(prefix == end_prefix && !padded && parse_number(first_digits, first) &&
                         parse_number(last_digits, last) && first <= last && last - first < kMost,
                     "'", text, "': expected a range such as C1..C26");
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(last - first) + 1);
  for (int64_t i = first; i <= last; ++i) names.push_back(std::string(prefix) + std::to_string(i));
  return names;
}

std::string one_line(const Setting& setting) {
  if (setting.kind == Setting::Kind::null) return "null";
  if (setting.kind == Setting::Kind::scalar) return setting.text;
  const bool map = setting.kind == Setting::Kind::map;
  std::string text;
  for (const Setting& item : setting.items) {
    if (!text.empty()) text += ", ";
    if (map) text += std::string(item.key()) + ": ";
    text += one_line(item);
  }
  return map ? "{" + text + "}" : "[" + text + "]";
}

}  // namespace argosy
