#include "argosy/config/model_setup.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"
#include "argosy/data/file_dataset.h"
#include "argosy/world/env.h"
#include "argosy/zoo/model.h"

namespace argosy {
namespace {

/// Three slots and two dense features, so that programs stay small.
constexpr const char* kSmall =
    "inputs: {dense: {name: dense_input, size: 2}, slots: C1..C3, label: label}\n";

Config small_config(const std::string& model, const std::string& hyper = "") {
  return parse_config("model: " + model + "\n" + kSmall + "hyper_parameters: {" + hyper + "}\n",
                      "small.yaml");
}

std::string refusal(const Config& config) {
  return message_of<ConfigError>([&] { static_cast<void>(make_model(config)); });
}

/// Small values for the size keys that the model has.
std::string small_sizes(const std::string& model) {
  std::string sizes = "sparse_feature_number: 150";
  for (const char* more : {", sparse_feature_dim: 4", ", fc_sizes: [8, 4]"})
    if (refusal(small_config(model, sizes + more)) == "nothing was thrown") sizes += more;
  return sizes;
}

Program training_program(const Config& config) {
  Builder g;
  const ModelOutputs outputs = make_model(config).model(g);
  g.output(outputs.loss);
  g.backward(outputs.loss);
  return g.program();
}

std::vector<std::string> names_of(const Program& program, VarKind kind) {
  std::vector<std::string> names;
  for (const VarDesc& var : program.vars)
    if (var.kind == kind) names.push_back(var.name);
  return names;
}

class EveryModel : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Zoo, EveryModel, testing::ValuesIn(model_names()),
                         [](const auto& info) { return info.param; });

TEST_P(EveryModel, HasALossAPredictionAndTwoMeters) {
  const ModelSetup setup = make_model(small_config(GetParam(), small_sizes(GetParam())));
  Builder g;
  const ModelOutputs outputs = setup.model(g);
  EXPECT_EQ(outputs.loss.shape().numel(), 1);
  ASSERT_EQ(outputs.predictions.size(), 1U);
  EXPECT_EQ(outputs.predictions[0].first, "predict");
  EXPECT_EQ(outputs.predictions[0].second.shape(), (Shape{-1, 1}));
  ASSERT_EQ(outputs.meters.size(), 2U);
  EXPECT_EQ(outputs.meters[0].meter, "auc");
  EXPECT_EQ(outputs.meters[1].meter, "batch_auc");
}

TEST_P(EveryModel, HasTheInputsOfTheConfigurationAndTablesOfItsSize) {
  const Config config = small_config(GetParam(), small_sizes(GetParam()));
  const Program program = training_program(config);
  const std::vector<std::string> inputs = names_of(program, VarKind::input);
  for (const char* name : {"dense_input", "label"})
    EXPECT_NE(std::ranges::find(inputs, name), inputs.end()) << name;
  const std::vector<std::string> tables = names_of(program, VarKind::rows);
  ASSERT_FALSE(tables.empty());
  const TablesOptions options = make_model(config).tables;
  ASSERT_EQ(options.size(), tables.size());
  for (const std::string& table : tables)
    EXPECT_EQ(options.find(table)->second.size, 150U) << table;
}

TEST_P(EveryModel, GivesAGradientToEveryParameter) {
  const Program program = training_program(small_config(GetParam(), small_sizes(GetParam())));
  const size_t trained =
      names_of(program, VarKind::param).size() + names_of(program, VarKind::rows).size();
  EXPECT_EQ(program.grads.size(), trained);
}

TEST_P(EveryModel, RefusesAHyperParameterThatItDoesNotUse) {
  EXPECT_EQ(refusal(small_config(GetParam(), "sparse_feature_numbr: 7")),
            "small.yaml:3: unknown key hyper_parameters.sparse_feature_numbr, did you mean "
            "hyper_parameters.sparse_feature_number?");
}

/// Clicks that depend on the first slot and the first dense feature. Slots share their tables, so
/// each has a separate range of ids.
std::string clicks(size_t rows) {
  const RandomStream random(3);
  std::ostringstream lines;
  for (size_t i = 0; i < rows; ++i) {
    const uint64_t first = random.below(10 * i, 50), second = 50 + random.below(10 * i + 1, 50),
                   third = 100 + random.below(10 * i + 2, 50);
    const double dense = random.uniform(10 * i + 3);
    const double logit = (first % 2 == 0 ? 2.0 : -2.0) + 2 * dense - 1;
    const bool click = random.uniform(10 * i + 4) < 1 / (1 + std::exp(-logit));
    lines << "2 " << dense << " 0.5 1 " << first << " 1 " << second << " 1 " << third << " 1 "
          << (click ? 1 : 0) << "\n";
  }
  return lines.str();
}

TEST_P(EveryModel, LearnsFromClicks) {
  const TestFolder folder;
  const Config config =
      small_config(GetParam(), small_sizes(GetParam()) + ", optimizer: {learning_rate: 0.05}");
  ModelSetup setup = make_model(config);
  const auto env = real_env();
  Trainer trainer(*env, setup.model,
                  {.optimizer = config.optimizer, .tables = setup.tables, .seed = 1});
  QueueDataset data(trainer.plan().layout, {.files = {folder.write("a.txt", clicks(2000))},
                                            .parser = config.train.parser,
                                            .slots = config.inputs.columns,
                                            .batch_size = 50});
  const Progress first = trainer.fit(data, {.epochs = 1, .show = nullptr});
  const Progress last = trainer.fit(data, {.epochs = 4, .show = nullptr});
  EXPECT_LT(last.metric("loss"), first.metric("loss"));
  EXPECT_GT(last.metric("auc"), 0.8);
}

TEST(ZooModel, DnnIsGolden) {
  expect_golden("zoo_dnn.txt", training_program(small_config("dnn", small_sizes("dnn"))).text());
}

TEST(ZooModel, EveryConfigurationOfTheTreeBuilds) {
  size_t found = 0;
  const std::filesystem::path models = std::string(ARGOSY_SOURCE_DIR) + "/models";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(models)) {
    if (entry.path().filename() != "config.yaml") continue;
    SCOPED_TRACE(entry.path().string());
    const Config config = load_config(entry.path().string());
    const bool digits = config.train.parser == "mnist";  // no tables, and made up by themselves
    EXPECT_EQ(make_model(config).tables.empty(), digits);
    EXPECT_EQ(config.runner.generate.empty(), digits);
    EXPECT_TRUE(config.notes.empty()) << config.notes.front();
    ++found;
  }
  EXPECT_GE(found, 8U);
}

