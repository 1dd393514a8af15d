#include "argosy/plan/memory_limit.h"

#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/base/memory_size.h"
#include "argosy/ps/row_recipe.h"

namespace argosy {

void limit_memory(std::vector<ps::TableSpec>& tables, const TablesOptions& options,
                  uint64_t bytes) {
  if (bytes == 0) return;
  constexpr uint64_t kUnit = 1024;
  const std::string all_in_memory = ps::TableSpec().store;
  std::vector<ps::TableSpec*> limited;
  for (ps::TableSpec& spec : tables)
    if (spec.store == all_in_memory) limited.push_back(&spec);
  const auto rows_of = [&](const ps::TableSpec* spec) -> uint64_t {
    const auto found = options.find(spec->name);
    return found == options.end() ? 0 : found->second.size;
  };
  const bool have_sizes =
      std::ranges::all_of(limited, [&](const ps::TableSpec* spec) { return rows_of(spec) > 0; });
  std::vector<double> shares;
  double all = 0;
  for (const ps::TableSpec* spec : limited) {
    const size_t floats = ps::RowRecipe(*spec).floats(ps::Section::rows);
    shares.push_back(static_cast<double>(floats) *
                     (have_sizes ? static_cast<double>(rows_of(spec)) : 1.0));
    all += shares.back();
  }
  const uint64_t all_units = bytes / kUnit;
  for (size_t i = 0; i < limited.size(); ++i) {
    const auto units = static_cast<uint64_t>(static_cast<double>(all_units) * (shares[i] / all));
    check<ConfigError>(units > 0, "a memory limit of ", memory_text(bytes), " leaves table '",
                       limited[i]->name, "' less than 1K of memory");
    limited[i]->store = fmt::format("log(memory={})", memory_text(units * kUnit));
  }
}

}  // namespace argosy
