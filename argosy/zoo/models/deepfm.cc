// deepfm: first-order weights, pairwise factorization and a tower on the same factors, summed (Guo
// et al., 2017).
//   sparse_feature_dim 9   fc_sizes [512, 256, 128, 32]
#include "argosy/zoo/model.h"

namespace argosy::models {

ModelOutputs deepfm(const Inputs& in, const Hyper& hyper) {
  const int64_t dim = feature_dim(hyper);
  const Var factors = in.embedding("factors", dim);
  const Var tower = nn::mlp(in.with_dense(factors), fc_sizes(hyper), "relu", "deep");
  const Var deep = nn::linear(tower, 1, "deep_out");
  return click_outputs(in, first_order(in) + nn::fm_pairwise(factors, dim) + deep);
}

}  // namespace argosy::models
