#pragma once

#include <optional>
#include <span>
#include <string>

#include "argosy/graph/builder.h"

namespace argosy {

/// An operand of an expression on Vars; remembers its source line, for messages.
struct Operand {
  Var var;
  SourceLoc at;
  Operand(Var var, SourceLoc at = SourceLoc::current())  // NOLINT: implicit
      : var(var), at(at) {}
};

Var operator+(Operand a, Operand b);
Var operator-(Operand a, Operand b);
Var operator*(Operand a, Operand b);
Var operator/(Operand a, Operand b);

/// Layers are functions on Vars: they add nodes and, where needed, parameters. Messages about
/// what they record name their caller's line.
namespace nn {

using Where = SourceLoc;

struct LinearOptions {
  std::string activation = {};   // "", relu, sigmoid or tanh
  std::string weight_init = {};  // "": Xavier, uniform
  std::string bias_init = "zeros";
  bool bias = true;
};
/// activation(x w + b) over the last axis of x; parameters name.w and name.b.
Var linear(Var x, int64_t size, const std::string& name, const LinearOptions& options = {},
           Where at = Where::current());
/// linear layers of these sizes, all with the activation; parameters name.0.w, name.0.b, ...
Var mlp(Var x, std::span<const int64_t> sizes, const std::string& activation,
        const std::string& name, Where at = Where::current());

struct EmbeddingOptions {
  std::string init = "uniform(-0.01, 0.01)";  // of a row, from (seed, table, key)
  /// "": one id per instance and slot; sum, mean, sqrt or max: any number of ids, pooled.
  std::string pool = {};
  std::optional<uint64_t> padding = {};  // this id gives zeros, and has no row and no gradient
};
/// Rows of a table, of dim floats each, looked up by the slots, side by side: [batch, slots * dim].
/// Records the rows that a batch uses as `table` f32[-1,dim] and, as inputs that readers make from
/// the slots' ids, which row each id has: `table.index` i32[batch,slots] from="index(table,
/// slots)", or, where ids are pooled, `table.index` i32[-1] from="flat_index(...)" and
/// `table.offsets`. A table may be looked up several times; inputs of later lookups end in .1, .2,
/// ...
Var embedding(Builder& g, std::span<const std::string> slots, const std::string& table, int64_t dim,
              const EmbeddingOptions& options = {}, Where at = Where::current());
/// Sums embeddings [batch, slots * dim] over the slots: [batch, dim].
Var sum_slots(Var embeddings, int64_t dim, Where at = Where::current());
/// The sum over all pairs of slots of their inner products, [batch, 1].
Var fm_pairwise(Var embeddings, int64_t dim, Where at = Where::current());

struct NormOptions {
  double epsilon = 1e-5;
  double momentum = 0.9;  // batch_norm: how much of the running statistics stays
};
/// Over axis 1. Keeps running statistics as states name.mean and name.variance, which inference
/// programs use.
Var batch_norm(Var x, const std::string& name, const NormOptions& options = {},
               Where at = Where::current());
/// Over all axes but the first.
Var layer_norm(Var x, const std::string& name, const NormOptions& options = {},
               Where at = Where::current());
/// Zeroes a share p of the elements and scales the rest up; does nothing in inference programs.
Var dropout(Var x, double p, Where at = Where::current());

Var relu(Var x, Where at = Where::current());
Var sigmoid(Var x, Where at = Where::current());
Var tanh(Var x, Where at = Where::current());
Var softmax(Var x, Where at = Where::current());
Var mean(Var x, Where at = Where::current());  // over everything
Var sum(Var x, Where at = Where::current());   // over everything
Var reshape(Var x, std::vector<int64_t> shape, Where at = Where::current());
Var concat(std::span<const Var> parts, int64_t axis = -1, Where at = Where::current());

Var square_error(Var x, Var y, Where at = Where::current());
/// Mean over the batch of the softmax's cross entropy; label is an integer [batch, 1].
Var softmax_loss(Var logits, Var label, Where at = Where::current());
/// Mean over the batch of the sigmoid's cross entropy; label is a float of the logits' shape.
Var logistic_loss(Var logit, Var label, Where at = Where::current());

/// Share of rows whose largest element is the label's; no gradient.
Var accuracy(Var scores, Var label, Where at = Where::current());

}  // namespace nn
}  // namespace argosy
