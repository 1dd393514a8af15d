#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "argosy/base/settings.h"

namespace argosy {

/// One key of a section: its destination, its values and its meaning. The parser, its messages and
/// the tables of docs/reference/config.md all come from lists of these.
template <class T>
struct ConfigKey {
  using Field =
      std::variant<std::monostate, bool T::*, int64_t T::*, double T::*, std::optional<double> T::*,
                   std::string T::*, std::vector<std::string> T::*>;

  std::string_view name;
  Field field;                    // none: the key is refused
  std::string_view meaning;       // of a refused key: why
  Limits limits = {};             // of a number
  std::string_view choices = {};  // of a text: "sync async geo"; empty: any
  bool path = false;              // a relative one is taken from the YAML's folder
  void (*check)(const Setting& setting, T& into) = nullptr;  // what else has to hold

  bool refused() const { return std::holds_alternative<std::monostate>(field); }
};

/// "True or False", "a whole number of at least 1", "one of a, b".
template <class T>
std::string wanted(const ConfigKey<T>& key);

/// Reads a map of settings by its keys. Adds the dotted names of those that were given to `given`.
/// Throws ConfigError for an unknown key, a value that does not fit, and a refused key, unless
/// its value asks for nothing: False, 0, an empty text or an empty list.
template <class T>
void read_keys(std::span<const ConfigKey<T>> keys, const Setting& map, const std::string& folder,
               T& into, std::set<std::string>& given);

/// Rows of a Markdown table: key, what is expected, default and meaning of those that are taken;
/// key and reason of those that are refused.
template <class T>
std::string taken_rows(std::span<const ConfigKey<T>> keys);
template <class T>
std::string refused_rows(std::span<const ConfigKey<T>> keys);

/// The value of each given key, as "name value" pairs in the order of the table.
template <class T>
std::vector<std::pair<std::string, std::string>> given_values(std::span<const ConfigKey<T>> keys,
                                                              const std::string& section,
                                                              const T& from,
                                                              const std::set<std::string>& given);

namespace keys_detail {

bool asks_for_nothing(const Setting& setting);
std::string in_folder(const std::string& folder, const std::string& path);
std::vector<std::string> words(std::string_view text);
/// ", did you mean async?", or nothing.
std::string did_you_mean(std::string_view text, const std::vector<std::string>& choices);
std::string shown(bool value);
std::string shown(int64_t value);
std::string shown(double value);
std::string shown(const std::optional<double>& value);
std::string shown(const std::string& value);
std::string shown(const std::vector<std::string>& value);

template <class T>
std::string shown(const ConfigKey<T>& key, const T& of) {
  return std::visit(
      [&of](auto member) -> std::string {
        if constexpr (std::is_same_v<decltype(member), std::monostate>)
          return "";
        else
          return shown(of.*member);
      },
      key.field);
}

/// Reads a setting into a member of any of the types a key may have.
template <class T>
struct Reader {
  const ConfigKey<T>& key;
  const Setting& setting;
  const std::string& folder;
  T& into;

  void operator()(std::monostate) const {
    if (!asks_for_nothing(setting)) fail_at(setting, "refused: ", key.meaning);
  }
  void operator()(bool T::*member) const { into.*member = read_flag(setting); }
  void operator()(int64_t T::*member) const { into.*member = read_integer(setting, key.limits); }
  void operator()(double T::*member) const { into.*member = read_real(setting, key.limits); }
  void operator()(std::optional<double> T::*member) const {
    into.*member = read_real(setting, key.limits);
  }
  void operator()(std::vector<std::string> T::*member) const { into.*member = read_texts(setting); }
  void operator()(std::string T::*member) const {
    const std::string& text = read_text(setting);
    const std::vector<std::string> choices = words(key.choices);
    if (!choices.empty() && std::ranges::find(choices, text) == choices.end())
      fail_at(setting, "expected ", wanted(key), ", got '", text, "'",
              keys_detail::did_you_mean(text, choices));
    into.*member = key.path ? in_folder(folder, text) : text;
  }
};

}  // namespace keys_detail

template <class T>
std::string wanted(const ConfigKey<T>& key) {
  struct Visitor {
    const ConfigKey<T>& key;
    std::string operator()(std::monostate) const { return ""; }
    std::string operator()(bool T::*) const { return "True or False"; }
    std::string operator()(int64_t T::*) const { return wanted_integer(key.limits); }
    std::string operator()(double T::*) const { return wanted_real(key.limits); }
    std::string operator()(std::optional<double> T::*) const { return wanted_real(key.limits); }
    std::string operator()(std::vector<std::string> T::*) const { return "a list of texts"; }
    std::string operator()(std::string T::*) const {
      if (key.path) return "a path";
      std::string text;
      for (const std::string& word : keys_detail::words(key.choices))
        text += (text.empty() ? "one of " : ", ") + word;
      return text.empty() ? "a text" : text;
    }
  };
  return std::visit(Visitor{key}, key.field);
}

template <class T>
void read_keys(std::span<const ConfigKey<T>> keys, const Setting& map, const std::string& folder,
               T& into, std::set<std::string>& given) {
  for (const Setting& setting : expect_map(map).items) {
    const auto key = std::ranges::find(keys, setting.key(), &ConfigKey<T>::name);
    if (key == keys.end()) {
      std::vector<std::string> names;
      names.reserve(keys.size());
      for (const ConfigKey<T>& known : keys) names.emplace_back(known.name);
      fail_unknown_key(setting, names);
    }
    if (!setting.given()) continue;  // "key:" leaves the default
    std::visit(keys_detail::Reader<T>{*key, setting, folder, into}, key->field);
    if (key->check != nullptr) key->check(setting, into);
    given.insert(setting.name);
  }
}

template <class T>
std::string taken_rows(std::span<const ConfigKey<T>> keys) {
  std::string rows;
  for (const ConfigKey<T>& key : keys) {
    if (key.refused()) continue;
    const std::string value = keys_detail::shown(key, T{});
    rows += "| `" + std::string(key.name) + "` | " + wanted(key) + " | " +
            (value.empty() ? "" : "`" + value + "`") + " | " + std::string(key.meaning) + " |\n";
  }
  return rows;
}

template <class T>
std::string refused_rows(std::span<const ConfigKey<T>> keys) {
  std::string rows;
  for (const ConfigKey<T>& key : keys)
    if (key.refused())
      rows += "| `" + std::string(key.name) + "` | " + std::string(key.meaning) + " |\n";
  return rows;
}

template <class T>
std::vector<std::pair<std::string, std::string>> given_values(std::span<const ConfigKey<T>> keys,
                                                              const std::string& section,
                                                              const T& from,
                                                              const std::set<std::string>& given) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const ConfigKey<T>& key : keys) {
    std::string name = section + "." + std::string(key.name);
    if (!key.refused() && given.contains(name))
      values.emplace_back(std::move(name), keys_detail::shown(key, from));
  }
  return values;
}

}  // namespace argosy
