#include "argosy/samples/samples.h"

#include "argosy/world/env.h"
#include "bindings.h"

namespace argosy::python {

using namespace nb::literals;

namespace {

nb::dict arrays_of(const Feeds& feeds) {
  nb::dict arrays;
  for (const auto& [name, tensor] : feeds) arrays[name.c_str()] = array_of(tensor);
  return arrays;
}

using Load = Samples(Env& env, const std::string& folder);

nb::tuple load(Load* samples_of, const std::string& folder) {
  Samples samples;
  {
    const nb::gil_scoped_release release;
    samples = samples_of(*real_env(), folder);
  }
  return nb::make_tuple(arrays_of(samples.train), arrays_of(samples.test), samples.source);
}

}  // namespace

void bind_samples(nb::module_& module) {
  module.def("data_folder", &data_folder, "name"_a,
             "The folder of a data set below ARGOSY_DATA; empty where there is none.");
  module.def(
      "read_idx", [](const std::string& path) { return array_of(read_idx(*real_env(), path)); },
      "path"_a, "The array of an IDX file of unsigned bytes, plain or packed.");
  module.def(
      "mnist_samples", [](const std::string& folder) { return load(&mnist_samples, folder); },
      "folder"_a, "Arrays to train and to test with, and where they come from.");
  module.def(
      "housing_samples", [](const std::string& folder) { return load(&housing_samples, folder); },
      "folder"_a, "Arrays to train and to test with, and where they come from.");
}

}  // namespace argosy::python
