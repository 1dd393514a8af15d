#include "argosy/net/tolerance.h"

#include <charconv>
#include <cstdlib>

#include "argosy/base/error.h"

namespace argosy {
namespace {

void read(const GetVariable& get, const std::string& name, Env::Duration& value) {
  const std::string text = get(name);
  if (text.empty()) return;
  constexpr double kLeast = 0.01, kMost = 1e7;
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  check<ConfigError>(error == std::errc() && end == text.data() + text.size() &&
                         seconds >= kLeast && seconds <= kMost,
                     name, "=", text, ", expected seconds, from ", kLeast, " on");
  value = std::chrono::duration_cast<Env::Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

Tolerance tolerance_from_env(const GetVariable& get) {
  Tolerance tolerance;
  read(get, "ARGOSY_PATIENCE", tolerance.patience);
  read(get, "ARGOSY_QUIET", tolerance.quiet);
  read(get, "ARGOSY_GIVE_UP", tolerance.give_up);
  return tolerance;
}

Tolerance tolerance_from_env() {
  return tolerance_from_env([](const std::string& name) {
    const char* const value = std::getenv(name.c_str());
    return std::string(value == nullptr ? "" : value);
  });
}

}  // namespace argosy
