#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/device/devices.h"
#include "argosy/device/stream.h"
#include "argosy/ps/rule.h"

namespace argosy::ps {
namespace {

std::vector<float> random_floats(size_t n, uint64_t seed) {
  const RandomStream stream(seed);
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(stream.normal(i));
  return values;
}

int first_device() {
  if (device::devices("").count == 0) ::setenv(device::kEmulated, "1", 1);
  return 0;
}

/// Rules that treat each weight by itself.
class RuleOnDevice : public testing::TestWithParam<std::string> {};

/// Rows 4, 0, 2 and so on of a table on the device take the steps that the processor gives them.
TEST_P(RuleOnDevice, ChangesTheSlotsItIsGivenAndNoOther) {
  constexpr size_t kSlots = 6, kDim = 5;
  const std::vector<int64_t> slots = {4, 0, 2};
  const auto rule = make_rule(GetParam());
  const size_t stride = kDim + rule->state_size(kDim) + 1;
  std::vector<float> table = random_floats(kSlots * stride, 1);
  for (size_t slot = 0; slot < kSlots; ++slot)
    rule->init(std::span(table).subspan(slot * stride + kDim, rule->state_size(kDim)));
  std::vector<float> expected = table;

  device::Stream stream(first_device());
  device::Buffer table_memory, grad_memory, slot_memory;
  auto* there = table_memory.room_for<float>(table.size());
  auto* grads_there = grad_memory.room_for<float>(slots.size() * kDim);
  auto* slots_there = slot_memory.room_for<int64_t>(slots.size());
  stream.upload(there, table.data(), table.size() * sizeof(float));
  stream.upload(slots_there, slots.data(), slots.size() * sizeof(int64_t));
  for (uint64_t step = 1; step <= 3; ++step) {
    const Update update{.lr = 0.05F, .step = step};
    const std::vector<float> grads = random_floats(slots.size() * kDim, 10 + step);
    stream.upload(grads_there, grads.data(), grads.size() * sizeof(float));
    rule->apply_on_device(stream,
                          {.weights = there,
                           .grads = grads_there,
                           .count = slots.size(),
                           .dim = kDim,
                           .stride = stride,
                           .slots = slots_there},
                          update);
    stream.wait();
    for (size_t r = 0; r < slots.size(); ++r) {
      float* row = expected.data() + static_cast<size_t>(slots[r]) * stride;
      rule->apply({row, kDim}, {row + kDim, rule->state_size(kDim)},
                  std::span(grads).subspan(r * kDim, kDim), update);
    }
  }
  stream.download(table.data(), there, table.size() * sizeof(float));
  stream.wait();
  for (size_t i = 0; i < table.size(); ++i)
    EXPECT_NEAR(table[i], expected[i], 2e-6F * (1 + std::abs(expected[i]))) << "float " << i;
}

INSTANTIATE_TEST_SUITE_P(Rules, RuleOnDevice,
                         testing::Values("sgd", "momentum", "momentum(0.9, nesterov=1)", "adagrad",
                                         "adam", "adamw", "add"),
                         [](const auto& rule) {
                           return rule.param.substr(0, rule.param.find('(')) +
                                  std::to_string(rule.index);
                         });

TEST(RuleOnDevice, OthersSaySo) {
  device::Stream stream(first_device());
  EXPECT_THROW(
      make_rule("lars")->apply_on_device(
          stream, {.weights = nullptr, .grads = nullptr, .count = 0, .dim = 1, .stride = 1}, {}),
      ConfigError);
}

}  // namespace
}  // namespace argosy::ps
