#pragma once

#include "argosy/tensor/tensor.h"

namespace argosy::ops {

/// Labels of a log loss: throws DataError with the first that is not from 0 to 1.
void check_labels(const Tensor& labels);

}  // namespace argosy::ops
