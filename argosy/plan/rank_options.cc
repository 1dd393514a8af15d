#include "argosy/base/error.h"
#include "argosy/comm/backends.h"
#include "argosy/plan/ranks.h"

namespace argosy {

comm::GroupOptions group_options(const Role& role, const CollectiveStrategy& strategy) {
  comm::GroupOptions options = group_options(role);
  options.deterministic = strategy.deterministic;
  if (!strategy.hierarchical) return options;
  options.backend = "hierarchical";
  if (strategy.ranks_per_host == 0) return options;
  for (const std::vector<int>& host : comm::ranks_by_host(options.ranks))
    check<ConfigError>(static_cast<int>(host.size()) == strategy.ranks_per_host,
                       "hierarchical_allreduce_inter_nranks is ", strategy.ranks_per_host,
                       ", but host ", options.ranks[static_cast<size_t>(host.front())].host,
                       " has ", host.size(), host.size() == 1 ? " rank" : " ranks");
  return options;
}

}  // namespace argosy
