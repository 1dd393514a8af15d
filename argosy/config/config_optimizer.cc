#include <array>

#include "argosy/config/config_parts.h"
#include "argosy/ps/rule.h"
#include "argosy/ps/schedule.h"

namespace argosy {
namespace {

std::string number(double value) {
  std::ostringstream out;
  out.precision(17);
  out << value;
  return out.str();
}

/// The name of a rule, which PaddleRec writes as Adam or adam.
std::string rule_name(std::string name) {
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return name;
}

const Setting& place_of(const Setting& map, std::string_view key) {
  const Setting* const setting = map.find(key);
  return setting != nullptr ? *setting : map;
}

/// The class, with the keys that are settings of it: "adam(beta1=0.9, epsilon=1e-06)".
std::string rule_text(const OptimizerKeys& keys, const Setting& map, bool with_weight_decay) {
  struct Argument {
    const char* key;
    const char* argument;
    std::optional<double> value;
  };
  const std::array<Argument, 5> arguments = {{
      {"beta1", "beta1", keys.beta1},
      {"beta2", "beta2", keys.beta2},
      {"epsilon", "epsilon", keys.epsilon},
      {"momentum", "mu", keys.momentum},
      {"weight_decay", "weight_decay", with_weight_decay ? keys.weight_decay : std::nullopt},
  }};
  const bool complete = keys.rule.find('(') != std::string::npos;
  std::string text;
  for (const auto& [key, argument, value] : arguments) {
    if (!value) continue;
    if (complete)
      fail_at(place_of(map, key), "class '", keys.rule, "' has its settings in brackets already");
    text += (text.empty() ? "" : ", ") + std::string(argument) + "=" + number(*value);
  }
  if (complete) return keys.rule;
  return rule_name(keys.rule) + (text.empty() ? "" : "(" + text + ")");
}

std::string rate_text(const OptimizerKeys& keys, const Setting& map) {
  if (keys.decay_steps == 0 && !keys.decay_rate) return keys.learning_rate;
  if (keys.decay_steps == 0) fail_at(place_of(map, "decay_rate"), "needs decay_steps as well");
  if (!keys.decay_rate) fail_at(place_of(map, "decay_steps"), "needs decay_rate as well");
  if (keys.learning_rate.find('(') != std::string::npos)
    fail_at(place_of(map, "decay_steps"),
            "learning_rate is a schedule of its own: ", keys.learning_rate);
  return "exponential(" + keys.learning_rate + ", steps=" + std::to_string(keys.decay_steps) +
         ", factor=" + number(*keys.decay_rate) + ")";
}

}  // namespace

Optimizer make_optimizer(const OptimizerKeys& keys, const Setting& map) {
  const std::string name = rule_name(keys.rule);
  const bool own_decay = name == "adamw" || name == "lamb" || name == "lars";
  Optimizer optimizer{.rule = rule_text(keys, map, own_decay),
                      .learning_rate = rate_text(keys, map),
                      .regularizer = keys.regularizer,
                      .clip = keys.clip};
  if (keys.weight_decay && !own_decay) {
    if (!keys.regularizer.empty())
      fail_at(place_of(map, "weight_decay"), "is l2, but there is a regularizer as well");
    if (*keys.weight_decay > 0) optimizer.regularizer = "l2(" + number(*keys.weight_decay) + ")";
  }
  try {
    static_cast<void>(ps::make_rule(optimizer.rule));
  } catch (const ConfigError& e) {
    fail_at(place_of(map, "class"), e.what());
  }
  static_cast<void>(ps::Schedule(optimizer.learning_rate));
  return optimizer;
}

}  // namespace argosy
