// Collects the modes of this folder: every other .cc file here defines Mode <file>(). A new mode is
// a new file and nothing else.
#include "argosy/base/plugins.h"
#include "argosy/modes/communicators.def"
#include "argosy/modes/mode.h"

namespace argosy {

using ModePlugin = Plugin<Mode()>;
ARGOSY_COLLECT(communicators, ModePlugin, builtin_modes)

const std::vector<Mode>& modes() {
  static const std::vector<Mode> all = [] {
    std::vector<Mode> list;
    for (const ModePlugin& plugin : builtin_modes())
      list.emplace_back(plugin.make()).name = plugin.name;
    return list;
  }();
  return all;
}

}  // namespace argosy
