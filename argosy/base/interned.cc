#include "argosy/base/interned.h"

#include <functional>
#include <set>
#include <string>

#include "argosy/base/mutex.h"

namespace argosy {

const char* interned(std::string_view name) {
  static Mutex mutex;
  static std::set<std::string, std::less<>> names;
  const Lock lock(mutex);
  const auto known = names.find(name);
  return (known != names.end() ? known : names.emplace(name).first)->c_str();
}

}  // namespace argosy
