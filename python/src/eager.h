#pragma once

#include "argosy/graph/autograd.h"

namespace argosy {
class RankGradients;
}

namespace argosy::python {

/// Python's Tensor: a handle of a value.
struct PyTensor {
  dynamic::ValuePtr value;
  std::string name = {};
  bool persistable = false;
};

/// Tensor.backward; where `ranks` are given, they send their gradients meanwhile.
void run_backward(const PyTensor& of, const PyTensor* gradient, bool retain_graph,
                  RankGradients* ranks);

}  // namespace argosy::python
