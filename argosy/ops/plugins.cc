// Collects the ops of this folder: every other .cc file here defines std::vector<OpDef> <file>().
// CMake writes argosy/ops.def from the folder, so a new op is a new file and nothing else.
#include "argosy/graph/op.h"

namespace argosy {
namespace ops {

#define PLUGIN(file) std::vector<OpDef> file();
#include "argosy/ops.def"
#undef PLUGIN

}  // namespace ops

std::vector<OpDef> builtin_ops() {
  std::vector<OpDef> all;
  const auto add = [&](std::vector<OpDef> some) {
    for (OpDef& op : some) all.push_back(std::move(op));
  };
#define PLUGIN(file) add(ops::file());
#include "argosy/ops.def"
#undef PLUGIN
  return all;
}

}  // namespace argosy
