#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "argosy/base/function_ref.h"
#include "argosy/graph/op.h"

/// Dynamic graphs: values that remember how they were computed.
/// Thread safety: reading shared values; backward() and changes need leaves of the thread's own.
namespace argosy::dynamic {

struct Origin;
struct Value;
using ValuePtr = std::shared_ptr<Value>;

/// The gradient of a table some rows of which were looked up; each row occurs once.
struct RowGradient {
  Tensor rows;    // i64 [n], in the order of their first appearance
  Tensor values;  // [n, dim]
  /// As a dense gradient of a table of this shape.
  Tensor dense(const Shape& table) const;
};
/// Their sum, added in this order; all of one table, at least one.
RowGradient sum_of(std::span<const RowGradient> parts);

/// Numbers and their origin. A leaf has none; gradients end there. The web of values is freed with
/// the last value that needs it, however deep it is.
struct Value {
  explicit Value(Tensor of, bool wants_gradient = false)
      : data(std::move(of)), trains(wants_gradient) {}

  Tensor data;
  bool trains;                               // a gradient flows to it
  std::shared_ptr<Origin> origin = {};       // null for a leaf
  size_t output = 0;                         // which of the origin's
  uint64_t version = 0;                      // how often its memory was written since it was made
  std::optional<Tensor> grad = {};           // of a leaf, and of others after keep_gradient
  std::optional<RowGradient> row_grad = {};  // instead of grad
  uint64_t reached = 0;                      // how often backward() has added to its gradient
};

struct ApplyMode {
  bool records = true;       // false: results have no origin
  uint64_t random_seed = 0;  // for ops that draw
  std::shared_ptr<SumOverRanks> ranks =
      {};  // for ops that need other ranks, and for their gradients
};

/// Runs an operator now. A result remembers its inputs if one of them trains. Throws ConfigError
/// and DataError that name the op and the types of its inputs.
std::vector<ValuePtr> apply(const OpDef& op, std::span<const ValuePtr> in, Attrs attrs = {},
                            const ApplyMode& mode = {});

/// Lets backward() also fill the gradient of a value that is no leaf.
void keep_gradient(const ValuePtr& value);

/// Whether backward() keeps the graph afterwards.
enum class Graph : uint8_t { freed, kept };

/// Called during backward() with a leaf whose gradient is complete; not for leaves, such as tables
/// of rows, whose gradient is complete only at its end.
using WhenFinal = FunctionRef<void(const Value&)>;

/// Adds the gradients of `of` to the leaves it was computed from; seed is the gradient of `of`
/// itself, ones if absent. An operator's gradient is the same as in a recorded program, bit for
/// bit.
void backward(const ValuePtr& of, const std::optional<Tensor>& seed = {},
              Graph graph = Graph::freed, WhenFinal when_final = {});

/// The gradients of the sum of `of` with respect to `to`, absent where none flows; no value's own
/// gradient is touched. seeds: none, or one for each of `of`.
std::vector<std::optional<Tensor>> gradients(std::span<const ValuePtr> of,
                                             std::span<const std::optional<Tensor>> seeds,
                                             std::span<const ValuePtr> to, Graph graph);

}  // namespace argosy::dynamic
