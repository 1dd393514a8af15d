#include "argosy/launch/cards.h"

#include <gtest/gtest.h>

#include "argosy/base/error.h"

namespace argosy::launch {
namespace {

Machine machine(int devices, Variables environment = {}) {
  return {.environment = std::move(environment), .count_devices = [=] { return devices; }};
}

std::string refusal(const Flags& flags, const Machine& on) {
  try {
    cards_are_emulated(flags, on);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

TEST(Cards, AMachineWithoutDevicesSaysSo) {
  EXPECT_EQ(refusal({.gpus = "0,1"}, machine(0)),
            "--gpus is 0,1 but this machine has no CUDA device; ARGOSY_EMULATED_DEVICES=N makes N "
            "devices that are emulated on the CPU, --nproc_per_node=N starts N ranks without "
            "devices");
  EXPECT_EQ(refusal({}, machine(0)), "");
}

TEST(Cards, ThatAreNotThereAreNamed) {
  EXPECT_EQ(refusal({.gpus = "0,4"}, machine(4)), "--gpus has card 4, expected 0 to 3");
  EXPECT_EQ(refusal({.gpus = "7"}, machine(1, {{"CUDA_VISIBLE_DEVICES", "7"}})), "");
  EXPECT_EQ(refusal({.gpus = "0"}, machine(4, {{"ARGOSY_EMULATED_DEVICES", "x"}})),
            "ARGOSY_EMULATED_DEVICES is 'x', expected a number of at least 0");
}

TEST(Cards, AreEmulatedOnlyWhereItIsAskedFor) {
  EXPECT_FALSE(cards_are_emulated({.gpus = "0,1"}, machine(2)));
  EXPECT_TRUE(cards_are_emulated({.gpus = "0,1"}, machine(2, {{"ARGOSY_EMULATED_DEVICES", "2"}})));
}

}  // namespace
}  // namespace argosy::launch
