#include "argosy/config/proof.h"

#include <gtest/gtest.h>

#include <set>

#include "argosy/base/test_support.h"
#include "argosy/config/model_setup.h"
#include "argosy/modes/local_store.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

Config small_config(const std::string& more = "", const std::string& inputs = "") {
  return parse_config(
      "model: dnn\n"
      "inputs: {dense: {name: dense_input, size: 2}, slots: C1..C3, label: label" +
          inputs +
          "}\n"
          "hyper_parameters: {fc_sizes: [8, 4], sparse_feature_dim: 4, sparse_feature_number: 150, "
          "optimizer: {class: Adam, learning_rate: 0.05}}\n"
          "runner: {train_batch_size: 32" +
          more + "}\n",
      "small.yaml");
}

/// A model, what it is trained with and a batch.
struct Case {
  explicit Case(const Config& config = small_config())
      : setup(make_model(config)), plan(record(setup.model, options()).plan) {
    batch = random_batch(config, plan, setup.tables);
  }
  TrainerOptions options() const {
    TrainerOptions options;
    options.optimizer = {.rule = "adam", .learning_rate = "0.05"};
    options.tables = setup.tables;
    return options;
  }
  ps::Placement placement(uint32_t servers) const {
    return ps::place(plan.parameters, plan.tables, plan.key_sets, servers, {.min_block = 16});
  }
  std::string difference(const ps::Placement& wrong) const {
    return message_of<DataError>([&] { prove_split(*env, setup.model, options(), wrong, batch); });
  }

  std::unique_ptr<Env> env = real_env();
  ModelSetup setup;
  Plan plan;
  Batch batch;
};

TEST(Proof, HoldsForAnyNumberOfServers) {
  const auto env = real_env();
  for (const uint32_t servers : {1U, 2U, 3U}) {
    const Proof proof =
        prove_plan(*env, small_config(), {.servers = servers, .placement = {.min_block = 16}});
    EXPECT_EQ(proof.parameters, 6U);
    EXPECT_GT(proof.rows, 50U);
  }
}

TEST(Proof, HoldsForSlotsWithAnyNumberOfIds) {
  const auto env = real_env();
  EXPECT_GT(prove_plan(*env, small_config("", ", ids_per_slot: any"), {}).rows, 50U);
}

TEST(Proof, TakesABatchOfTheDataWhereThereAreSome) {
  const TestFolder folder;
  std::string lines;
  std::set<int> ids;
  for (int i = 0; i < 40; ++i) {
    lines += "2 0.5 0.25 1 " + std::to_string(i) + " 1 99 1 100 1 " + std::to_string(i % 2) + "\n";
    if (i < 32) ids.insert({i, 99, 100});
  }
  folder.write("part-0", lines);
  const auto env = real_env();
  const Proof proof = prove_plan(*env, small_config(", train_data_dir: " + folder.path()), {});
  EXPECT_EQ(proof.rows, ids.size());
}

TEST(Proof, FindsAnElementThatNoServerHolds) {
  const Case one;
  ps::Placement wrong = one.placement(2);
  ASSERT_EQ(wrong.parameters[wrong.slices[1].parameter].name, "fc.0.w");
  --wrong.slices[1].end;
  // In the second step its zero has reached everything else.
  EXPECT_TRUE(one.difference(wrong).starts_with("parameter 'fc.0.w' differs in element "))
      << one.difference(wrong);
}

TEST(Proof, FindsATableOfAnotherSeed) {
  const Case one;
  ps::Placement wrong = one.placement(3);
  for (ps::TableSpec& spec : wrong.tables) spec.seed += 1;
  EXPECT_NE(one.difference(wrong).find(" differs in element "), std::string::npos);
}

TEST(Proof, FindsARuleThatIsNearlyTheSame) {
  const Case one;
  ps::Placement wrong = one.placement(2);
  for (ps::TableSpec& spec : wrong.tables) spec.rule = "adam(epsilon=1.1e-8)";
  EXPECT_NE(one.difference(wrong).find(" differs in element "), std::string::npos)
      << one.difference(wrong);
}

/// Two trainers that have done the same.
class Stores : public testing::Test {
 protected:
  Stores() {
    a_.step(one_.batch);
    Batch again = random_batch(small_config(), one_.plan, one_.setup.tables);
    b_.step(again);
  }
  TableStore& a() { return a_.communicator().store(); }
  LocalStore& b() { return static_cast<LocalStore&>(b_.communicator().store()); }
  std::string difference() {
    return message_of<DataError>([&] { compare_stores(a(), b()); });
  }

  Case one_;
  Trainer a_{*one_.env, one_.setup.model, one_.options()};
  Trainer b_{*one_.env, one_.setup.model, one_.options()};
};

TEST_F(Stores, AreEqualAtFirst) {
  EXPECT_EQ(difference(), "nothing was thrown");
  EXPECT_EQ(compare_stores(a(), b()), b().rows("embedding").keys.size());
}

/// The lowest bit of one value.
void flip(Tensor& tensor, size_t element) {
  tensor.data()[element * sizeof(float)] ^= std::byte{1};
}

TEST_F(Stores, ABitOfAParameterIsFound) {
  std::vector<NamedTensor> values = b().persistables();
  const auto w = std::ranges::find(values, "fc.0.w", &NamedTensor::name);
  flip(w->value, 7);
  EXPECT_TRUE(difference().starts_with("parameter 'fc.0.w' differs in element 7: "))
      << difference();
}

TEST_F(Stores, ABitOfOptimizerStateIsFound) {
  std::vector<NamedTensor> values = b().persistables();
  const auto state = std::ranges::find(values, "logit.b@state", &NamedTensor::name);
  flip(state->value, 1);
  EXPECT_TRUE(difference().starts_with("optimizer state of 'logit.b' differs in element 1: "))
      << difference();
}

TEST_F(Stores, ABitOfARowIsFound) {
  TableRows rows = b().rows("embedding");
  flip(rows.rows, 4 * 5 + 2);  // row 5, element 2
  const auto table = std::ranges::find(one_.plan.tables, "embedding", &ps::TableSpec::name);
  b().table(static_cast<size_t>(table - one_.plan.tables.begin()))
      .assign(rows.keys, rows.rows.as<float>());
  EXPECT_TRUE(difference().starts_with("row " + std::to_string(rows.keys[5]) +
                                       " of table 'embedding' differs in element 2: "))
      << difference();
}

TEST_F(Stores, ARowThatOnlyOneHasIsFound) {
  const std::vector<Key> key = {1234567};
  const std::vector<float> row(4);
  const auto table = std::ranges::find(one_.plan.tables, "embedding", &ps::TableSpec::name);
  b().table(static_cast<size_t>(table - one_.plan.tables.begin())).assign(key, row);
  EXPECT_EQ(difference(), "table 'embedding' differs: key 1234567 has a row only split");
}

}  // namespace
}  // namespace argosy
