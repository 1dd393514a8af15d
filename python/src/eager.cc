#include "eager.h"

#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <numeric>

#include "argosy/graph/builder.h"
#include "argosy/graph/sum_over_ranks.h"
#include "argosy/modes/ranks/rank_gradients.h"
#include "argosy/ps/initializer.h"
#include "bindings.h"

namespace argosy::python {

using namespace nb::literals;
using dynamic::Value;
using dynamic::ValuePtr;

namespace {

/// Below this many elements an operator is over before another thread could begin.
constexpr int64_t kLongEnough = 1 << 14;

/// Random state of dynamic graphs; guarded by the interpreter's lock.
struct Randomness {
  uint64_t seed = 0;
  uint64_t drawn = 0;
  uint64_t next() { return RunSeed{seed, drawn++}.for_node(0); }
};

Randomness& randomness() {
  static Randomness state;
  return state;
}

thread_local bool records = true;

const char* python_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "float32";
    case DType::f64:
      return "float64";
    case DType::i32:
      return "int32";
    case DType::i64:
      return "int64";
    case DType::u8:
      return "uint8";
    case DType::b8:
      return "bool";
  }
  fail("a type of elements without a name");
}

DType dtype_named(const std::string& name) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8, DType::b8})
    if (name == python_name(dtype)) return dtype;
  fail<ConfigError>("no type '", name, "', expected float32, float64, int32, int64, uint8 or bool");
}

Shape shape_of(const std::vector<int64_t>& dims) { return Shape(std::span(dims)); }

PyTensor made(Tensor data, bool trains = false) {
  return {std::make_shared<Value>(std::move(data), trains)};
}

/// Runs f without the interpreter's lock if it is worth it; errors name the script's line.
template <class F>
auto computed(int64_t elements, F f) {
  try {
    if (elements < kLongEnough) return f();
    const nb::gil_scoped_release others_run;
    return f();
  } catch (const ConfigError& e) {
    fail<ConfigError>(caller(), ": ", e.what());
  } catch (const DataError& e) {
    fail<DataError>(caller(), ": ", e.what());
  }
}

/// A list of Tensors, or None if one of the inputs is something else.
nb::object apply(const std::string& op, nb::sequence inputs, const nb::dict& attrs,
                 std::shared_ptr<SumOverRanks> ranks) {
  std::vector<ValuePtr> in;
  int64_t elements = 0;
  for (const nb::handle input : inputs) {
    if (!nb::isinstance<PyTensor>(input)) return nb::none();
    in.push_back(nb::inst_ptr<PyTensor>(input)->value);
    elements += in.back()->data.numel();
  }
  Attrs settings = attrs.size() == 0 ? Attrs{} : attrs_of(attrs);
  if (ranks != nullptr) elements = std::max(elements, kLongEnough);  // others are waited for
  const dynamic::ApplyMode mode{
      .records = records, .random_seed = randomness().next(), .ranks = std::move(ranks)};
  auto out = computed(elements,
                      [&] { return dynamic::apply(find_op(op), in, std::move(settings), mode); });
  nb::list results;
  for (ValuePtr& value : out) results.append(PyTensor{std::move(value)});
  return results;
}

std::vector<std::optional<PyTensor>> gradients(const std::vector<const PyTensor*>& of,
                                               const std::vector<const PyTensor*>& seeds,
                                               const std::vector<const PyTensor*>& to,
                                               bool retain_graph) {
  std::vector<ValuePtr> from, targets;
  std::vector<std::optional<Tensor>> seed_data;
  for (const PyTensor* tensor : of) from.push_back(tensor->value);
  for (const PyTensor* tensor : to) targets.push_back(tensor->value);
  for (const PyTensor* tensor : seeds)
    seed_data.push_back(tensor == nullptr ? std::nullopt : std::optional(tensor->value->data));
  const auto found = computed(kLongEnough, [&] {
    return dynamic::gradients(from, seed_data, targets,
                              retain_graph ? dynamic::Graph::kept : dynamic::Graph::freed);
  });
  std::vector<std::optional<PyTensor>> results;
  for (const std::optional<Tensor>& gradient : found)
    results.push_back(gradient ? std::optional(made(*gradient)) : std::nullopt);
  return results;
}

nb::object gradient_of(const PyTensor& self) {
  if (self.value->grad) return nb::cast(made(*self.value->grad));
  if (self.value->row_grad) return nb::cast(*self.value->row_grad);
  return nb::none();
}

