#include "argosy/ps/rule.h"

#include <algorithm>

#include "argosy/base/call.h"
#include "argosy/base/error.h"

namespace argosy::ps {

void Rule::init(std::span<float> state) const { std::ranges::fill(state, 0.0F); }

void Rule::apply_rows(std::span<const RowStep> rows, size_t dim, const Update& update) const {
  const size_t state = state_size(dim);
  for (const RowStep& row : rows)
    apply({row.weights, dim}, {row.weights + dim, state}, {row.grad, dim}, update);
}

void Rule::apply_on_device(device::Stream&, const DeviceRows&, const Update&) const {
  fail<ConfigError>(
      "this rule has no device kernel, expected one of sgd, momentum, adagrad, adam, ",
      "adamw and add");
}

std::unique_ptr<Rule> make_rule(std::string_view spec) {
  const Call call(spec);
  for (const RulePlugin& rule : builtin_rules())
    if (rule.name == call.name()) return rule.make(call);

  const std::string near = nearest(call.name(), rule_names());
  fail<ConfigError>("'", spec, "': no rule '", call.name(), "'",
                    near.empty() ? "" : ", did you mean " + near + "?");
}

std::vector<std::string> rule_names() { return names_of(builtin_rules()); }

}  // namespace argosy::ps
