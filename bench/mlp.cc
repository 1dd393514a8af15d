// The tower of the CTR model, forward and backward on one thread, beside its limit: the fifteen
// matrix products alone, plain oneDNN, each in a loop of its own, interleaved in this process.
#include <array>
#include <dnnl.hpp>

#include "argosy/base/rng.h"
#include "argosy/graph/executor.h"
#include "argosy/nn/layers.h"
#include "bench/bench.h"

extern "C" void omp_set_num_threads(int);

namespace argosy::benches {
namespace {

constexpr std::array<int64_t, 6> kSizes{247, 512, 256, 128, 32, 1};

Tensor random(const Shape& shape, uint64_t seed) {
  Tensor tensor(shape);
  const RandomStream stream(seed);
  auto values = tensor.as<float>();
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(stream.uniform(i) - 0.5) * 0.1F;
  return tensor;
}

/// One bare product C = A B with the operands bound.
class Product {
 public:
  Product(const dnnl::engine& engine, int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b)
      : stream_(engine), a_(random({m * k}, 1)), b_(random({k * n}, 2)), c_({m * n}) {
    using dnnl::memory;
    const auto f32 = memory::data_type::f32;
    const memory::desc da({m, k}, f32, trans_a ? memory::dims{1, m} : memory::dims{k, 1});
    const memory::desc db({k, n}, f32, trans_b ? memory::dims{1, k} : memory::dims{n, 1});
    const memory::desc dc({m, n}, f32, memory::dims{n, 1});
    matmul_ = dnnl::matmul(dnnl::matmul::primitive_desc(dnnl::matmul::desc(da, db, dc), engine));
    args_ = {{DNNL_ARG_SRC, memory(da, engine, a_.data())},
             {DNNL_ARG_WEIGHTS, memory(db, engine, b_.data())},
             {DNNL_ARG_DST, memory(dc, engine, c_.data())}};
  }
  void run() { matmul_.execute(stream_, args_); }

 private:
  dnnl::stream stream_;
  Tensor a_, b_, c_;
  dnnl::matmul matmul_;
  std::unordered_map<int, dnnl::memory> args_;
};

/// Seconds of the fifteen products at one batch, each the mean of `repeats` in a row.
double limit_seconds(std::vector<Product>& products, int repeats) {
  double total = 0;
  for (Product& product : products) {
    product.run();
    const double start = seconds_now();
    for (int i = 0; i < repeats; ++i) product.run();
    total += (seconds_now() - start) / repeats;
  }
  return total;
}

Program tower() {
  Builder g;
  Var x = g.variable({"x", {{-1, kSizes[0]}}, VarKind::rows, ""});
  const Var label = g.input("label", {{-1, 1}});
  for (size_t i = 1; i + 1 < kSizes.size(); ++i)
    x = nn::linear(x, kSizes[i], "fc" + std::to_string(i), {.activation = "relu"});
  const Var loss = nn::logistic_loss(nn::linear(x, 1, "out"), label);
  g.output(loss);
  g.backward(loss);
  return g.program();
}

BenchResults run(const BenchFlags& flags) {
  const int64_t batch = integer(flags, "batch"), rounds = integer(flags, "rounds");
  omp_set_num_threads(1);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  std::vector<Product> products;
  for (size_t i = 0; i + 1 < kSizes.size(); ++i) {
    const int64_t in = kSizes[i], out = kSizes[i + 1];
    products.emplace_back(engine, batch, out, in, false, false);
    products.emplace_back(engine, in, out, batch, true, false);
    products.emplace_back(engine, batch, in, out, false, true);
  }

  Executor executor(tower());
  Feeds feeds{{"x", random({batch, kSizes[0]}, 3)}, {"label", Tensor({batch, 1})}};
  for (const VarDesc& desc : executor.program().vars)
    if (desc.kind == VarKind::param) feeds.emplace(desc.name, random(desc.type.shape, 4));
  executor.run(feeds);

  std::vector<double> ratios, ours, limits;
  for (int64_t round = 0; round < rounds; ++round) {
    constexpr int kRepeats = 12;
    const double before = limit_seconds(products, kRepeats);
    const double start = seconds_now();
    for (int i = 0; i < 3 * kRepeats; ++i) executor.run(feeds);
    const double step = (seconds_now() - start) / (3 * kRepeats);
    const double limit = (before + limit_seconds(products, kRepeats)) / 2;
    ours.push_back(static_cast<double>(batch) / step);
    limits.push_back(static_cast<double>(batch) / limit);
    ratios.push_back(limit / step);
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
