// Collects the meters of this folder: every other .cc file here defines
// std::unique_ptr<Meter> <file>(const Call& spec). CMake writes argosy/train/meters.def from the
// folder, so a new meter is a new file and nothing else.
#include "argosy/train/meter.h"

namespace argosy {
namespace meters {

#define PLUGIN(file) std::unique_ptr<Meter> file(const Call& spec);
#include "argosy/train/meters.def"
#undef PLUGIN

}  // namespace meters

std::vector<MeterPlugin> builtin_meters() {
  return {
#define PLUGIN(file) {#file, meters::file},
#include "argosy/train/meters.def"
#undef PLUGIN
  };
}

}  // namespace argosy
