#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/settings.h"

namespace argosy {

/// `hyper_parameters:` for a model, which asks for what it needs by name and type. A value of
/// another type is a ConfigError with its line. Thread safety: const, but for recording.
class Hyper {
 public:
  using Names = std::set<std::string, std::less<>>;

  Hyper() = default;
  explicit Hyper(std::vector<Setting> settings) : settings_(std::move(settings)) {}

  bool has(std::string_view name) const { return find(name) != nullptr; }
  bool flag(std::string_view name, bool otherwise) const;
  int64_t integer(std::string_view name, int64_t otherwise, const Limits& limits = {}) const;
  double real(std::string_view name, double otherwise, const Limits& limits = {}) const;
  std::string text(std::string_view name, std::string otherwise) const;
  std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> otherwise,
                                const Limits& limits = {}) const;

  /// The same settings; records each name that is asked for in `asked`, which must outlive it.
  Hyper recording(Names& asked) const;
  /// Throws ConfigError for the first setting that is not among `asked`, with the nearest that is.
  void refuse_others(const Names& asked) const;

  const std::vector<Setting>& settings() const { return settings_; }

 private:
  const Setting* find(std::string_view name) const;

  std::vector<Setting> settings_;
  Names* asked_ = nullptr;
};

}  // namespace argosy
