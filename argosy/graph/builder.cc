#include "argosy/graph/builder.h"

#include <algorithm>
#include <sstream>

#include "argosy/base/call.h"
#include "argosy/base/denormals.h"
#include "argosy/graph/run_op.h"
#include "argosy/tensor/finite.h"

namespace argosy {

const VarType& Var::type() const { return g->type(id); }
const Tensor& Var::value() const { return g->value(id); }

Builder::Builder(Resolve resolve, EagerOptions options)
    : resolve_(std::move(resolve)), options_(options) {}

void Builder::always(std::string op, std::string name, Attr value) {
  always_.push_back({std::move(op), std::move(name), std::move(value)});
}

Var Builder::variable(VarDesc desc, SourceLoc at) {
  const LocationScope scope(*this, at);
  check<ConfigError>(!desc.name.empty(), location_, ": an ", argosy::name(desc.kind),
                     " needs a name");
  if (const VarId known = program_.find(desc.name)) {
    const VarDesc& before = program_.var(known);
    check<ConfigError>(before.kind == desc.kind && fits(before.type.shape, desc.type.shape) &&
                           before.type.dtype == desc.type.dtype,
                       location_, ": '", desc.name, "' was declared as ", argosy::name(before.kind),
                       " ", before.type, ", now as ", argosy::name(desc.kind), " ", desc.type);
    return {this, known};
  }
  desc.at = location_;
  check<ConfigError>(is_plain_name(desc.name), location_, ": ", argosy::name(desc.kind), " '",
                     desc.name, "': ", kPlainName);
  if (eager()) {
    Tensor value = resolve_(desc);
    check<ConfigError>(value.dtype() == desc.type.dtype && fits(value.shape(), desc.type.shape),
                       location_, ": ", argosy::name(desc.kind), " '", desc.name, "' expects ",
                       desc.type, ", got ", value.dtype(), value.shape());
    desc.type.shape = value.shape();
    values_.push_back(std::move(value));
  }
  program_.vars.push_back(std::move(desc));
  return {this, {static_cast<int32_t>(program_.vars.size() - 1)}};
}

Var Builder::given(const Tensor& value) {
  check<ConfigError>(eager(), "a value is given to a program that is recorded, not run");
  values_.push_back(value);
  program_.vars.push_back({.name = "",
                           .type = {value.shape(), value.dtype()},
                           .kind = VarKind::input,
                           .init = "",
                           .from = "",
                           .at = {}});
  return {this, {static_cast<int32_t>(program_.vars.size() - 1)}};
}

std::vector<Var> Builder::apply_all(std::string_view op, std::span<const Var> in, Attrs attrs,
                                    SourceLoc at) {
  const LocationScope scope(*this, at);
  Node node{.op = &find_op(op),
            .in = {},
            .out = {},
            .attrs = std::move(attrs),
            .phase = phase_,
            .at = location_};
  for (const Setting& setting : always_)
    if (setting.op == op) node.attrs.set(setting.name, setting.value);
  std::vector<VarType> types, results;
  for (const Var& var : in) {
    check<ConfigError>(var.g == this, location_, ": ", op, ": input ", types.size(),
                       var.g == nullptr ? " is null" : " belongs to another builder");
    node.in.push_back(var.id);
    types.push_back(type(var.id));
  }
  try {
    infer(*node.op, {types, node.attrs, results});
  } catch (const ConfigError& e) {
    throw ConfigError(describe_failure(program_, node, e.what()));
  }

  std::vector<Var> out;
  for (const VarType& type : results) {
    const VarId id{static_cast<int32_t>(program_.vars.size())};
    program_.vars.push_back(
        {.name = "", .type = type, .kind = VarKind::temp, .init = "", .from = "", .at = location_});
    node.out.push_back(id);
    out.push_back({this, id});
  }
  if (eager()) run(node, results);
  program_.nodes.push_back(std::move(node));
  return out;
}

void Builder::run(const Node& node, std::span<const VarType> types) {
  if (node.op->trait == OpTrait::view) {
    values_.push_back(values_[node.in[0].index()].reshape(types[0].shape));
    return;
  }
  for (const VarType& type : types)
    values_.push_back(Tensor::uninitialized(type.shape, type.dtype));
  std::vector<Tensor*> in, out;
  for (VarId id : node.in) in.push_back(&values_[id.index()]);
  for (VarId id : node.out) out.push_back(&values_[id.index()]);
  const FlushDenormals flush;
  run_op(program_, node,
         {in, out, node.attrs, options_.seed.for_node(program_.nodes.size()), options_.ranks});
}

void Builder::name(Var var, std::string name) {
  check<ConfigError>(!program_.find(name), "two variables are named '", name, "'");
  check<ConfigError>(is_plain_name(name), program_.var(var.id).at, ": '", name, "': ", kPlainName);
  program_.vars[var.id.index()].name = std::move(name);
}

void Builder::output(Var var) {
  if (std::ranges::find(program_.outputs, var.id) == program_.outputs.end())
    program_.outputs.push_back(var.id);
}

void Builder::update(Var state, Var next) {
  check<ConfigError>(program_.var(state.id).kind == VarKind::state, "only a state can be updated, ",
                     program_.label(state.id), " is ", argosy::name(program_.var(state.id).kind));
  program_.updates.push_back({state.id, next.id});
  output(next);
}

const std::vector<VarGrad>& Builder::backward(Var loss, SourceLoc at) {
  const LocationScope scope(*this, at);
  check<ConfigError>(phase_ == Phase::forward, location_, ": backward was called twice");
  check<ConfigError>(type(loss.id).shape.numel() == 1 && is_float(type(loss.id).dtype), location_,
                     ": a loss is one float, ", program_.label(loss.id), " is ", type(loss.id));
  phase_ = Phase::backward;
  const size_t forward_nodes = program_.nodes.size();

  // Only what leads from a trainable variable to the loss is differentiated.
  std::vector<bool> depends(program_.vars.size());
  for (size_t i = 0; i < program_.vars.size(); ++i)
    depends[i] = program_.vars[i].kind == VarKind::param || program_.vars[i].kind == VarKind::rows;
  for (const Node& node : program_.nodes) {
    if (node.op->grad == nullptr) continue;
    const bool any = std::ranges::any_of(node.in, [&](VarId id) { return depends[id.index()]; });
    for (VarId id : node.out) depends[id.index()] = any && is_float(type(id).dtype);
  }

  std::vector<Var> grads(program_.vars.size());  // of forward variables
  grads[loss.id.index()] = apply("ones_like", {loss}, {}, at);
  for (size_t n = forward_nodes; n-- > 0;) {
    const Node node = program_.nodes[n];  // a copy: recording moves the vector
    if (node.op->grad == nullptr) continue;
    std::vector<bool> needs;
    for (VarId id : node.in) needs.push_back(depends[id.index()]);
    if (std::ranges::find(needs, true) == needs.end()) continue;
    std::vector<Var> in, out, dout;
    for (VarId id : node.in) in.push_back({this, id});
    for (VarId id : node.out) {
      out.push_back({this, id});
      dout.push_back(grads[id.index()]);
    }
    if (std::ranges::none_of(dout, [](Var v) { return static_cast<bool>(v); })) continue;
    location_ = node.at;  // a gradient node was written where its forward node was
    const std::vector<Var> din = node.op->grad({*this, in, out, dout, node.attrs, needs});
    for (size_t i = 0; i < din.size(); ++i) {
      if (!din[i] || !needs[i]) continue;
      Var& total = grads[node.in[i].index()];
      total = total ? apply("add", {total, din[i]}, {}, at) : din[i];
    }
  }

  for (size_t i = 0; i < grads.size(); ++i) {
    const VarKind kind = program_.vars[i].kind;
    if (!grads[i] || (kind != VarKind::param && kind != VarKind::rows)) continue;
    program_.grads.push_back({{static_cast<int32_t>(i)}, grads[i].id});
    output(grads[i]);
  }
  return program_.grads;
}

const Tensor& Builder::value(VarId id) const {
  check<ConfigError>(eager(), program_.label(id),
                     " has no value: the program is recorded, not run");
  return values_[id.index()];
}

LocationScope::LocationScope(Builder& g, const SourceLoc& at)
    : g_(g), outermost_(g.location_.line == 0) {
  if (outermost_) g_.location_ = at;
}
LocationScope::~LocationScope() {
  if (outermost_) g_.location_ = {};
}

std::string describe_failure(const Program& program, const Node& node, const char* why) {
  std::ostringstream out;
  out << node.at << ": " << signature(program, node) << ": " << why;
  return out.str();
}

void check_finite(const Program& program, const Node& node, std::span<Tensor* const> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& value = *outputs[i];
    check<DataError>(all_finite(value), node.at, ": ", signature(program, node),
                     ": NaN or infinity in ", program.label(node.out[i]), " ", value.dtype(),
                     value.shape());
  }
}

}  // namespace argosy
