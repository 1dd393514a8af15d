#include "bindings.h"

namespace argosy::python {
namespace {

NB_MODULE(_core, module) {
  module.doc() = "The engine of argosy.";
  bind_errors(module);
  bind_script(module);
}

}  // namespace
}  // namespace argosy::python
