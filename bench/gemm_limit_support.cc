#include "bench/gemm_limit.h"

#include <dnnl.hpp>

#include "argosy/tensor/tensor.h"
#include "bench/bench.h"

extern "C" void omp_set_num_threads(int);

namespace argosy::benches {

/// One bare product C = A B with the operands bound.
class GemmLimit::Product {
 public:
  Product(const dnnl::engine& engine, int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b)
      : stream_(engine), a_(random_floats({m * k}, 1)), b_(random_floats({k * n}, 2)), c_({m * n}) {
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

GemmLimit::GemmLimit(int64_t batch) : batch_(batch) {
  omp_set_num_threads(1);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  for (size_t i = 0; i + 1 < kTowerSizes.size(); ++i) {
    const int64_t in = kTowerSizes[i], out = kTowerSizes[i + 1];
    products_.push_back(std::make_unique<Product>(engine, batch, out, in, false, false));
    products_.push_back(std::make_unique<Product>(engine, in, out, batch, true, false));
    products_.push_back(std::make_unique<Product>(engine, batch, in, out, false, true));
  }
}

GemmLimit::~GemmLimit() = default;

double GemmLimit::examples_per_second() {
  constexpr int kRepeats = 12;
  double seconds = 0;
  for (const auto& product : products_) {
    product->run();
    const double start = seconds_now();
    for (int i = 0; i < kRepeats; ++i) product->run();
    seconds += (seconds_now() - start) / kRepeats;
  }
  return static_cast<double>(batch_) / seconds;
}

}  // namespace argosy::benches
