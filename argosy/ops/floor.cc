// floor(x), round(x) (halves away from zero) and sign(x), element by element. They are flat
// between their steps, so no gradient flows.
#include <cmath>

#include "argosy/ops/op_support.h"

namespace argosy::ops {
namespace {

void run_floor(const RunCtx& c) {
  map(c, [](auto x) { return std::floor(x); });
}

void run_round(const RunCtx& c) {
  map(c, [](auto x) { return std::round(x); });
}

void run_sign(const RunCtx& c) {
  map(c, [](auto x) { return static_cast<decltype(x)>((x > 0) - (x < 0)); });
}

std::vector<OpExample> examples() { return {{.in = {random_tensor({3, 4}, -3.0, 3.0)}}}; }

OpDef step(const char* name, void (*run)(const RunCtx&)) {
  return {.name = name,
          .trait = OpTrait::elementwise,
          .infer = same_float,
          .run = run,
          .examples = examples};
}

}  // namespace

std::vector<OpDef> floor() {
  return {step("floor", run_floor), step("round", run_round), step("sign", run_sign)};
}

}  // namespace argosy::ops
