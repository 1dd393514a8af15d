// Collects the rules of this folder: every other .cc file here defines
// std::unique_ptr<Rule> <file>(const Call& spec). CMake writes argosy/ps/rules.def from the folder,
// so a new rule is a new file and nothing else.
#include "argosy/ps/rule.h"

namespace argosy {
namespace rules {

#define PLUGIN(file) std::unique_ptr<Rule> file(const Call& spec);
#include "argosy/ps/rules.def"
#undef PLUGIN

}  // namespace rules

std::vector<RulePlugin> builtin_rules() {
  return {
#define PLUGIN(file) {#file, rules::file},
#include "argosy/ps/rules.def"
#undef PLUGIN
  };
}

}  // namespace argosy
