// dcn: layers that cross the features with themselves, beside a tower (Wang et al., 2017):
// x' = x0 (x w) + b + x, each layer with its own w and b. PaddleRec shares one pair.
//   sparse_feature_dim 9   fc_sizes [512, 256, 128, 32]   cross_num 2
//   l2_reg_cross 0: adds so much of the squares of all w to the loss
#include <array>

#include "argosy/nn/init.h"
#include "argosy/zoo/model.h"

namespace argosy::models {
namespace {

/// The sum of the squares of all elements.
Var squares(Var x) { return nn::sum(x.g->apply("square", {x})); }

}  // namespace

ModelOutputs dcn(const Inputs& in, const Hyper& hyper) {
  const int64_t layers = hyper.integer("cross_num", 2, {1, 100});
  const double penalty = hyper.real("l2_reg_cross", 0, {.low = 0});
  const Var x0 = in.with_dense(in.embedding("embedding", feature_dim(hyper)));
  const int64_t width = x0.shape()[-1];

  Var crossed = x0;
  std::vector<Var> weights;
  for (int64_t i = 0; i < layers; ++i) {
    const std::string name = "cross." + std::to_string(i);
    const Var w = in.g.param(name + ".w", {width, 1}, nn::init::xavier_uniform({width, 1}));
    const Var b = in.g.param(name + ".b", {width}, "zeros");
    crossed = x0 * in.g.apply("linear", {crossed, w}) + b + crossed;
    weights.push_back(w);
  }
  const Var tower = nn::mlp(x0, fc_sizes(hyper), "relu", "deep");
  const Var logit = nn::linear(nn::concat(std::array{crossed, tower}), 1, "logit");

  ModelOutputs outputs = click_outputs(in, logit);
  if (penalty > 0)
    for (const Var w : weights)
      outputs.loss = outputs.loss + in.g.apply("scale", {squares(w)}, {{"scale", penalty}});
  return outputs;
}

}  // namespace argosy::models
