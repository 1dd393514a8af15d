// Collects the parsers of this folder: every other .cc file here defines
// std::unique_ptr<Parser> <file>(const Call& spec, std::vector<SlotSpec> slots). A new format is a
// new file and nothing else.
#include "argosy/data/parser.h"
#include "argosy/data/parsers.def"

namespace argosy {

ARGOSY_COLLECT(parsers, ParserPlugin, builtin_parsers)

}  // namespace argosy
