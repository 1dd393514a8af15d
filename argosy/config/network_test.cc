#include "argosy/config/network.h"

#include <gtest/gtest.h>

#include "argosy/base/test_support.h"
#include "argosy/config/expression.h"
#include "argosy/config/model_setup.h"

namespace argosy {
namespace {

constexpr const char* kExample = R"(runner:
  sync_mode: async
  thread_num: 4
  reader_type: QueueDataset
  pipe_command: ""
  train_data_dir: data/train
  train_batch_size: 512
  epochs: 2
inputs: {dense: 13, slots: C1..C26, label: click}
tables:
  factors: {dim: 10, rule: adagrad, learning_rate: 0.05}
network:
  emb:   embedding(slots, table=factors)
  h:     mlp(concat(emb, dense), sizes=[400, 400, 400], activation=relu)
  logit: linear(h, size=1)
loss: logistic_loss(logit, label)
metrics: {auc: auc(sigmoid(logit), label)}
)";

struct Built {
  Program program;
  std::vector<std::string> metrics = {}, meters = {}, predictions = {};
};

Built build(const Config& config) {
  const ModelSetup setup = make_model(config);
  Builder g;
  const ModelOutputs outputs = setup.model(g);
  g.output(outputs.loss);
  g.backward(outputs.loss);
  Built built{.program = g.program()};
  for (const auto& [name, var] : outputs.metrics) built.metrics.push_back(name);
  for (const MeterSpec& meter : outputs.meters)
    built.meters.push_back(meter.name + "=" + meter.meter);
  for (const auto& [name, var] : outputs.predictions) built.predictions.push_back(name);
  return built;
}

/// A network of these lines over dense f32[-1,4] and the slots a and b; the first is in line 4.
std::string network(const std::string& lines, const std::string& loss = "logistic_loss(y, label)") {
  const bool table = lines.find("table=") != std::string::npos;
  return std::string("inputs: {dense: 4, slots: [a, b], label: click}\n") +
         (table ? "tables: {t: {dim: 3}}\n" : "# no tables\n") + "network:\n" + lines +
         "loss: " + loss + "\n";
}

Built build(const std::string& yaml) { return build(parse_config(yaml, "net.yaml")); }

std::string refusal(const std::string& yaml) {
  return message_of<ConfigError>([&] { build(yaml); });
}

bool has_param(const Built& built, const std::string& name) {
  const VarId id = built.program.find(name);
  return id && built.program.var(id).kind == VarKind::param;
}

TEST(Network, ExampleOfTheManualIsGolden) {
  const Config config = parse_config(kExample, "net.yaml");
  const Built built = build(config);
  expect_golden("zoo_network.txt", built.program.text());
  EXPECT_EQ(built.meters, std::vector<std::string>{"auc=auc"});
  EXPECT_EQ(built.predictions, std::vector<std::string>{"predict"});
  const TablesOptions tables = make_model(config).tables;
  EXPECT_EQ(tables.find("factors")->second.rule, "adagrad");
  EXPECT_EQ(tables.find("factors")->second.learning_rate, "0.05");
}

TEST(Network, NodesAreRecordedAtTheirLine) {
  const Built built = build(std::string(kExample));
  const auto linear = std::ranges::find_if(
      built.program.nodes, [](const Node& node) { return node.op->name == "linear"; });
  EXPECT_STREQ(linear->at.file, "net.yaml");
  EXPECT_EQ(linear->at.line, 14);
}

TEST(Network, LayersAreNamedByTheirLine) {
  const Built built = build(network(
      "  h: mlp(dense, sizes=[4, 2])\n  y: linear(linear(linear(h, size=2), size=2), size=1)\n"));
  for (const char* name : {"h.0.w", "h.1.b", "y.w", "y.linear.w", "y.linear.1.w"})
    EXPECT_TRUE(has_param(built, name)) << name;
}

TEST(Network, LayersOfOneNameShareTheirParameters) {
  const Built built =
      build(network("  p: linear(dense, size=4, name=shared)\n  q: linear(p, size=4, name=shared)\n"
                    "  y: linear(q, size=1)\n"));
  EXPECT_TRUE(has_param(built, "shared.w"));
  EXPECT_FALSE(has_param(built, "p.w"));
  EXPECT_EQ(built.program.grads.size(), 4U);
}

TEST(Network, SumsAndProductsKeepTheirOrder) {
  const Built built = build(network(
      "  p: linear(dense, size=1)\n  q: linear(dense, size=1)\n  y: p - q * (p + q) / p - q\n"));
  std::string ops;
  for (const Node& node : built.program.nodes)
    if (node.phase == Phase::forward && node.op->name.size() == 3) ops += node.op->name + " ";
  EXPECT_EQ(ops, "add mul div sub sub ");
}

TEST(Network, CallsEveryLayer) {
  const Built built = build(
      network("  e: embedding(slots, table=t)\n"
              "  one: embedding(a, table=t)\n"
              "  two: embedding([b, a], table=t, padding=0)\n"
              "  n: layer_norm(batch_norm(dense, momentum=0.8), epsilon=0.001)\n"
              "  d: dropout(n, p=0.25)\n"
              "  f: fm_pairwise(e, dim=3) + sum(sum_slots(two, dim=3), axes=[-1], keepdim=True)\n"
              "  y: f + linear(concat(d, one), size=1, bias=False, activation=tanh)\n"));
  for (const char* name : {"n.scale", "n.batch_norm.scale", "y.linear.w"})
    EXPECT_TRUE(has_param(built, name)) << name;
  EXPECT_FALSE(has_param(built, "y.linear.b"));
}

TEST(Network, CallsOpsWithAttributesOfEveryKind) {
  const Built built =
      build(network("  r: reshape(dense, shape=[-1, 2, 2])\n"
                    "  s: sum(r, axes=[1], keepdim=False)\n"
                    "  c: cast(cast(s, to='f64'), to=f32)\n"
                    "  y: linear(scale(leaky_relu(c, alpha=1e-2), scale=2), size=1)\n"));
  const std::string text = built.program.text();
  for (const char* part : {"shape=[-1,2,2]", "axes=[1]", "to=\"f64\"", "alpha=0.01", "scale=2"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
}

TEST(Network, MetricsAreMetersOrMeans) {
  const Built built = build(network("  y: linear(dense, size=1)\n") +
                            "metrics:\n  auc: auc(sigmoid(y), label, buckets=1000)\n"
                            "  size: mean(y)\n");
  EXPECT_EQ(built.meters, std::vector<std::string>{"auc=auc(buckets=1000)"});
  EXPECT_EQ(built.metrics, std::vector<std::string>{"size"});
}

TEST(Network, ThePredictionIsALineOrComesFromTheLoss) {
  EXPECT_EQ(build(network("  y: linear(dense, size=1)\n  predict: sigmoid(y)\n")).predictions,
            std::vector<std::string>{"predict"});
  const Built inner =
      build(network("  h: relu(dense)\n", "logistic_loss(linear(h, size=1), label)"));
  EXPECT_EQ(inner.predictions, std::vector<std::string>{"predict"});
  EXPECT_EQ(inner.program.grads.size(), 2U) << "the prediction must use the loss's own layer";
  EXPECT_TRUE(build(network("  y: linear(dense, size=1)\n", "mean(square_error(y, label))"))
                  .predictions.empty());
}

TEST(Network, NamesThatAreNotThereSuggestTheNearest) {
  EXPECT_EQ(refusal(network("  hidden: relu(dense)\n  y: linear(hiden, size=1)\n")),
            "net.yaml:5:13: network.y: no variable 'hiden' so far, did you mean hidden?");
  EXPECT_EQ(refusal(network("  y: linaer(dense, size=1)\n")),
            "net.yaml:4:6: network.y: no layer or op 'linaer', did you mean linear?");
  EXPECT_EQ(refusal(network("  y: linear(dense, sizes=1)\n")),
            "net.yaml:4:6: network.y: linear needs size=a whole number from 1 to 16777216");
  EXPECT_EQ(refusal(network("  y: linear(dense, size=1, activaton=relu)\n")),
            "net.yaml:4:28: network.y: linear has no argument 'activaton', did you mean "
            "activation?");
  EXPECT_EQ(refusal(network("  y: sum(dense, axs=[1])\n")),
            "net.yaml:4:17: network.y: sum has no attribute 'axs', did you mean axes?");
  EXPECT_EQ(refusal(network("  y: embedding(slots, table=tt)\n")),
            "net.yaml:4:6: network.y: no table 'tt' in tables, did you mean t?");
  EXPECT_EQ(refusal(network("  y: embedding([a, bb], table=t)\n")),
            "net.yaml:4:20: network.y: no slot 'bb', did you mean b?");
}

TEST(Network, WrongValuesSayWhatWasExpected) {
  EXPECT_EQ(refusal(network("  y: linear(dense, size=many)\n")),
            "net.yaml:4:25: network.y: linear: size: expected a whole number from 1 to 16777216, "
            "got 'many'");
  EXPECT_EQ(refusal(network("  y: mlp(dense, sizes=[4, 0])\n")),
            "net.yaml:4:27: network.y: mlp: sizes: expected a whole number from 1 to 16777216, "
            "got '0'");
  EXPECT_EQ(refusal(network("  y: linear(dense, size=relu(dense))\n")),
            "net.yaml:4:25: network.y: size must be written out, 'relu(...)' is computed");
  EXPECT_EQ(refusal(network("  y: linear(3, size=1)\n")),
            "net.yaml:4:13: network.y: expected a variable or a call, found '3'");
  EXPECT_EQ(refusal(network("  y: linear(slots, size=1)\n")),
            "net.yaml:4:13: network.y: slots are ids, only embedding takes them");
  EXPECT_EQ(refusal(network("  y: linear(dense, dense, size=1)\n")),
            "net.yaml:4:20: network.y: linear takes 1 values without a name, this is one more");
  EXPECT_EQ(refusal(network("  y: linear(size=1)\n")), "net.yaml:4:6: network.y: linear needs x");
  EXPECT_EQ(refusal(network("  y: concat(axis=1)\n")),
            "net.yaml:4:6: network.y: concat of nothing");
  EXPECT_EQ(refusal(network("  dense: linear(label, size=1)\n")),
            "net.yaml:4: network.dense: 'dense' is an input already");
}

TEST(Network, BrokenTextSaysWhereAndWhatWasExpected) {
  EXPECT_EQ(refusal(network("  y: linear(dense, size=1\n")),
            "net.yaml:4:26: network.y: expected , or ), found the end");
  EXPECT_EQ(refusal(network("  y: linear(dense size=1)\n")),
            "net.yaml:4:19: network.y: expected , or ), found 'size=1)'");
  EXPECT_EQ(refusal(network("  y: mlp(dense, sizes=[4 5])\n")),
            "net.yaml:4:26: network.y: expected , or ], found '5])'");
  EXPECT_EQ(refusal(network("  y: relu(dense))\n")),
            "net.yaml:4:17: network.y: expected an operator or the end, found ')'");
  EXPECT_EQ(refusal(network("  y: relu(dense) +\n")),
            "net.yaml:4:19: network.y: expected a name, a number or a list, found the end");
  EXPECT_EQ(refusal(network("  y: (relu(dense)\n")),
            "net.yaml:4:18: network.y: expected an operator or ), found the end");
  EXPECT_EQ(refusal(network("  y: \"cast(dense, to='f64)\"\n")),
            "net.yaml:4:22: network.y: expected a closing quote, found ''f64)'");
  EXPECT_EQ(refusal(network("  y: " + std::string(200, '(') + "\n")).substr(0, 23),
            "net.yaml:4:106: network");
  EXPECT_EQ(refusal(network("  y: [1, 2]\n")),
            "net.yaml:4: network.y: expected a text, got a list");
}

TEST(Network, ShapesThatDoNotFitNameTheLine) {
  EXPECT_EQ(
      refusal(network("  h: linear(dense, size=3)\n  y: add(h, dense)\n")).find("net.yaml:5: add("),
      0U);
}

TEST(Network, WhatIsMissingOrIdleIsRefused) {
  EXPECT_EQ(refusal("inputs: {dense: 4, label: y}\nnetwork: {y: relu(dense)}\n"),
            "net.yaml: a network needs a loss, as loss: logistic_loss(logit, label)");
  EXPECT_EQ(refusal(network("  y: linear(dense, size=1)\n", "relu(y)"))
                .find("net.yaml:5: loss: must "
                      "be one number"),
            0U);
  EXPECT_EQ(refusal(network("  h: linear(dense, size=1)\n  y: linear(dense, size=1)\n")),
            "net.yaml: parameter 'h.w' does not reach the loss");
  EXPECT_EQ(refusal("inputs: {dense: 4, label: c}\ntables: {t: {dim: 3}}\n"
                    "network: {y: linear(dense, size=1)}\nloss: logistic_loss(y, label)\n"),
            "net.yaml: tables.t: the model has no such table");
  EXPECT_EQ(
      refusal(network("  y: linear(dense, size=1)\n") + "hyper_parameters: {fc_sizes: [4]}\n"),
      "net.yaml:6: unknown key hyper_parameters.fc_sizes");
  EXPECT_EQ(refusal("inputs: {dense: 4, slots: a, label: c}\ntables: {t: {rule: sgd}}\n"
                    "network: {y: linear(embedding(slots, table=t), size=1)}\n"
                    "loss: logistic_loss(y, label)\n"),
            "net.yaml:3:21: network.y: tables.t needs dim, the floats of a row");
}

TEST(Network, WrongMetersAreRefused) {
  const std::string head = network("  y: linear(dense, size=1)\n");
  EXPECT_EQ(
      refusal(head + "metrics:\n  m: auc(sigmoid(y))\n"),
      "net.yaml:7:6: metrics.m: meter auc takes predictions, labels and perhaps groups, got 1");
  EXPECT_EQ(refusal(head + "metrics:\n  m: auc(sigmoid(y), label, bucket=10)\n")
                .find("net.yaml:7:6: metrics.m: 'auc(bucket=10)'"),
            0U);
}

TEST(Network, OverriddenLinesAreNamedByTheOverride) {
  const std::vector<std::string> overrides = {"network.y=linear(dens, size=1)"};
  EXPECT_EQ(message_of<ConfigError>([&] {
              build(parse_config(network("  y: linear(dense, size=1)\n"), "net.yaml", overrides));
            }),
            "-o network.y=linear(dens, size=1): network.y: no variable 'dens' so far, did you mean "
            "dense?");
}

}  // namespace
}  // namespace argosy
