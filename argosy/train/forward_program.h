#pragma once

#include <string>
#include <utility>
#include <vector>

#include "argosy/train/trainer.h"

namespace argosy {

/// A forward program recorded before its training was configured.
struct ForwardProgram {
  struct Metered {
    std::string name, meter;  // as MeterSpec has them
    VarId prediction, label;
  };
  Program program;
  VarId loss = {};  // none: it is only evaluated
  std::vector<std::pair<std::string, VarId>> metrics = {}, predictions = {};
  std::vector<Metered> meters = {};
  std::vector<std::string> frozen = {};  // parameters that keep their values
};

struct ReplayedModel {
  Model model;
  /// By variable of the forward program: the one of a Trainer's plan that has its value.
  std::vector<VarId> now;
};
/// Lookups are merged (nn/merge_lookups.h). Parameters that the loss does not depend on keep their
/// values, as if they were frozen. Throws ConfigError for a loss that is not one number.
ReplayedModel as_model(const ForwardProgram& recorded);

}  // namespace argosy
