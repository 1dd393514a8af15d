// A libFuzzer program for one target, whose name is FUZZ_TARGET.
#include <cstdint>

#include "targets.h"

namespace {

const argosy::fuzz::Target& target() {
  static const argosy::fuzz::Target found = argosy::fuzz::all_targets().at(FUZZ_TARGET);
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  target().run(std::as_bytes(std::span(data, size)));
  return 0;
}
