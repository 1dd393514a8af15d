// The only file that knows oneDNN.
#include "argosy/tensor/gemm.h"

#include <algorithm>
#include <array>
#include <dnnl.hpp>
#include <unordered_map>

#include "argosy/base/error.h"
#include "argosy/base/isa.h"

extern "C" void omp_set_num_threads(int);  // oneDNN's threads; libgomp comes with it

namespace argosy {
namespace {

/// Below this many multiply-adds the fixed cost of a primitive exceeds its gain.
constexpr int64_t kPrimitiveFrom = 1 << 20;

/// oneDNN, prepared once for the process: bf16 kernels for AMX in this release die on some
/// machines, so the instruction set is capped before the first primitive exists.
class Library {
 public:
  static const Library& get() {
    static const Library library;
    return library;
  }
  const dnnl::engine& engine() const { return engine_; }
  bool avx512() const { return avx512_; }

 private:
  Library() : avx512_(isa() == Isa::avx512) {
    const auto cap = avx512_              ? dnnl::cpu_isa::avx512_core
                     : isa() == Isa::avx2 ? dnnl::cpu_isa::avx2
                                          : dnnl::cpu_isa::sse41;
    dnnl::set_max_cpu_isa(cap);
    engine_ = dnnl::engine(dnnl::engine::kind::cpu, 0);
  }
  bool avx512_;
  dnnl::engine engine_;
};

/// A matmul primitive with its arguments bound, reused with other pointers.
class Primitive {
 public:
  explicit Primitive(const GemmSpec& spec) : stream_(Library::get().engine()) {
    using dnnl::memory;
    const auto f32 = memory::data_type::f32;
    const memory::dims a_strides = spec.trans_a ? memory::dims{1, spec.m} : memory::dims{spec.k, 1};
    const memory::dims b_strides = spec.trans_b ? memory::dims{1, spec.k} : memory::dims{spec.n, 1};
    const memory::desc a({spec.m, spec.k}, f32, a_strides), b({spec.k, spec.n}, f32, b_strides),
        c({spec.m, spec.n}, f32, memory::dims{spec.n, 1}),
        bias({1, spec.n}, f32, memory::dims{spec.n, 1});
    dnnl::primitive_attr attr;
    if (spec.relu) {
      dnnl::post_ops ops;
      ops.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
      attr.set_post_ops(ops);
    }
    const auto desc = spec.bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
    matmul_ = dnnl::matmul(dnnl::matmul::primitive_desc(desc, attr, Library::get().engine()));
    bind(DNNL_ARG_SRC, a);
    bind(DNNL_ARG_WEIGHTS, b);
    bind(DNNL_ARG_DST, c);
    if (spec.bias) bind(DNNL_ARG_BIAS, bias);
  }

  void run(const float* a, const float* b, const float* bias, float* c) {
    const std::array<const float*, 4> data{a, b, c, bias};
    for (size_t i = 0; i < count_; ++i) memories_[i].set_data_handle(const_cast<float*>(data[i]));
    // The C call: the C++ one copies its arguments into a vector each time.
    const auto status = dnnl_primitive_execute(matmul_.get(), stream_.get(),
                                               static_cast<int>(count_), args_.data());
    check<Error>(status == dnnl_success, "oneDNN: matmul failed with status ", status);
  }

 private:
  void bind(int arg, const dnnl::memory::desc& desc) {
    memories_[count_] = dnnl::memory(desc, Library::get().engine(), nullptr);
    args_[count_] = {arg, memories_[count_].get()};
    ++count_;
  }

  dnnl::stream stream_;
  dnnl::matmul matmul_;
  size_t count_ = 0;
  std::array<dnnl::memory, 4> memories_;
  std::array<dnnl_exec_arg_t, 4> args_{};
};

struct SpecHash {
  size_t operator()(const GemmSpec& s) const {
    const auto flags = static_cast<uint64_t>(s.trans_a) << 3 |
                       static_cast<uint64_t>(s.trans_b) << 2 | static_cast<uint64_t>(s.bias) << 1 |
                       static_cast<uint64_t>(s.relu);
    return ((static_cast<uint64_t>(s.m) * 31 + static_cast<uint64_t>(s.n)) * 31 +
            static_cast<uint64_t>(s.k)) *
               16 +
           flags;
  }
};

void add_bias_and_relu(const GemmSpec& spec, const float* bias, float* c) {
  const auto rows = static_cast<size_t>(spec.m), n = static_cast<size_t>(spec.n);
  vectorized([=, relu = spec.relu, use_bias = spec.bias] {
    for (size_t row = 0; row < rows; ++row) {
      float* __restrict out = c + row * n;
      if (use_bias) {
        for (size_t i = 0; i < n; ++i) out[i] += bias[i];
      }
      if (relu) {
        for (size_t i = 0; i < n; ++i) out[i] = out[i] > 0.0F ? out[i] : 0.0F;
      }
    }
  });
}

}  // namespace

void gemm(const GemmSpec& spec, const float* a, const float* b, const float* bias, float* c) {
  if (spec.m == 0 || spec.n == 0) return;
  thread_local const bool single_threaded = (omp_set_num_threads(1), true);
  static_cast<void>(single_threaded);

  // The choice depends on the machine and the spec only, so that all ranks get the same bits.
  if (Library::get().avx512() && spec.m * spec.n * spec.k >= kPrimitiveFrom) {
    thread_local std::unordered_map<GemmSpec, Primitive, SpecHash> primitives;
    primitives.try_emplace(spec, spec).first->second.run(a, b, bias, c);
    return;
  }
  if (spec.k == 0) {
    std::fill_n(c, spec.m * spec.n, 0.0F);
  } else {
    const auto status = dnnl_sgemm(spec.trans_a ? 'T' : 'N', spec.trans_b ? 'T' : 'N', spec.m,
                                   spec.n, spec.k, 1.0F, a, spec.trans_a ? spec.m : spec.k, b,
                                   spec.trans_b ? spec.k : spec.n, 0.0F, c, spec.n);
    check<Error>(status == dnnl_success, "oneDNN: sgemm failed with status ", status);
  }
  if (spec.bias || spec.relu) add_bias_and_relu(spec, bias, c);
}

void gemm(const GemmSpec& spec, const double* a, const double* b, const double* bias, double* c) {
  for (int64_t i = 0; i < spec.m; ++i) {
    for (int64_t j = 0; j < spec.n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < spec.k; ++p)
        sum += a[spec.trans_a ? p * spec.m + i : i * spec.k + p] *
               b[spec.trans_b ? j * spec.k + p : p * spec.n + j];
      if (spec.bias) sum += bias[j];
      c[i * spec.n + j] = spec.relu ? std::max(sum, 0.0) : sum;
    }
  }
}

}  // namespace argosy
