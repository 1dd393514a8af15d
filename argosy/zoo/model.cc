#include "argosy/zoo/model.h"

#include <array>

namespace argosy {
namespace {

constexpr int64_t kDim = 9;
constexpr Limits kDims{1, 65536}, kSizes{1, 1 << 24};

}  // namespace

Var Inputs::with_dense(Var x, nn::Where at) const {
  return dense ? nn::concat(std::array{x, dense}, -1, at) : x;
}

ModelOutputs click_outputs(const Inputs& in, Var logit, nn::Where at) {
  const Var predict = nn::sigmoid(logit, at);
  return {
      .loss = nn::logistic_loss(logit, in.label, at),
      .meters = {{"auc", "auc", predict, in.label}, {"batch_auc", "batch_auc", predict, in.label}},
      .predictions = {{"predict", predict}}};
}

Var first_order(const Inputs& in, nn::Where at) {
  const Var ids = nn::sum_slots(in.embedding("first_order", 1, at), 1, at);
  if (!in.dense) return ids;
  return Operand(ids, at) + nn::linear(in.dense, 1, "dense", {}, at);
}

int64_t feature_dim(const Hyper& hyper) { return hyper.integer("sparse_feature_dim", kDim, kDims); }

std::vector<int64_t> fc_sizes(const Hyper& hyper) {
  return hyper.integers("fc_sizes", {512, 256, 128, 32}, kSizes);
}

std::vector<std::string> model_names() { return names_of(builtin_models()); }

}  // namespace argosy