TEST(ZooModel, TheNetworkInYamlIsTheModelInCpp) {
  const auto shapes = [](const std::string& folder) {
    const Program program = training_program(
        load_config(std::string(ARGOSY_SOURCE_DIR) + "/models/rank/" + folder + "/config.yaml"));
    std::vector<std::string> ops;
    for (const Node& node : program.nodes)
      if (node.phase == Phase::backward) ops.push_back(signature(program, node));
    return ops;
  };
  EXPECT_EQ(shapes("dnn_network"), shapes("dnn"));
}

TEST(ZooModel, UnknownModelsAreNamedWithTheNearest) {
  EXPECT_EQ(refusal(small_config("depfm")), "small.yaml:1: no model 'depfm', did you mean deepfm?");
  EXPECT_EQ(refusal(small_config("transformer")),
            "small.yaml:1: no model 'transformer'; there are dcn, deepfm, dnn, fm, lr, wide_deep");
}

TEST(ZooModel, TablesTakeOptionsByTheirNames) {
  const std::string yaml = std::string("model: dnn\n") + kSmall;
  const ModelSetup setup = make_model(parse_config(
      yaml + "tables: {embedding: {rule: adagrad, learning_rate: 0.05, entry: count_filter(3)}}\n",
      "small.yaml"));
  const TableOptions& table = setup.tables.find("embedding")->second;
  EXPECT_EQ(table.rule, "adagrad");
  EXPECT_EQ(table.learning_rate, "0.05");
  EXPECT_EQ(table.entry, "count_filter(3)");
  EXPECT_EQ(table.size, 1000001U);
  EXPECT_EQ(refusal(parse_config(yaml + "tables: {embeding: {rule: sgd}}\n", "small.yaml")),
            "small.yaml: tables.embeding: the model has no such table, did you mean embedding?");
}

TEST(ZooModel, ADistributedEmbeddingTakesAnyId) {
  const ModelSetup setup = make_model(small_config("dnn", "distributed_embedding: 1"));
  EXPECT_EQ(setup.tables.find("embedding")->second.size, 0U);
}

TEST(ZooModel, FirstRowsAreDrawnAsTold) {
  const auto init = [](const std::string& hyper) {
    const Program program = training_program(small_config("lr", hyper));
    return program.var(program.find("first_order")).init;
  };
  EXPECT_EQ(init(""), "uniform(-0.01, 0.01)");
  EXPECT_EQ(init("embedding_init: \"normal(0, 0.1)\""), "normal(0, 0.1)");
  EXPECT_NE(refusal(small_config("lr", "embedding_init: often")).find("often"), std::string::npos);
}

TEST(ZooModel, SlotsWithAnyNumberOfIdsArePooled) {
  const Program program = training_program(parse_config(
      "model: lr\ninputs: {slots: C1..C3, label: y, ids_per_slot: any}\n", "small.yaml"));
  EXPECT_NE(program.text().find("gather_pool"), std::string::npos);
}

TEST(ZooModel, WideDeepIsWideOverSlotsByKey) {
  EXPECT_EQ(make_model(small_config("wide_deep")).tables.size(), 1U);
  EXPECT_EQ(make_model(small_config("wide_deep", "wide_slots: True")).tables.size(), 2U);
  EXPECT_NE(refusal(parse_config("model: wide_deep\ninputs: {slots: a, label: y}\n", "small.yaml"))
                .find("wide_slots must be True"),
            std::string::npos);
}

TEST(ZooModel, DcnHasWeightsOfItsOwnForEachCross) {
  const Program program = training_program(small_config("dcn", "cross_num: 3"));
  for (const char* name : {"cross.0.w", "cross.1.w", "cross.2.w", "cross.2.b"})
    EXPECT_TRUE(program.find(name)) << name;
  EXPECT_FALSE(program.find("cross.3.w"));
  EXPECT_GT(training_program(small_config("dcn", "l2_reg_cross: 0.5")).nodes.size(),
            training_program(small_config("dcn")).nodes.size());
  EXPECT_EQ(refusal(small_config("dcn", "cross_num: 0")),
            "small.yaml:3: hyper_parameters.cross_num: expected a whole number from 1 to 100, got "
            "'0'");
}

}  // namespace
}  // namespace argosy
