#pragma once

#include <string>

#include "argosy/config/config.h"

namespace argosy {

/// From the settings of a whole file to a checked Config; `path` gives the folder.
Config build_config(const Setting& root, const std::string& path);

/// `hyper_parameters.optimizer:` as texts of ps/. `map`: for the places of messages.
Optimizer make_optimizer(const OptimizerKeys& keys, const Setting& map);

/// Default names of slots, if `inputs:` gives none.
struct SlotNames {
  std::string dense = "dense_input", label = "label", prefix = "C";
};
/// `inputs:`, or without it what hyper_parameters say: dense_input_dim and sparse_inputs_slots,
/// which counts the label as well.
InputKeys make_inputs(const Setting* inputs, const Hyper& hyper, const SlotNames& names,
                      const Setting* empty_slot);

}  // namespace argosy