void set_gradient(const PyTensor& self, const PyTensor* gradient) {
  self.value->row_grad.reset();
  if (gradient == nullptr) return self.value->grad.reset();
  const Tensor& data = gradient->value->data;
  check<ConfigError>(
      data.shape() == self.value->data.shape() && data.dtype() == self.value->data.dtype(),
      caller(), ": a gradient of ", data.dtype(), data.shape(), " for a value of ",
      self.value->data.dtype(), self.value->data.shape());
  self.value->grad = data;
}

void set_stop_gradient(const PyTensor& self, bool stop) {
  check<ConfigError>(stop || is_float(self.value->data.dtype()), caller(),
                     ": only floats have gradients, this Tensor is ", self.value->data.dtype());
  self.value->trains = !stop;
}

/// Takes a copy of new numbers of the same shape and type; earlier results keep the old ones.
void set_value(const PyTensor& self, nb::handle array) {
  Tensor& data = self.value->data;
  Tensor fresh = nb::isinstance<PyTensor>(array) ? nb::inst_ptr<PyTensor>(array)->value->data
                                                 : tensor_of(array, "set_value");
  const bool one = fresh.numel() == 1 && data.numel() == 1;
  check<ConfigError>((one || fresh.shape() == data.shape()) && fresh.dtype() == data.dtype(),
                     caller(), ": set_value of ", fresh.dtype(), fresh.shape(), " to a Tensor of ",
                     data.dtype(), data.shape());
  data = fresh.clone().reshape(data.shape());
}

/// Becomes what another Tensor is. A leaf stays the leaf that it is, with other numbers, as
/// optimizers know it.
void take(PyTensor& self, const PyTensor& from) {
  const bool leaf = self.value->origin == nullptr;
  check<ConfigError>(!(leaf && self.value->trains && from.value->trains), caller(),
                     ": a leaf that has a gradient is changed in place; use no_grad, or detach");
  if (leaf && from.value->origin == nullptr) {
    self.value->data = from.value->data;
  } else {
    self.value = from.value;
  }
}

nb::list shape_list(const PyTensor& self) {
  nb::list dims;
  for (const int64_t dim : self.value->data.shape()) dims.append(dim);
  return dims;
}

template <class T, class F>
Tensor filled(const std::vector<int64_t>& shape, F f) {
  Tensor tensor = Tensor::uninitialized(shape_of(shape), dtype_of<T>());
  auto values = tensor.as<T>();
  const RandomStream random(randomness().next());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(f(random, i));
  return tensor;
}

PyTensor uniform(const std::vector<int64_t>& shape, double low, double high) {
  return made(filled<float>(shape, [=](const RandomStream& random, size_t i) {
    return low + (high - low) * random.uniform(i);
  }));
}

PyTensor normal(const std::vector<int64_t>& shape, double mean, double deviation) {
  return made(filled<float>(shape, [=](const RandomStream& random, size_t i) {
    return mean + deviation * random.normal(i);
  }));
}

PyTensor integers(const std::vector<int64_t>& shape, int64_t low, int64_t high) {
  check<ConfigError>(low < high, caller(), ": random integers from ", low, " to below ", high,
                     ": there are none");
  return made(filled<int64_t>(shape, [=](const RandomStream& random, size_t i) {
    return low + static_cast<int64_t>(random.below(i, static_cast<uint64_t>(high - low)));
  }));
}

PyTensor permutation(int64_t count) {
  Tensor order = Tensor::uninitialized({count}, DType::i64);
  auto values = order.as<int64_t>();
  std::iota(values.begin(), values.end(), 0);
  const RandomStream random(randomness().next());
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i, i)]);
  return made(order);
}

/// The first values of a parameter: they depend on the seed and the name only.
PyTensor first_values(const std::string& text, const std::vector<int64_t>& shape,
                      const std::string& name) {
  Tensor values = Tensor::uninitialized(shape_of(shape), DType::f32);
  const ps::Initializer initializer(text);
  const auto numel = static_cast<size_t>(values.numel());
  check<ConfigError>(initializer.size().value_or(numel) == numel, caller(), ": '", text,
                     "' for parameter '", name, "' of ", values.shape());
  initializer.fill(values.as<float>(), ps::parameter_stream(randomness().seed, name));
  return made(values);
}

