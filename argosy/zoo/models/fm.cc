// fm: first-order weights and the inner products of all pairs of factors (Rendle, 2010).
//   sparse_feature_dim 9
#include "argosy/zoo/model.h"

namespace argosy::models {

ModelOutputs fm(const Inputs& in, const Hyper& hyper) {
  const int64_t dim = feature_dim(hyper);
  const Var factors = in.embedding("factors", dim);
  return click_outputs(in, first_order(in) + nn::fm_pairwise(factors, dim));
}

}  // namespace argosy::models
