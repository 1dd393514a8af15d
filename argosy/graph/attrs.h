#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace argosy {

using Attr = std::variant<int64_t, double, std::string, std::vector<int64_t>>;

/// Settings of one node, by name, in order of name. Reading one that is absent gives the default;
/// reading one of another type throws ConfigError.
class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, Attr>> items);

  void set(std::string name, Attr value);
  bool has(std::string_view name) const { return find(name) != nullptr; }

  int64_t integer(std::string_view name, int64_t otherwise = 0) const;
  double real(std::string_view name, double otherwise = 0) const;     // takes an integer too
  const std::string& text(std::string_view name) const;               // empty if absent
  const std::vector<int64_t>& integers(std::string_view name) const;  // empty if absent

  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  bool empty() const { return items_.empty(); }
  friend bool operator==(const Attrs&, const Attrs&) = default;

 private:
  const Attr* find(std::string_view name) const;
  std::vector<std::pair<std::string, Attr>> items_;
};

}  // namespace argosy
