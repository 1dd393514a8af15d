#pragma once

#include "argosy/config/config.h"
#include "argosy/train/trainer.h"

namespace argosy {

/// The model that `inputs`, `tables`, `network`, `loss` and `metrics` of a configuration write out;
/// docs/reference/config.md has the layers. Expressions are parsed here; names are looked up when
/// the model is built, which throws ConfigError with file, line and column and the nearest name.
Model network_model(const Config& config);

}  // namespace argosy
