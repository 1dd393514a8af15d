// Collects the rules of this folder: every other .cc file here defines
// std::unique_ptr<Rule> <file>(const Call& spec). A new rule is a new file and nothing else.
#include "argosy/ps/rule.h"
#include "argosy/ps/rules.def"

namespace argosy::ps {

ARGOSY_COLLECT(rules, RulePlugin, builtin_rules)

}  // namespace argosy::ps
