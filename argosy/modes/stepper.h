#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "argosy/graph/autograd.h"
#include "argosy/modes/clip.h"
#include "argosy/ps/gradient.h"
#include "argosy/ps/rule.h"
#include "argosy/tensor/finite.h"

namespace argosy {

/// How a Stepper treats one parameter; texts as in plan/plan.h, Optimizer.
struct StepOptions {
  std::string rule = "sgd";
  std::string rows_rule = {};  // for gradients of rows, same state; "": rule
  std::string regularizer = {};
  double rate = 1;        // factor on the learning rate of the step
  bool clips = true;      // false: the stepper's clip leaves it alone
  std::string name = {};  // for messages
};

/// Updates the parameters of a dynamic graph in place, all of them in one call. A gradient of rows
/// changes these rows and their state only, unless the rule needs the whole parameter.
class Stepper {
 public:
  /// clip: "", value(...), norm(x) or global_norm(x).
  explicit Stepper(std::string clip, CheckNan check_nan = CheckNan::fail);

  /// The parameter is an f32 leaf. Returns its number, from 0.
  size_t add(dynamic::ValuePtr parameter, const StepOptions& options);

  /// Updates every trainable parameter that has a gradient. If one is not finite, throws DataError
  /// naming it and changes nothing.
  void step(float learning_rate);

  /// One number per weight and kind of state: "momentum" has one kind, "adam" two.
  struct State {
    uint64_t steps = 0;  // updates of this parameter
    std::vector<float> values = {};
  };
  const State& state(size_t parameter) const { return parameters_.at(parameter).state; }
  void set_state(size_t parameter, State state);

 private:
  struct Parameter {
    dynamic::ValuePtr value;
    std::shared_ptr<const ps::Rule> rule, rows_rule;
    ps::GradientPolicy policy;
    float rate;
    bool clips;
    std::string name;
    State state;
  };
  struct Work {
    Parameter* parameter;
    std::span<const float> grad;
    std::span<const int64_t> rows;  // of the gradient, if by_rows
    bool by_rows;
  };

  std::vector<Work> work();
  void check_finite(std::span<const Work> work);
  void clip(std::span<Work> work);
  void step_whole(const Work& work, const ps::Update& update);
  void step_rows(const Work& work, const ps::Update& update);
  std::shared_ptr<const ps::Rule> rule(const std::string& text);
  std::span<const float> prepared(const Parameter& parameter, std::span<const float> weights,
                                  std::span<const float> grad);

  CheckNan check_nan_;
  uint64_t steps_ = 0, told_ = 0;  // told: steps with a gradient that was not finite
  std::string value_clip_;
  NormClip norm_clip_;
  std::map<std::string, std::shared_ptr<const ps::Rule>> rules_;  // by text
  std::vector<Parameter> parameters_;
  std::vector<float> scratch_, rows_scratch_, weights_scratch_;
  std::vector<ps::RowStep> row_steps_;
  std::vector<Tensor> dense_;  // gradients of rows, made whole
};

}  // namespace argosy
