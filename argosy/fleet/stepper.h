#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "argosy/fleet/clip.h"
#include "argosy/graph/autograd.h"
#include "argosy/ps/gradient.h"
#include "argosy/ps/rule.h"

namespace argosy {

/// How a Stepper treats one parameter; texts as in fleet/plan.h, Optimizer.
struct StepOptions {
  std::string rule = "sgd";
  std::string rows_rule = {};  // for gradients of rows, with the same state; none: rule
  std::string regularizer = {};
  double rate = 1;    // times the learning rate of the step
  bool clips = true;  // false: the stepper's clip leaves it alone
};

/// Updates the parameters of a dynamic graph in place, all of them in one call. A gradient of rows
/// changes these rows and their state only, unless the rule needs the whole parameter.
class Stepper {
 public:
  explicit Stepper(std::string clip);  // "", value(...), norm(x) or global_norm(x)

  /// The parameter is a leaf of f32. Its number is the count of those before.
  size_t add(dynamic::ValuePtr parameter, const StepOptions& options);

  /// Every parameter that trains and has a gradient.
  void step(float learning_rate);

  /// A number for each weight and kind of state: "momentum" has one kind, "adam" two.
  struct State {
    uint64_t steps = 0;  // how often this parameter was updated
    std::vector<float> values = {};
  };
  const State& state(size_t parameter) const { return parameters_.at(parameter).state; }
  void set_state(size_t parameter, State state);

 private:
  struct Parameter {
    dynamic::ValuePtr value;
    std::shared_ptr<const Rule> rule, rows_rule;
    GradientPolicy policy;
    float rate;
    bool clips;
    State state;
  };
  struct Work {
    Parameter* parameter;
    std::span<const float> grad;
    std::span<const int64_t> rows;  // of the gradient, if by_rows
    bool by_rows;
  };

  std::vector<Work> work();
  void clip(std::span<Work> work);
  void step_whole(const Work& work, const Update& update);
  void step_rows(const Work& work, const Update& update);
  std::shared_ptr<const Rule> rule(const std::string& text);
  std::span<const float> prepared(const Parameter& parameter, std::span<const float> weights,
                                  std::span<const float> grad);

  std::string value_clip_;
  NormClip norm_clip_;
  std::map<std::string, std::shared_ptr<const Rule>> rules_;  // by text
  std::vector<Parameter> parameters_;
  std::vector<float> scratch_, rows_scratch_, weights_scratch_;
  std::vector<RowStep> row_steps_;
  std::vector<Tensor> dense_;  // gradients of rows, made whole
};

}  // namespace argosy
