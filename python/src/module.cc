#include "bindings.h"
#include "recorder.h"
#include "training.h"

namespace argosy::python {
namespace {

NB_MODULE(_core, module) {
  nb::set_leak_warnings(false);  // default programs live until the process ends
  module.doc() = "The engine of argosy.";
  module.attr("__version__") = ARGOSY_VERSION;
  bind_errors(module);
  bind_script(module);
  bind_recorder(module);
  bind_datasets(module);
  bind_training(module);
  bind_fleet(module);
  bind_ranks(module);
  bind_samples(module);
  bind_eager(module);
  bind_stepper(module);
}

}  // namespace
}  // namespace argosy::python
