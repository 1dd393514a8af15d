#include "argosy/launch/cards.h"

#include <dlfcn.h>

#include <memory>

#include "argosy/base/error.h"
#include "argosy/launch/flag_values.h"

namespace argosy::launch {
namespace {

constexpr const char* kEmulated = "ARGOSY_EMULATED_DEVICES";

}  // namespace

// Loads the driver at run time, so that fleetrun needs no CUDA to be built or to run.
int cuda_device_count() {
  struct Close {
    void operator()(void* library) const { ::dlclose(library); }
  };
  const std::unique_ptr<void, Close> driver(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL));
  if (driver == nullptr) return 0;
  const auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(driver.get(), "cuInit"));
  const auto ask = reinterpret_cast<int (*)(int*)>(::dlsym(driver.get(), "cuDeviceGetCount"));
  int count = 0;
  if (init == nullptr || ask == nullptr || init(0) != 0 || ask(&count) != 0) return 0;
  return count;
}

bool cards_are_emulated(const Flags& flags, const Machine& machine) {
  if (flags.gpus.empty()) return false;
  const std::string text = machine.variable(kEmulated);
  const bool emulated = !text.empty();
  const int count = emulated                ? number_in(kEmulated, text, 0)
                    : machine.count_devices ? machine.count_devices()
                                            : 0;
  check<ConfigError>(
      count > 0, "--gpus is ", flags.gpus, " but this machine has no CUDA device; ", kEmulated,
      "=N makes N devices that are emulated on the CPU, --nproc_per_node=N starts N ",
      "ranks without devices");
  // Those have names, which make_job knows.
  if (emulated || !machine.variable("CUDA_VISIBLE_DEVICES").empty()) return emulated;
  for (const std::string& card : split(flags.gpus))
    check<ConfigError>(number_in("--gpus", card, 0) < count, "--gpus has card ", card,
                       ", expected 0 to ", count - 1);
  return false;
}

}  // namespace argosy::launch
