#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "argosy/base/source_loc.h"
#include "argosy/graph/attrs.h"
#include "argosy/tensor/tensor.h"

/// Shared by the files of the Python extension.
namespace argosy::python {

namespace nb = nanobind;

/// Shares the array's memory and keeps it alive if it is contiguous and of a known type; else makes
/// a contiguous copy. Takes anything NumPy makes an array of. `what` names it in messages.
Tensor tensor_of(nb::handle array, const std::string& what);
/// A NumPy array over the tensor's memory, which it keeps alive; of at least one dimension.
nb::object array_of(const Tensor& tensor);

/// Settings of an operator from a dict: bools and ints, floats, strings, lists of ints.
Attrs attrs_of(const nb::dict& dict);
/// The line of the script that called into these packages; its file's name lives for ever.
SourceLoc caller();

// One for each file.
void bind_eager(nb::module_& module);
void bind_errors(nb::module_& module);
void bind_ranks(nb::module_& module);
void bind_script(nb::module_& module);
void bind_samples(nb::module_& module);
void bind_stepper(nb::module_& module);

}  // namespace argosy::python
