// The layers of nn/layers.h as a network written in YAML calls them.
#include "argosy/nn/layers.h"

#include "argosy/config/network_scope.h"

namespace argosy {
namespace {

constexpr Limits kSize{1, 1 << 24};

/// The label of a class as a whole number; data have floats.
Var class_of(CallSite& s) {
  const Var label = s.var(1, "the label");
  if (!is_float(label.type().dtype)) return label;
  return label.g->apply("cast", {label}, {{"to", "i64"}}, s.scope().at());
}

}  // namespace

const std::vector<NetworkLayer>& network_layers() {
  static const std::vector<NetworkLayer> all = {
      {"embedding",
       [](CallSite& s) {
         const std::vector<std::string> slots = s.slots();
         const std::string table = s.text("table", std::nullopt);
         const TableKeys& keys = s.table(table);
         const bool one_id = s.scope().config().inputs.one_id;
         nn::EmbeddingOptions options{.init = keys.init,
                                      .pool = s.text("pool", one_id ? "" : "sum")};
         const int64_t padding = s.integer("padding", -1, {.low = 0});
         if (padding >= 0) options.padding = static_cast<uint64_t>(padding);
         return nn::embedding(s.scope().g(), slots, table, keys.dim, options, s.scope().at());
       }},
      {"linear",
       [](CallSite& s) {
         const Var x = s.var(0, "x");
         const int64_t size = s.integer("size", std::nullopt, kSize);
         const nn::LinearOptions options{.activation = s.text("activation", ""),
                                         .bias = s.flag("bias", true)};
         return nn::linear(x, size, s.layer_name(), options, s.scope().at());
       }},
      {"mlp",
       [](CallSite& s) {
         const Var x = s.var(0, "x");
         const std::vector<int64_t> sizes = s.integers("sizes", kSize);
         return nn::mlp(x, sizes, s.text("activation", "relu"), s.layer_name(), s.scope().at());
       }},
      {"batch_norm",
       [](CallSite& s) {
         const Var x = s.var(0, "x");
         const nn::NormOptions options{.epsilon = s.real("epsilon", 1e-5, {0, 1}),
                                       .momentum = s.real("momentum", 0.9, {0, 1})};
         return nn::batch_norm(x, s.layer_name(), options, s.scope().at());
       }},
      {"layer_norm",
       [](CallSite& s) {
         const Var x = s.var(0, "x");
         const nn::NormOptions options{.epsilon = s.real("epsilon", 1e-5, {0, 1})};
         return nn::layer_norm(x, s.layer_name(), options, s.scope().at());
       }},
      {"dropout",
       [](CallSite& s) {
         return nn::dropout(s.var(0, "x"), s.real("p", 0.5, {0, 1}), s.scope().at());
       }},
      {"concat",
       [](CallSite& s) {
         const std::vector<Var> parts = s.vars();
         return nn::concat(parts, s.integer("axis", -1, {-8, 7}), s.scope().at());
       }},
      {"sum_slots",
       [](CallSite& s) {
         const Var x = s.var(0, "x");
         return nn::sum_slots(x, s.integer("dim", std::nullopt, kSize), s.scope().at());
       }},
      {"fm_pairwise",
       [](CallSite& s) {
         const Var x = s.var(0, "x");
         return nn::fm_pairwise(x, s.integer("dim", std::nullopt, kSize), s.scope().at());
       }},
      {"logistic_loss",
       [](CallSite& s) {
         const Var logit = s.var(0, "the logit");
         return nn::logistic_loss(logit, s.var(1, "the label"), s.scope().at());
       }},
      {"softmax_loss",
       [](CallSite& s) {
         const Var logits = s.var(0, "the logits");
         return nn::softmax_loss(logits, class_of(s), s.scope().at());
       }},
      {"accuracy",
       [](CallSite& s) {
         const Var scores = s.var(0, "the scores");
         return nn::accuracy(scores, class_of(s), s.scope().at());
       }},
  };
  return all;
}

}  // namespace argosy
