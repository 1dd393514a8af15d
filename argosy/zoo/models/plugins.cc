// Collects the models of this folder: every other .cc file here defines
// ModelOutputs <file>(const Inputs& in, const Hyper& hyper). A new model is a new file and nothing
// else.
#include "argosy/zoo/model.h"
#include "argosy/zoo/models.def"

namespace argosy {

ARGOSY_COLLECT(models, ModelPlugin, builtin_models)

}  // namespace argosy
