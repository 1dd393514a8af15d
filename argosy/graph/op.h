#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/rng.h"
#include "argosy/graph/attrs.h"
#include "argosy/tensor/tensor.h"

namespace argosy {

namespace device {
class Stream;
}
struct GradCtx;  // builder.h
struct Var;
class SumOverRanks;  // sum_over_ranks.h

struct VarType {
  Shape shape;
  DType dtype = DType::f32;
  friend bool operator==(const VarType&, const VarType&) = default;
};
std::ostream& operator<<(std::ostream& out, const VarType& type);

/// The arguments of an op's type inference. Sizes may be Shape::kAny.
struct InferCtx {
  std::span<const VarType> in;
  const Attrs& attrs;
  std::vector<VarType>& out;  // to be filled: out = {...}
};

/// An op's arguments at run time. Outputs are allocated with the inferred shapes and not zeroed: an
/// op that accumulates zeroes its own.
struct RunCtx {
  std::span<Tensor*const> inputs, outputs;
  const Attrs& attrs;
  uint64_t random_seed = 0;       // a function of (seed, step, node)
  SumOverRanks* ranks = nullptr;  // null: this process is alone

  const Tensor& in(size_t i) const { return *inputs[i]; }
  Tensor& out(size_t i) const { return *outputs[i]; }
  RandomStream random() const { return RandomStream(random_seed); }
};

/// Inputs and settings an op is tried with: by the conformance suite (gradients in f64, empty
/// batch, refused shapes, text round trip, eager == static) and by the docs.
struct OpExample {
  std::vector<Tensor> in;
  Attrs attrs = {};
  std::vector<int> batched = {0};                  // inputs whose axis 0 is the batch
  std::vector<std::vector<VarType>> refused = {};  // inputs that infer must not accept
};

enum class OpTrait : uint8_t {
  none,
  elementwise,  // out[i] depends on in[k][i] only, all of one size: may be chained and in place
  inplace,      // output 0 may overwrite an input of as many bytes, of any type
  view,         // output 0 is input 0 under another shape: costs nothing
};

/// One operator. Everything argosy needs to know about it is in this struct.
struct OpDef {
  std::string name;
  int inputs = 1;  // -1: one or more
  OpTrait trait = OpTrait::none;
  int shape_of = -1;  // an input of which only the shape is read, so its content may be gone
  /// How many numbers it adds up over all ranks, in one call; null: it needs no other ranks.
  size_t (*rank_numbers)(std::span<const VarType> in, const Attrs& attrs) = nullptr;
  void (*infer)(const InferCtx& ctx) = nullptr;
  void (*run)(const RunCtx& ctx) = nullptr;
  /// One Var per input; a null Var if no gradient flows back. Without it the op is a constant.
  std::vector<Var> (*grad)(const GradCtx& ctx) = nullptr;
  std::vector<OpExample> (*examples)() = nullptr;
  /// `run` for tensors on a device, from ops/on_device/*.cc. Null: there is none.
  void (*on_device)(const RunCtx& ctx, device::Stream& stream) = nullptr;
};

/// Fills ctx.out; throws ConfigError saying what was expected.
void infer(const OpDef& op, const InferCtx& ctx);

const OpDef& find_op(std::string_view name);  // throws ConfigError naming the nearest
std::vector<const OpDef*> all_ops();          // by name
/// Adds an op for the rest of the process; the built-in ones come from ops/*.cc by themselves.
void register_op(OpDef op);
/// Everything in ops/*.cc; defined there.
std::vector<OpDef> builtin_ops();

}  // namespace argosy
