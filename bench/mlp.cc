// The tower of the CTR model, forward and backward on one thread, against its limit: the fifteen
// matrix products alone, plain oneDNN, one loop each, interleaved in this process.
#include "argosy/base/rng.h"
#include "argosy/graph/executor.h"
#include "argosy/nn/layers.h"
#include "bench/bench.h"
#include "bench/gemm_limit.h"

namespace argosy::benches {
namespace {

Program tower() {
  Builder g;
  Var x = g.variable({.name = "x", .type = {{-1, kTowerSizes[0]}}, .kind = VarKind::rows});
  const Var label = g.input("label", {{-1, 1}});
  for (size_t i = 1; i + 1 < kTowerSizes.size(); ++i)
    x = nn::linear(x, kTowerSizes[i], "fc" + std::to_string(i), {.activation = "relu"});
  const Var loss = nn::logistic_loss(nn::linear(x, 1, "out"), label);
  g.output(loss);
  g.backward(loss);
  return g.program();
}

BenchResults run(const BenchFlags& flags) {
  const int64_t batch = integer(flags, "batch"), rounds = integer(flags, "rounds");
  GemmLimit limit(batch);
  Executor executor(tower());
  Feeds feeds{{"x", random_floats({batch, kTowerSizes[0]}, 3)}, {"label", Tensor({batch, 1})}};
  for (const VarDesc& desc : executor.program().vars)
    if (desc.kind == VarKind::param) feeds.emplace(desc.name, random_floats(desc.type.shape, 4));
  executor.run(feeds);

  std::vector<double> ratios, ours, limits;
  for (int64_t round = 0; round < rounds; ++round) {
    constexpr int kSteps = 36;
    const double before = limit.examples_per_second();
    const double start = seconds_now();
    for (int i = 0; i < kSteps; ++i) executor.run(feeds);
    ours.push_back(static_cast<double>(batch) * kSteps / (seconds_now() - start));
    limits.push_back((before + limit.examples_per_second()) / 2);
    ratios.push_back(ours.back() / limits.back());
  }
  return {{"examples_per_second", median(ours)},
          {"gemm_examples_per_second", median(limits)},
          {"ratio_to_gemm", median(ratios)},
          {"rounds", static_cast<double>(rounds)}};
}

}  // namespace

Bench mlp() {
  return {
      .help =
          "CTR tower 247-512-256-128-32-1, forward + backward, one thread, against its bare GEMMs",
      .flags = {{"batch", "512"}, {"rounds", "9"}},
      .run = run};
}

}  // namespace argosy::benches
