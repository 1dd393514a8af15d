// A steady state allocates nothing: counts every operator new of training steps after the first.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "argosy/argosy.h"

namespace {

std::atomic<bool> counting = false;
std::atomic<int> allocations = 0;

/// oneDNN builds a small map of arguments inside each primitive it runs (AVX-512 machines); that
/// is its own, not ours to avoid.
bool called_by_onednn(void* caller) {
  Dl_info info{};
  return dladdr(caller, &info) != 0 && info.dli_fname != nullptr &&
         std::strstr(info.dli_fname, "libdnnl") != nullptr;
}

void* allocate(size_t bytes, size_t alignment, void* caller) {
  if (counting && !called_by_onednn(caller)) ++allocations;
  void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) {
  return allocate(std::max<size_t>(bytes, 1), 16, __builtin_return_address(0));
}
void* operator new[](size_t bytes) {
  return allocate(std::max<size_t>(bytes, 1), 16, __builtin_return_address(0));
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<size_t>(alignment), __builtin_return_address(0));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace argosy {
namespace {

ModelOutputs model(Builder& g) {
  const Var x = g.input("x", {{-1, 60}});
  const Var label = g.input("label", {{-1, 1}, DType::i64});
  Var h = nn::mlp(x, std::array<int64_t, 2>{256, 128}, "relu", "hidden");
  h = nn::dropout(nn::batch_norm(nn::tanh(nn::sigmoid(h)) + h, "norm"), 0.1);
  const Var logits = nn::linear(h, 10, "scores");
  return {.loss = nn::softmax_loss(logits, label),
          .metrics = {{"acc", nn::accuracy(logits, label)}}};
}

TEST(SteadyState, CountsAllocationsAtAll) {
  counting = true;
  allocations = 0;
  const auto some = std::make_unique<std::vector<int>>(100);
  counting = false;
  EXPECT_EQ(allocations, 2) << "the counter itself must work, or the tests below prove nothing";
}

void expect_no_allocation_in_steps(Trainer& trainer, const std::string& what) {
  const auto data = array_dataset(
      {{"x", Tensor({640, 60})}, {"label", Tensor({640, 1}, DType::i64)}}, {.batch_size = 128});
  Batch batch;
  data->begin_epoch(1);
  data->next(batch);
  for (int i = 0; i < 3; ++i) trainer.step(batch);
  allocations = 0;
  counting = true;
  while (data->next(batch)) trainer.step(batch);
  counting = false;
  EXPECT_EQ(allocations, 0) << what;
}

TEST(SteadyState, AStepAllocatesNothing) {
  const auto env = real_env();
  for (const char* rule : {"sgd", "momentum(0.9)", "adagrad", "adam"}) {
    Trainer trainer(
        *env, model,
        {.optimizer = {.rule = rule, .regularizer = "l2(0.001)", .clip = "global_norm(0.001)"}});
    expect_no_allocation_in_steps(trainer, rule);
  }
}

ModelOutputs device_model(Builder& g) {
  const Var x = g.input("x", {{-1, 60}});
  const Var label = g.input("label", {{-1, 1}, DType::i64});
  const Var h = nn::dropout(nn::mlp(x, std::array<int64_t, 2>{256, 128}, "relu", "hidden"), 0.1);
  const Var logits = nn::linear(h, 10, "scores");
  return {.loss = nn::softmax_loss(logits, label),
          .metrics = {{"acc", nn::accuracy(logits, label)}}};
}

TEST(SteadyState, AStepOnADeviceAllocatesNothing) {
  ::setenv("ARGOSY_EMULATED_DEVICES", "1", 1);
  const auto env = real_env();
  Trainer trainer(*env, device_model, {.device = 0});
  expect_no_allocation_in_steps(trainer, "on a device");
}

/// Every op on its own examples, forward and, where it has a gradient, backward.
TEST(SteadyState, NoOpAllocates) {
  for (const OpDef* op : all_ops()) {
    if (op->examples == nullptr) continue;
    for (const OpExample& example : op->examples()) {
      Builder g;
      Feeds feeds;
      std::vector<Var> in;
      for (size_t i = 0; i < example.in.size(); ++i) {
        const Tensor& value = example.in[i];
        const bool trained = is_float(value.dtype());
        const std::string name = "in" + std::to_string(i);
        in.push_back(g.variable(
            {name, {value.shape(), value.dtype()}, trained ? VarKind::param : VarKind::input, ""}));
        feeds.emplace(name, value);
      }
      const std::vector<Var> out = g.apply_all(op->name, in, example.attrs);
      for (const Var& var : out) g.output(var);
      if (op->grad != nullptr && is_float(out[0].type().dtype))
        g.backward(g.apply("mean", {out[0]}));
      Executor executor(g.program(), {.fuse = false});
      executor.run(feeds);
      allocations = 0;
      counting = true;
      executor.run(feeds);
      counting = false;
      EXPECT_EQ(allocations, 0) << op->name << "\n" << g.program().text();
    }
  }
}

}  // namespace
}  // namespace argosy
