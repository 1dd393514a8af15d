#include "argosy/ps/rule.h"

#include <algorithm>

#include "argosy/base/call.h"
#include "argosy/base/error.h"

namespace argosy {

void Rule::init(std::span<float> state) const { std::ranges::fill(state, 0.0F); }

std::unique_ptr<Rule> make_rule(std::string_view spec) {
  const Call call(spec);
  for (const RulePlugin& rule : builtin_rules())
    if (rule.name == call.name()) return rule.make(call);

  const std::string near = nearest(call.name(), rule_names());
  fail<ConfigError>("'", spec, "': no rule '", call.name(), "'",
                    near.empty() ? "" : ", did you mean " + near + "?");
}

std::vector<std::string> rule_names() {
  std::vector<std::string> names;
  for (const RulePlugin& rule : builtin_rules()) names.push_back(rule.name);
  return names;
}

}  // namespace argosy
