// Collects the models of this folder: every other .cc file here defines
// ModelOutputs <file>(const Inputs& in, const Hyper& hyper). CMake writes argosy/zoo/models.def
// from the folder, so a new model is a new file and nothing else.
#include "argosy/zoo/model.h"

namespace argosy {
namespace models {

#define PLUGIN(file) ModelOutputs file(const Inputs& in, const Hyper& hyper);
#include "argosy/zoo/models.def"
#undef PLUGIN

}  // namespace models

std::vector<ModelPlugin> builtin_models() {
  return {
#define PLUGIN(file) {#file, models::file},
#include "argosy/zoo/models.def"
#undef PLUGIN
  };
}

}  // namespace argosy
