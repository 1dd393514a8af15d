// The contract of every device kernel: on the op's own examples, a device gives the results of the
// processor's kernel. A new kernel costs no test code.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>

#include "argosy/device/devices.h"
#include "argosy/device/stream.h"
#include "op_cases.h"

namespace argosy {
namespace {

using namespace conformance;

/// A device to test on: the machine's first, or an emulated one.
int test_device() {
  if (device::devices("").count == 0) ::setenv(device::kEmulated, "1", 1);
  return 0;
}

/// A tensor's copy on the device, followed by guard bytes that must not change.
class There {
 public:
  There(device::Stream& stream, const Tensor& value, int fill) : stream_(stream), fill_(fill) {
    const std::vector<char> filled(value.bytes() + kGuard, static_cast<char>(fill));
    void* memory = buffer_.room(filled.size());
    stream.upload(memory, filled.data(), filled.size());
    stream.wait();
    tensor = Tensor::wrap(memory, value.shape(), value.dtype());
  }

  void set(const Tensor& value) { stream_.upload(tensor.data(), value.data(), value.bytes()); }

  /// Copies the tensor back and checks the guard bytes.
  Tensor back() {
    std::vector<char> all(tensor.bytes() + kGuard);
    stream_.download(all.data(), tensor.data(), all.size());
    stream_.wait();
    for (size_t i = tensor.bytes(); i < all.size(); ++i)
      EXPECT_EQ(all[i], static_cast<char>(fill_)) << "wrote behind the end";
    Tensor here = Tensor::uninitialized(tensor.shape(), tensor.dtype());
    if (here.numel() > 0) std::memcpy(here.data(), all.data(), here.bytes());
    return here;
  }

  Tensor tensor;

 private:
  static constexpr size_t kGuard = 256;
  device::Stream& stream_;
  int fill_;
  device::Buffer buffer_;
};

void expect_near(const Tensor& expected, const Tensor& actual) {
  ASSERT_EQ(expected.shape(), actual.shape());
  ASSERT_EQ(expected.dtype(), actual.dtype());
  if (expected.dtype() != DType::f32) {
    EXPECT_TRUE(same_bits(expected, actual));
    return;
  }
  constexpr float kTolerance = 2e-6F;
  for (size_t i = 0; i < static_cast<size_t>(expected.numel()); ++i) {
    const float e = expected.as<float>()[i];
    EXPECT_NEAR(e, actual.as<float>()[i], kTolerance * (1 + std::abs(e))) << "element " << i;
  }
}

bool all_of_device(const NodeTrial& trial) {
  const auto fits = [](const Tensor& x) { return x.dtype() != DType::f64; };
  return std::ranges::all_of(trial.in, fits) && std::ranges::all_of(trial.expected, fits);
}

/// Runs the node's device kernel; output 0 lies over input `over` where that is 0 or more.
void try_on_device(device::Stream& stream, const NodeTrial& trial, int fill, int over = -1) {
  std::vector<std::unique_ptr<There>> in, out;
  std::vector<Tensor*> inputs, outputs;
  for (const Tensor& x : trial.in) {
    in.push_back(std::make_unique<There>(stream, x, fill));
    in.back()->set(x);
    inputs.push_back(&in.back()->tensor);
  }
  for (const Tensor& y : trial.expected) {
    out.push_back(std::make_unique<There>(stream, y, fill));
    outputs.push_back(&out.back()->tensor);
  }
  Tensor first;
  if (over >= 0) {
    first = Tensor::wrap(inputs[static_cast<size_t>(over)]->data(), outputs[0]->shape(),
                         outputs[0]->dtype());
    outputs[0] = &first;
  }
  const FlushDenormals flush;
  trial.node.op->on_device({inputs, outputs, trial.node.attrs, trial.seed}, stream);
  stream.wait();
  for (size_t i = 0; i < out.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "output " << i << ", over input " << over);
    There& at = i == 0 && over >= 0 ? *in[static_cast<size_t>(over)] : *out[i];
    const Tensor back = at.back();
    expect_near(trial.expected[i],
                Tensor::wrap(const_cast<std::byte*>(back.data()), trial.expected[i].shape(),
                             trial.expected[i].dtype()));
  }
  for (size_t i = 0; i < in.size(); ++i) {
    if (static_cast<int>(i) == over) continue;
    EXPECT_TRUE(same_bits(trial.in[i], in[i]->back())) << "input " << i << " was changed";
  }
}

/// f(trial) for the nodes of a case that have a device kernel.
template <class F>
void for_each_device_node(const Case& c, F f) {
  for_each_node(c, [&](const NodeTrial& trial) {
    if (trial.node.op->on_device != nullptr && all_of_device(trial)) f(trial);
  });
}

class DeviceConformance : public testing::TestWithParam<std::string> {
 protected:
  std::vector<Case> cases() const { return cases_of(find_op(GetParam())); }
  device::Stream stream_{test_device()};
};

TEST_P(DeviceConformance, GivesWhatTheProcessorGives) {
  for (const Case& f64 : cases())
    for (const Case& c : {in_f32(f64), in_f32(with_empty_batch(f64))})
      for_each_device_node(c, [&](const NodeTrial& trial) {
        for (const int fill : {0x00, 0xFF}) try_on_device(stream_, trial, fill);
      });
}

TEST_P(DeviceConformance, TakesIndicesOfEitherWidth) {
  for (const Case& f64 : cases()) {
    Case c = in_f32(f64);
    for (Tensor& x : c.example.in)
      if (x.dtype() == DType::i64) x = cast<int32_t>(x);
    for_each_device_node(c, [&](const NodeTrial& trial) { try_on_device(stream_, trial, 0xFF); });
  }
}

TEST_P(DeviceConformance, OverwritesInputsWhereItsTraitSaysSo) {
  for (const Case& c : cases()) {
    for_each_device_node(in_f32(c), [&](const NodeTrial& trial) {
      const OpDef& op = *trial.node.op;
      if (op.trait != OpTrait::elementwise && op.trait != OpTrait::inplace) return;
      for (size_t k = 0; k < trial.in.size(); ++k) {
        if (static_cast<int>(k) == op.shape_of) continue;
        if (trial.in[k].numel() != trial.expected[0].numel()) continue;
        if (trial.in[k].bytes() != trial.expected[0].bytes()) continue;
        try_on_device(stream_, trial, 0xFF, static_cast<int>(k));
      }
    });
  }
}

TEST(DeviceKernels, AreAllReachedByExamples) {
  std::set<std::string> reached;
  for (const OpDef* op : tested_ops())
    for (const Case& c : cases_of(*op)) {
      for (int param = kAllFloats; param < static_cast<int>(c.example.in.size()); ++param) {
        Builder g;
        const Recorded recorded = record(g, c, types_with_open_batch(c), param);
        if (recorded.loss) g.backward(recorded.loss);
        for (const Node& node : g.program().nodes) reached.insert(node.op->name);
      }
      const EagerRun run(c);
      for (const Node& node : run.program().nodes) reached.insert(node.op->name);
    }
  size_t kernels = 0;
  for (const OpDef* op : all_ops()) {
    if (op->on_device == nullptr) continue;
    ++kernels;
    EXPECT_TRUE(reached.contains(op->name)) << op->name;
  }
  EXPECT_GE(kernels, 40U);
}

INSTANTIATE_TEST_SUITE_P(AllOps, DeviceConformance, testing::ValuesIn(names_of_ops_with_examples()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace argosy
