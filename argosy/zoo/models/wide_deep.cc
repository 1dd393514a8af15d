// wide_deep: a linear model beside a tower, summed (Cheng et al., 2016). The wide part takes the
// dense features, as PaddleRec's does; wide_slots adds a weight for each id.
//   sparse_feature_dim 9   fc_sizes [512, 256, 128, 32]   wide_slots False
#include "argosy/zoo/model.h"

namespace argosy::models {

ModelOutputs wide_deep(const Inputs& in, const Hyper& hyper) {
  const bool wide_slots = hyper.flag("wide_slots", false);
  check<ConfigError>(wide_slots || in.dense,
                     "wide_deep: without dense features hyper_parameters.wide_slots must be True");
  const Var x = in.with_dense(in.embedding("embedding", feature_dim(hyper)));
  const Var tower = nn::mlp(x, fc_sizes(hyper), "relu", "deep");
  const Var deep = nn::linear(tower, 1, "deep_out");
  const Var wide = wide_slots ? first_order(in) : nn::linear(in.dense, 1, "dense");
  return click_outputs(in, wide + deep);
}

}  // namespace argosy::models
