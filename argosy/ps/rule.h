#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/plugins.h"

namespace argosy {
class Call;
namespace device {
class Stream;
}
}  // namespace argosy

namespace argosy::ps {

/// The inputs that change from step to step; fixed settings are in the rule's spec.
struct Update {
  float lr = 0.01F;
  uint64_t step = 1;  // the first step is 1
};

/// One row on its way through a rule: its weights, with its state right behind them, and the
/// gradient of its weights.
struct RowStep {
  float* weights;
  const float* grad;
};

/// Rows in memory of a device: row r has its weights at weights + slots[r] * stride, with its state
/// right behind them.
struct DeviceRows {
  float* weights;
  const float* grads;  // [count, dim]
  size_t count, dim, stride;
  const int64_t* slots = nullptr;  // on the device; null: row r is the r-th
};

/// Update rule of an optimizer. Stateless and const: a row carries its own state right behind its
/// weights, so one Rule object serves every row of every table, on a worker (local training) and
/// on a server alike, without a lock.
class Rule {
 public:
  virtual ~Rule() = default;
  virtual size_t state_size(size_t dim) const = 0;  // floats kept per row of dim weights
  virtual void init(std::span<float> state) const;  // default: zeros
  virtual void apply(std::span<float> w, std::span<float> state, std::span<const float> grad,
                     const Update& update) const = 0;
  /// apply() to many different rows of dim weights, with the same bits. Tables call this once per
  /// batch; a rule written as a RowRule (rules/rule_support.h) has a fast one by itself.
  virtual void apply_rows(std::span<const RowStep> rows, size_t dim, const Update& update) const;
  /// apply() to different rows on a device. Rules without a device form throw ConfigError.
  virtual void apply_on_device(device::Stream& stream, const DeviceRows& rows,
                               const Update& update) const;
  /// True for rules that need the norm of the whole parameter: it must not be cut into blocks.
  virtual bool whole_parameter() const { return false; }
};

/// From "sgd", "momentum(0.9, nesterov=1)", "adam(beta1=0.9, beta2=0.999, epsilon=1e-8)" ...:
/// one of rules/*.cc. Throws ConfigError naming the nearest rule or argument.
std::unique_ptr<Rule> make_rule(std::string_view spec);
std::vector<std::string> rule_names();

/// A file of rules/: its name is the rule's.
using RulePlugin = Plugin<std::unique_ptr<Rule>(const Call& spec)>;
std::vector<RulePlugin> builtin_rules();

}  // namespace argosy::ps
