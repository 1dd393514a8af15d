#pragma once

#include "argosy/config/config.h"
#include "argosy/train/trainer.h"

namespace argosy {

/// A model, ready for a Trainer, and the options of its tables.
struct ModelSetup {
  Model model;
  TablesOptions tables;
};
/// The model that a configuration names or writes out as a network. Builds it once to check it:
/// throws ConfigError for an unknown model, a hyper parameter that it does not use, options of a
/// table that it does not have, and parameters that do not reach the loss.
ModelSetup make_model(const Config& config);

}  // namespace argosy
