// Collects the meters of this folder: every other .cc file here defines
// std::unique_ptr<Meter> <file>(const Call& spec). A new meter is a new file and nothing else.
#include "argosy/train/meter.h"
#include "argosy/train/meters.def"

namespace argosy {

ARGOSY_COLLECT(meters, MeterPlugin, builtin_meters)

}  // namespace argosy
