// Collects the parsers of this folder: every other .cc file here defines
// std::unique_ptr<Parser> <file>(const Call& spec, std::vector<SlotSpec> slots). CMake writes
// argosy/data/parsers.def from the folder, so a new format is a new file and nothing else.
#include "argosy/data/parser.h"

namespace argosy {
namespace parsers {

#define PLUGIN(file) std::unique_ptr<Parser> file(const Call& spec, std::vector<SlotSpec> slots);
#include "argosy/data/parsers.def"
#undef PLUGIN

}  // namespace parsers

std::vector<ParserPlugin> builtin_parsers() {
  return {
#define PLUGIN(file) {#file, parsers::file},
#include "argosy/data/parsers.def"
#undef PLUGIN
  };
}

}  // namespace argosy
