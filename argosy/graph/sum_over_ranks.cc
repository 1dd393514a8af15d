#include "argosy/graph/sum_over_ranks.h"

#include <algorithm>

namespace argosy {
namespace {

size_t numbers_of(const Program& program, const Node& node) {
  if (node.op->rank_numbers == nullptr) return 0;
  std::vector<VarType> in;
  for (const VarId id : node.in) in.push_back(program.var(id).type);
  return node.op->rank_numbers(in, node.attrs);
}

}  // namespace

std::vector<size_t> sum_over_ranks_sizes(const Program& program) {
  const std::vector<bool> needed = needed_variables(program);
  std::vector<size_t> sizes;
  for (const Node& node : program.nodes) {
    const bool runs = std::ranges::any_of(node.out, [&](VarId id) { return needed[id.index()]; });
    if (const size_t numbers = numbers_of(program, node); runs && numbers > 0)
      sizes.push_back(numbers);
  }
  return sizes;
}

bool is_from_rank_sum(const Program& program, VarId id) {
  return std::ranges::any_of(program.nodes, [&](const Node& node) {
    return std::ranges::find(node.out, id) != node.out.end() && numbers_of(program, node) > 0;
  });
}

}  // namespace argosy
