#include "argosy/modes/stepper.h"

#include "bindings.h"
#include "eager.h"

namespace argosy::python {

using namespace nb::literals;

namespace {

size_t add(Stepper& self, const PyTensor& parameter, const std::string& rule,
           const std::string& regularizer, double rate, bool clips, const std::string& rows_rule,
           const std::string& name) {
  return self.add(parameter.value, {.rule = rule,
                                    .rows_rule = rows_rule,
                                    .regularizer = regularizer,
                                    .rate = rate,
                                    .clips = clips,
                                    .name = name});
}

nb::tuple state_of(const Stepper& self, size_t parameter) {
  const Stepper::State& state = self.state(parameter);
  const auto count = static_cast<int64_t>(state.values.size());
  return nb::make_tuple(state.steps, array_of(Tensor::of<float>({count}, state.values)));
}

void set_state(Stepper& self, size_t parameter, uint64_t steps, nb::handle array) {
  const Tensor values = tensor_of(array, "the state of an optimizer");
  const auto numbers = values.as<float>();
  self.set_state(parameter, {.steps = steps, .values = {numbers.begin(), numbers.end()}});
}

}  // namespace

void bind_stepper(nb::module_& module) {
  module.def(
      "parse_check_nan", [](const std::string& policy) { parse_check_nan(policy); }, "policy"_a);
  nb::class_<Stepper>(module, "Stepper", "Updates parameters by their gradients, in place.")
      .def(
          "__init__",
          [](Stepper* self, std::string clip, const std::string& check_nan) {
            new (self) Stepper(std::move(clip), parse_check_nan(check_nan));
          },
          "clip"_a = "", "check_nan"_a = "fail")
      .def("add", add, "parameter"_a, "rule"_a, "regularizer"_a = "", "rate"_a = 1.0,
           "clips"_a = true, "rows_rule"_a = "", "name"_a = "")
      .def("step", &Stepper::step, "learning_rate"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("state", state_of, "parameter"_a)
      .def("set_state", set_state, "parameter"_a, "steps"_a, "values"_a);
}

}  // namespace argosy::python
