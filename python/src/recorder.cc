#include "recorder.h"

#include "argosy/nn/layers.h"

namespace argosy::python {

using namespace nb::literals;

int32_t Recorder::variable(VarKind kind, std::string name, const std::vector<int64_t>& shape,
                           const std::string& dtype, std::string init) {
  return builder_
      .variable({.name = std::move(name),
                 .type = {Shape(std::span(shape)), parse_dtype(dtype)},
                 .kind = kind,
                 .init = std::move(init)},
                caller())
      .id.i;
}

std::vector<int32_t> Recorder::apply(const std::string& op, const std::vector<int32_t>& inputs,
                                     const nb::dict& attrs) {
  std::vector<Var> vars;
  vars.reserve(inputs.size());
  for (const int32_t number : inputs) vars.push_back(var(number));
  std::vector<int32_t> results;
  for (const Var& out : builder_.apply_all(op, vars, attrs_of(attrs), caller()))
    results.push_back(out.id.i);
  return results;
}

int32_t Recorder::embedding(const std::string& slot, const std::string& table, int64_t dim,
                            const std::string& init, const std::string& pool,
                            std::optional<uint64_t> padding) {
  return nn::embedding(builder_, std::span(&slot, 1), table, dim,
                       {.init = init, .pool = pool, .padding = padding}, caller())
      .id.i;
}

void Recorder::name(int32_t variable, std::string name) {
  builder_.name(var(variable), std::move(name));
}

void Recorder::update(int32_t state, int32_t next) { builder_.update(var(state), var(next)); }

void bind_recorder(nb::module_& module) {
  nb::class_<Recorder>(module, "Recorder", "A program while a script records it.")
      .def(nb::init<>())
      .def(
          "input",
          [](Recorder& self, std::string name, const std::vector<int64_t>& shape,
             const std::string& dtype) {
            return self.variable(VarKind::input, std::move(name), shape, dtype, "");
          },
          "name"_a, "shape"_a, "dtype"_a)
      .def(
          "parameter",
          [](Recorder& self, std::string name, const std::vector<int64_t>& shape,
             const std::string& dtype, std::string init) {
            return self.variable(VarKind::param, std::move(name), shape, dtype, std::move(init));
          },
          "name"_a, "shape"_a, "dtype"_a, "init"_a)
      .def(
          "state",
          [](Recorder& self, std::string name, const std::vector<int64_t>& shape,
             const std::string& dtype, std::string init) {
            return self.variable(VarKind::state, std::move(name), shape, dtype, std::move(init));
          },
          "name"_a, "shape"_a, "dtype"_a, "init"_a)
      .def("apply", &Recorder::apply, "op"_a, "inputs"_a, "attrs"_a)
      .def("embedding", &Recorder::embedding, "slot"_a, "table"_a, "dim"_a, "init"_a, "pool"_a,
           "padding"_a.none())
      .def("name", &Recorder::name, "variable"_a, "name"_a)
      .def("update", &Recorder::update, "state"_a, "next"_a)
      .def(
          "shape",
          [](const Recorder& self, int32_t number) {
            const Shape& shape = self.desc(number).type.shape;
            return std::vector<int64_t>(shape.begin(), shape.end());
          },
          "variable"_a)
      .def(
          "dtype",
          [](const Recorder& self, int32_t number) {
            return std::string(argosy::name(self.desc(number).type.dtype));
          },
          "variable"_a)
      .def(
          "line",
          [](const Recorder& self, int32_t number) {
            const SourceLoc at = self.desc(number).at;
            return std::string(at.file) + ":" + std::to_string(at.line);
          },
          "variable"_a, "Where the script asked for it first.")
      .def(
          "find",
          [](const Recorder& self, const std::string& name) { return self.program().find(name).i; },
          "name"_a, "The variable of this name, or -1.")
      .def("text", [](const Recorder& self) { return self.program().text(); })
      .def("dot", [](const Recorder& self) { return self.program().dot(); });
}

}  // namespace argosy::python
