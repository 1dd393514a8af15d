#pragma once

#include "argosy/graph/autograd.h"

namespace argosy::python {

/// What Python calls a Tensor: a handle of a value.
struct PyTensor {
  dynamic::ValuePtr value;
  std::string name = {};
  bool persistable = false;
};

}  // namespace argosy::python
