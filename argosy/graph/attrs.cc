#include "argosy/graph/attrs.h"

#include <algorithm>

#include "argosy/base/error.h"

namespace argosy {
namespace {

[[noreturn]] void wrong_type(std::string_view name, const char* wanted) {
  fail<ConfigError>("attribute ", name, " must be ", wanted);
}

}  // namespace

Attrs::Attrs(std::initializer_list<std::pair<std::string, Attr>> items) {
  for (const auto& [name, value] : items) set(name, value);
}

void Attrs::set(std::string name, Attr value) {
  const auto place =
      std::ranges::lower_bound(items_, name, {}, &std::pair<std::string, Attr>::first);
  if (place != items_.end() && place->first == name) {
    place->second = std::move(value);
  } else {
    items_.emplace(place, std::move(name), std::move(value));
  }
}

const Attr* Attrs::find(std::string_view name) const {
  for (const auto& [key, value] : items_)
    if (key == name) return &value;
  return nullptr;
}

int64_t Attrs::integer(std::string_view name, int64_t otherwise) const {
  const Attr* attr = find(name);
  if (attr == nullptr) return otherwise;
  if (const auto* value = std::get_if<int64_t>(attr)) return *value;
  wrong_type(name, "an integer");
}

double Attrs::real(std::string_view name, double otherwise) const {
  const Attr* attr = find(name);
  if (attr == nullptr) return otherwise;
  if (const auto* value = std::get_if<double>(attr)) return *value;
  if (const auto* value = std::get_if<int64_t>(attr)) return static_cast<double>(*value);
  wrong_type(name, "a number");
}

const std::string& Attrs::text(std::string_view name) const {
  static const std::string empty;
  const Attr* attr = find(name);
  if (attr == nullptr) return empty;
  if (const auto* value = std::get_if<std::string>(attr)) return *value;
  wrong_type(name, "a text in quotes");
}

const std::vector<int64_t>& Attrs::integers(std::string_view name) const {
  static const std::vector<int64_t> none;
  const Attr* attr = find(name);
  if (attr == nullptr) return none;
  if (const auto* value = std::get_if<std::vector<int64_t>>(attr)) return *value;
  wrong_type(name, "a list of integers");
}

}  // namespace argosy
