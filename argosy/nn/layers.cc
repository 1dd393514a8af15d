#include "argosy/nn/layers.h"

#include <array>

#include "argosy/nn/init.h"

namespace argosy {
namespace {

Var binary(const char* op, const Operand& a, const Operand& b) {
  check<ConfigError>(a.var.g != nullptr, op, ": the left operand is null");
  return a.var.g->apply(op, {a.var, b.var}, {}, a.at);
}

Var unary(const char* op, Var x, const SourceLoc& at) {
  check<ConfigError>(x.g != nullptr, op, ": its input is null");
  return x.g->apply(op, {x}, {}, at);
}

}  // namespace

Var operator+(Operand a, Operand b) { return binary("add", a, b); }
Var operator-(Operand a, Operand b) { return binary("sub", a, b); }
Var operator*(Operand a, Operand b) { return binary("mul", a, b); }
Var operator/(Operand a, Operand b) { return binary("div", a, b); }

namespace nn {

Var linear(Var x, int64_t size, const std::string& name, const LinearOptions& options, Where at) {
  Builder& g = *x.g;
  const LocationScope scope(g, at);
  const int64_t features = x.shape().rank() > 0 ? x.shape()[-1] : Shape::kAny;
  check<ConfigError>(features >= 0, at, ": linear '", name,
                     "' needs to know the last size of its input, got ", x.type());
  const Shape shape{features, size};
  const Var w =
      g.param(name + ".w", shape,
              options.weight_init.empty() ? init::xavier_uniform(shape) : options.weight_init);
  Attrs attrs;
  if (!options.activation.empty()) attrs.set("activation", options.activation);
  if (!options.bias) return g.apply("linear", {x, w}, std::move(attrs));
  return g.apply("linear", {x, w, g.param(name + ".b", {size}, options.bias_init)},
                 std::move(attrs));
}

Var mlp(Var x, std::span<const int64_t> sizes, const std::string& activation,
        const std::string& name, Where at) {
  for (size_t i = 0; i < sizes.size(); ++i)
    x = linear(x, sizes[i], name + "." + std::to_string(i), {.activation = activation}, at);
  return x;
}

namespace {

/// Declares an input that readers make, under the first free name of base, base.1, base.2, ...;
/// one with the same source is used again.
Var made_input(Builder& g, const std::string& base, const Shape& shape, const std::string& from) {
  std::string name = base;
  for (int i = 1;; ++i) {
    const VarId known = g.program().find(name);
    if (!known || g.program().var(known).from == from)
      return g.variable(
          {.name = name, .type = {shape, DType::i32}, .kind = VarKind::input, .from = from});
    name = base + "." + std::to_string(i);
  }
}

}  // namespace

Var embedding(Builder& g, std::span<const std::string> slots, const std::string& table, int64_t dim,
              const EmbeddingOptions& options, Where at) {
  const LocationScope scope(g, at);
  check<ConfigError>(!slots.empty(), at, ": embedding '", table, "' has no slot");
  check<ConfigError>(dim > 0, at, ": embedding '", table, "' has rows of ", dim, " floats");
  std::string arguments = "(" + table;
  for (const std::string& slot : slots) arguments += ", " + slot;
  if (options.padding) arguments += ", padding=" + std::to_string(*options.padding);
  arguments += ")";

  const Var rows = g.variable({.name = table,
                               .type = {{Shape::kAny, dim}, DType::f32},
                               .kind = VarKind::rows,
                               .init = options.init});
  Attrs attrs;
  if (options.padding) attrs.set("padding_idx", int64_t{-1});  // what readers put for it
  const auto n_slots = static_cast<int64_t>(slots.size());
  Var looked_up;
  if (options.pool.empty()) {
    const Var index = made_input(g, table + ".index", {Shape::kAny, n_slots}, "index" + arguments);
    looked_up = g.apply("embedding", {rows, index}, std::move(attrs));
  } else {
    attrs.set("pool", options.pool);
    const Var index = made_input(g, table + ".index", {Shape::kAny}, "flat_index" + arguments);
    const Var offsets = made_input(g, table + ".offsets", {Shape::kAny}, "offsets" + arguments);
    looked_up = g.apply("gather_pool", {rows, index, offsets}, std::move(attrs));
  }
  return reshape(looked_up, {-1, n_slots * dim});
}

Var sum_slots(Var embeddings, int64_t dim, Where at) {
  const LocationScope scope(*embeddings.g, at);
  const Var by_slot = reshape(embeddings, {-1, embeddings.shape()[-1] / dim, dim});
  return embeddings.g->apply("sum", {by_slot}, {{"axes", std::vector<int64_t>{1}}});
}

Var fm_pairwise(Var embeddings, int64_t dim, Where at) {
  Builder& g = *embeddings.g;
  const LocationScope scope(g, at);
  const Attrs last_axis{{"axes", std::vector<int64_t>{-1}}, {"keepdim", int64_t{1}}};
  const Var square_of_sum = g.apply("square", {sum_slots(embeddings, dim)});
  const Var sum_of_squares = g.apply("square", {embeddings});
  const Var difference =
      g.apply("sum", {square_of_sum}, last_axis) - g.apply("sum", {sum_of_squares}, last_axis);
  return g.apply("scale", {difference}, {{"scale", 0.5}});
}

Var batch_norm(Var x, const std::string& name, const NormOptions& options, Where at) {
  Builder& g = *x.g;
  const LocationScope scope(g, at);
  check<ConfigError>(x.shape().rank() >= 2 && x.shape()[1] >= 0, at, ": batch_norm '", name,
                     "' needs [batch, channels, ...], got ", x.type());
  const Shape channels{x.shape()[1]};
  const auto state = [&](const char* what, const char* init) {
    return g.variable(
        {.name = name + what, .type = {channels}, .kind = VarKind::state, .init = init});
  };
  const Var mean = state(".mean", "zeros"), variance = state(".variance", "ones");
  const std::array inputs{x, g.param(name + ".scale", channels, "ones"),
                          g.param(name + ".bias", channels, "zeros"), mean, variance};
  const std::vector<Var> out = g.apply_all(
      "batch_norm", inputs,
      {{"epsilon", options.epsilon}, {"momentum", options.momentum}, {"is_test", int64_t{0}}});
  g.update(mean, out[1]);
  g.update(variance, out[2]);
  return out[0];
}

Var layer_norm(Var x, const std::string& name, const NormOptions& options, Where at) {
  Builder& g = *x.g;
  const LocationScope scope(g, at);
  int64_t size = 1;
  for (int i = 1; i < x.shape().rank(); ++i) size *= x.shape()[i];
  check<ConfigError>(size > 0, at, ": layer_norm '", name,
                     "' needs known sizes behind the batch, got ", x.type());
  const std::array inputs{x, g.param(name + ".scale", {size}, "ones"),
                          g.param(name + ".bias", {size}, "zeros")};
  return g.apply_all("layer_norm", inputs, {{"epsilon", options.epsilon}})[0];
}

Var dropout(Var x, double p, Where at) {
  return x.g->apply_all("dropout", std::array{x},
                        {{"p", p}, {"mode", "upscale_in_train"}, {"is_test", int64_t{0}}}, at)[0];
}

Var relu(Var x, Where at) { return unary("relu", x, at); }
Var sigmoid(Var x, Where at) { return unary("sigmoid", x, at); }
Var tanh(Var x, Where at) { return unary("tanh", x, at); }
Var softmax(Var x, Where at) { return unary("softmax", x, at); }
Var mean(Var x, Where at) { return unary("mean", x, at); }
Var sum(Var x, Where at) { return unary("sum", x, at); }

Var reshape(Var x, std::vector<int64_t> shape, Where at) {
  return x.g->apply("reshape", {x}, {{"shape", std::move(shape)}}, at);
}

Var concat(std::span<const Var> parts, int64_t axis, Where at) {
  check<ConfigError>(!parts.empty(), at, ": concat of nothing");
  return parts[0].g->apply_all("concat", parts, {{"axis", axis}}, at)[0];
}

Var square_error(Var x, Var y, Where at) { return x.g->apply("square_error", {x, y}, {}, at); }

Var softmax_loss(Var logits, Var label, Where at) {
  return mean(logits.g->apply_all("softmax_cross_entropy", std::array{logits, label}, {}, at)[0],
              at);
}

Var logistic_loss(Var logit, Var label, Where at) {
  return mean(logit.g->apply("sigmoid_cross_entropy", {logit, label}, {}, at), at);
}

Var accuracy(Var scores, Var label, Where at) {
  Builder& g = *scores.g;
  const LocationScope scope(g, at);
  const Var best = g.apply("argmax", {scores}, {{"axis", int64_t{-1}}, {"keepdim", int64_t{1}}});
  const Var right = g.apply("equal", {best, label});
  return mean(g.apply("cast", {right}, {{"to", "f32"}}));
}

}  // namespace nn
}  // namespace argosy
