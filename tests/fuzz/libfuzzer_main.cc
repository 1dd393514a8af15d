// A libFuzzer program for one target, whose name is FUZZ_TARGET. Writes the target's seeds into the
// folder that the variable FUZZ_SEEDS names.
#include <cstdint>
#include <cstdlib>
#include <fstream>

#include "targets.h"

namespace {

const argosy::fuzz::Target& target() {
  static const argosy::fuzz::Target found = argosy::fuzz::all_targets().at(FUZZ_TARGET);
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* const folder = std::getenv("FUZZ_SEEDS");
  if (folder == nullptr) return 0;
  size_t number = 0;
  for (const std::string& seed : target().seeds)
    std::ofstream(std::string(folder) + "/seed-" + std::to_string(number++)) << seed;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  target().run(std::as_bytes(std::span(data, size)));
  return 0;
}
