// dnn: the rows of all slots and the dense features into one tower. PaddleRec's click model, with
// one logit where that has two.
//   sparse_feature_dim 9   fc_sizes [512, 256, 128, 32]
#include "argosy/zoo/model.h"

namespace argosy::models {

ModelOutputs dnn(const Inputs& in, const Hyper& hyper) {
  const Var x = in.with_dense(in.embedding("embedding", feature_dim(hyper)));
  const Var tower = nn::mlp(x, fc_sizes(hyper), "relu", "fc");
  return click_outputs(in, nn::linear(tower, 1, "logit"));
}

}  // namespace argosy::models
