#include "argosy/modes/stepper.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>

#include "argosy/base/denormals.h"
#include "argosy/base/error.h"

namespace argosy {
namespace {

bool clips_values(const std::string& clip) { return clip.starts_with("value"); }

size_t weights_of(const dynamic::Value& value) { return static_cast<size_t>(value.data.numel()); }

size_t row_size(const dynamic::Value& value) {
  return static_cast<size_t>(value.data.shape().back());
}

}  // namespace

Stepper::Stepper(std::string clip, CheckNan check_nan)
    : check_nan_(check_nan),
      value_clip_(clips_values(clip) ? clip : ""),
      norm_clip_(clips_values(clip) ? "" : clip) {}

size_t Stepper::add(dynamic::ValuePtr parameter, const StepOptions& options) {
  const Tensor& data = parameter->data;
  check<ConfigError>(data.dtype() == DType::f32, "a parameter to be trained is f32, this one is ",
                     data.dtype(), data.shape());
  check<ConfigError>(parameter->origin == nullptr,
                     "only leaves can be trained, this value was computed");
  const auto whole = rule(options.rule);
  State state;
  state.values.resize(whole->state_size(weights_of(*parameter)));
  whole->init(state.values);
  parameters_.push_back(
      {std::move(parameter), whole, options.rows_rule.empty() ? whole : rule(options.rows_rule),
       ps::GradientPolicy(options.regularizer, options.clips ? value_clip_ : ""),
       static_cast<float>(options.rate), options.clips, options.name, std::move(state)});
  return parameters_.size() - 1;
}

std::shared_ptr<const ps::Rule> Stepper::rule(const std::string& text) {
  std::shared_ptr<const ps::Rule>& known = rules_[text];
  if (known == nullptr) known = ps::make_rule(text);
  return known;
}

void Stepper::set_state(size_t parameter, State state) {
  State& held = parameters_.at(parameter).state;
  check<ConfigError>(state.values.size() == held.values.size(), "the state of parameter ",
                     parameter, " has ", held.values.size(), " numbers, got ", state.values.size());
  held = std::move(state);
}

std::vector<Stepper::Work> Stepper::work() {
  std::vector<Work> work;
  dense_.clear();
  dense_.reserve(parameters_.size());
  for (Parameter& parameter : parameters_) {
    const dynamic::Value& value = *parameter.value;
    if (!value.trains) continue;
    if (value.grad) {
      work.push_back({&parameter, value.grad->as<float>(), {}, false});
    } else if (value.row_grad && parameter.rule->whole_parameter()) {
      dense_.push_back(value.row_grad->dense(value.data.shape()));
      work.push_back({&parameter, std::as_const(dense_.back()).as<float>(), {}, false});
    } else if (value.row_grad) {
      work.push_back({&parameter, value.row_grad->values.as<float>(),
                      value.row_grad->rows.as<int64_t>(), true});
    }
  }
  return work;
}

void Stepper::check_finite(std::span<const Work> work) {
  if (check_nan_ == CheckNan::off) return;
  for (const Work& item : work) {
    if (all_finite(item.grad)) continue;
    const std::string text = fmt::format(
        "step {}: the gradient of parameter '{}' is not finite{}", steps_, item.parameter->name,
        all_finite(item.parameter->value->data) ? "" : ", nor was the parameter before the step");
    if (check_nan_ == CheckNan::fail) throw DataError(text);
    if (std::has_single_bit(++told_))
      fmt::print(stderr, "warning: {}{}\n", text,
                 told_ == 1 ? "" : fmt::format(" ({} such steps so far)", told_));
    return;
  }
}

void Stepper::clip(std::span<Work> work) {
  std::vector<std::span<const float>> grads;
  for (const Work& item : work)
    if (item.parameter->clips) grads.push_back(item.grad);
  norm_clip_.apply(grads);
  size_t next = 0;
  for (Work& item : work)
    if (item.parameter->clips) item.grad = grads[next++];
}

void Stepper::step(float learning_rate) {
  const FlushDenormals flush;
  std::vector<Work> all = work();
  ++steps_;
  check_finite(all);
  clip(all);
  for (const Work& item : all) {
    Parameter& parameter = *item.parameter;
    const ps::Update update{.lr = learning_rate * parameter.rate, .step = ++parameter.state.steps};
    if (item.by_rows) {
      step_rows(item, update);
    } else {
      step_whole(item, update);
    }
    ++parameter.value->version;
  }
}

/// The gradient after clip by value and weight decay.
std::span<const float> Stepper::prepared(const Parameter& parameter, std::span<const float> weights,
                                         std::span<const float> grad) {
  if (!parameter.policy.active()) return grad;
  scratch_.assign(grad.begin(), grad.end());
  parameter.policy.apply(weights, scratch_);
  return scratch_;
}

void Stepper::step_whole(const Work& work, const ps::Update& update) {
  Parameter& parameter = *work.parameter;
  const std::span<float> weights = parameter.value->data.as<float>();
  parameter.rule->apply(weights, parameter.state.values, prepared(parameter, weights, work.grad),
                        update);
}

/// Rows are brought together with their state, as the rule wants them, and back.
void Stepper::step_rows(const Work& work, const ps::Update& update) {
  Parameter& parameter = *work.parameter;
  const size_t dim = row_size(*parameter.value), all = weights_of(*parameter.value);
  const size_t kinds = parameter.state.values.size() / all, stride = (1 + kinds) * dim;
  float* weights = parameter.value->data.as<float>().data();
  float* state = parameter.state.values.data();
  weights_scratch_.clear();
  if (parameter.policy.active()) {
    for (const int64_t row : work.rows) {
      const float* from = weights + static_cast<size_t>(row) * dim;
      weights_scratch_.insert(weights_scratch_.end(), from, from + dim);
    }
  }
  const std::span<const float> grad = prepared(parameter, weights_scratch_, work.grad);
  rows_scratch_.resize(work.rows.size() * stride);
  row_steps_.clear();
  const auto row_in = [&](size_t i, size_t kind) {
    const size_t at = static_cast<size_t>(work.rows[i]) * dim;
    return kind == 0 ? weights + at : state + (kind - 1) * all + at;
  };
  for (size_t i = 0; i < work.rows.size(); ++i) {
    float* row = rows_scratch_.data() + i * stride;
    for (size_t kind = 0; kind <= kinds; ++kind)
      std::copy_n(row_in(i, kind), dim, row + kind * dim);
    row_steps_.push_back({row, grad.data() + i * dim});
  }
  parameter.rows_rule->apply_rows(row_steps_, dim, update);
  for (size_t i = 0; i < work.rows.size(); ++i)
    for (size_t kind = 0; kind <= kinds; ++kind)
      std::copy_n(rows_scratch_.data() + i * stride + kind * dim, dim, row_in(i, kind));
}

}  // namespace argosy