void bind_tensor(nb::module_& module) {
  nb::class_<PyTensor>(module, "Tensor", nb::dynamic_attr(), nb::is_weak_referenceable(),
                       "Numbers that remember how they were computed.")
      .def(
          "__init__",
          [](PyTensor* self, nb::handle data, bool stop_gradient) {
            Tensor tensor = nb::isinstance<PyTensor>(data)
                                ? nb::inst_ptr<PyTensor>(data)->value->data
                                : tensor_of(data, "Tensor");
            new (self) PyTensor(made(std::move(tensor)));
            if (!stop_gradient) set_stop_gradient(*self, false);
          },
          "data"_a, "stop_gradient"_a = true,
          "Over the memory of an array (NumPy, or anything with DLPack), which it shares.")
      .def_prop_ro("shape", shape_list)
      .def_prop_ro("ndim", [](const PyTensor& self) { return self.value->data.shape().rank(); })
      .def_prop_ro("size", [](const PyTensor& self) { return self.value->data.numel(); })
      .def_prop_ro("dtype",
                   [](const PyTensor& self) { return python_name(self.value->data.dtype()); })
      .def_prop_ro("is_leaf", [](const PyTensor& self) { return self.value->origin == nullptr; })
      .def_prop_rw(
          "stop_gradient", [](const PyTensor& self) { return !self.value->trains; },
          set_stop_gradient)
      .def_prop_rw("grad", gradient_of, set_gradient, nb::arg().none())
      .def_rw("name", &PyTensor::name)
      .def_rw("persistable", &PyTensor::persistable)
      .def("_array", [](const PyTensor& self) { return array_of(self.value->data); })
      .def(
          "_backward",
          [](const PyTensor& self, const PyTensor* gradient, bool retain_graph) {
            run_backward(self, gradient, retain_graph, nullptr);
          },
          "grad_tensor"_a.none(), "retain_graph"_a)
      .def(
          "retain_grads", [](const PyTensor& self) { dynamic::keep_gradient(self.value); },
          "Keeps the gradient of this Tensor too, although it is computed.")
      .def(
          "detach", [](const PyTensor& self) { return made(self.value->data); },
          "The same numbers without their past.")
      .def("set_value", set_value, "value"_a, "Takes a copy of these numbers.")
      .def("_take", take, "from"_a, "Becomes what another Tensor is.");
  nb::class_<dynamic::RowGradient>(module, "RowGradient",
                                   "The gradient of those rows of a table that were looked up.")
      .def_prop_ro("rows", [](const dynamic::RowGradient& self) { return made(self.rows); })
      .def_prop_ro("values", [](const dynamic::RowGradient& self) { return made(self.values); })
      .def("dense", [](const dynamic::RowGradient& self, const std::vector<int64_t>& shape) {
        return made(self.dense(shape_of(shape)));
      });
}

}  // namespace

void run_backward(const PyTensor& of, const PyTensor* gradient, bool retain_graph,
                  RankGradients* ranks) {
  std::optional<Tensor> seed;
  if (gradient != nullptr) seed = gradient->value->data;
  const auto graph = retain_graph ? dynamic::Graph::kept : dynamic::Graph::freed;
  computed(kLongEnough, [&] {
    if (ranks != nullptr)
      ranks->backward(of.value, seed, graph);
    else
      dynamic::backward(of.value, seed, graph);
  });
}

void bind_eager(nb::module_& module) {
  bind_tensor(module);
  nb::class_<SumOverRanks>(module, "SumOverRanks",
                           "Sums over all ranks, for operators that need them.");
  module.def("apply", apply, "op"_a, "inputs"_a, "attrs"_a, "ranks"_a = nb::none(),
             "Runs an operator; None if one of the inputs is no Tensor.");
  module.def("gradients", gradients, "of"_a, "seeds"_a, "to"_a, "retain_graph"_a);
  module.def("records", [] { return records; });
  module.def(
      "set_records", [](bool on) { records = on; }, "on"_a);
  module.def(
      "seed", [](uint64_t seed) { randomness() = {.seed = seed}; }, "seed"_a);
  module.def("random_state",
             [] { return std::pair<uint64_t, uint64_t>(randomness().seed, randomness().drawn); });
  module.def(
      "set_random_state",
      [](uint64_t seed, uint64_t drawn) { randomness() = {.seed = seed, .drawn = drawn}; },
      "seed"_a, "drawn"_a);
  module.def("uniform", uniform, "shape"_a, "low"_a, "high"_a);
  module.def("normal", normal, "shape"_a, "mean"_a, "deviation"_a);
  module.def("integers", integers, "shape"_a, "low"_a, "high"_a);
  module.def("permutation", permutation, "count"_a);
  module.def("first_values", first_values, "text"_a, "shape"_a, "name"_a);
  module.def(
      "empty",
      [](const std::vector<int64_t>& shape, const std::string& dtype) {
        return made(Tensor(shape_of(shape), dtype_named(dtype)));
      },
      "shape"_a, "dtype"_a, "Zeros.");
  module.def("op_names", [] {
    std::vector<std::string> names;
    for (const OpDef* op : all_ops()) names.push_back(op->name);
    return names;
  });
}

}  // namespace argosy::python
