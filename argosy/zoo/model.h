#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "argosy/base/plugins.h"
#include "argosy/nn/layers.h"
#include "argosy/train/trainer.h"
#include "argosy/zoo/hyper.h"

namespace argosy {

/// Inputs of a zoo model: features and a label, as `inputs:` declares them.
struct Inputs {
  Builder& g;
  std::vector<std::string> slots;  // of ids
  Var dense = {};                  // [batch, n]; null if the data have none
  Var label = {};                  // [batch, 1]
  nn::EmbeddingOptions rows = {};  // first values, and how several ids of a slot are pooled

  /// Rows of a table for all slots, side by side: [batch, slots * dim].
  Var embedding(const std::string& table, int64_t dim, nn::Where at = nn::Where::current()) const {
    return nn::embedding(g, slots, table, dim, rows, at);
  }
  /// x and the dense features side by side.
  Var with_dense(Var x, nn::Where at = nn::Where::current()) const;
};

/// The common outputs of click models, from the logit [batch, 1]: the mean logistic loss, the
/// prediction `predict` = sigmoid(logit), and its meters auc and batch_auc.
ModelOutputs click_outputs(const Inputs& in, Var logit, nn::Where at = nn::Where::current());

/// The weight of each id, summed over the slots, plus a linear function of the dense features:
/// [batch, 1]. Table `first_order`, parameters dense.w and dense.b.
Var first_order(const Inputs& in, nn::Where at = nn::Where::current());

/// hyper_parameters that several models have, with PaddleRec's defaults.
int64_t feature_dim(const Hyper& hyper);            // sparse_feature_dim
std::vector<int64_t> fc_sizes(const Hyper& hyper);  // of a tower of relu layers

/// A file of models/: its name is the model's.
using ModelPlugin = Plugin<ModelOutputs(const Inputs& in, const Hyper& hyper)>;
std::vector<ModelPlugin> builtin_models();
std::vector<std::string> model_names();

}  // namespace argosy
