#include "argosy/ckpt/paddle.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/ckpt/checkpoint_files.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

class PaddleTest : public testing::Test {
 protected:
  PaddleTest() { fs::create_directory(from_.path() + "/001"); }

  void write(const std::string& name, const std::string& text) { from_.write(name, text); }
  void copy_pickle(const std::string& name) {
    fs::copy_file(std::string(ARGOSY_SOURCE_DIR) + "/tests/golden/pickles/" + name,
                  from_.path() + "/" + name);
  }
  CheckpointFiles import(const PaddleImport& what) {
    const std::string dir = to_.path() + "/" + std::to_string(++imports_);
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::tmpfile(), std::fclose);
    import_paddle(*env_, from_.path(), what, dir, out.get());
    return open_checkpoint(*env_, dir);
  }
  std::string refusal(const PaddleImport& what) {
    return message_of<Error>([&] { import(what); });
  }
  /// "key: values" of each row.
  std::string rows(const CheckpointFiles& files, const std::string& table) {
    TableMerge merge(*env_, files.dir, files.files_of(table));
    std::string text;
    while (const auto row = merge.next()) {
      text += std::to_string(row->key) + ":";
      for (const float value : row->image) text += fmt::format(" {}", value);
      text += "\n";
    }
    return text;
  }

  const TestFolder from_, to_;
  const std::unique_ptr<Env> env_ = real_env();
  int imports_ = 0;
};

TEST_F(PaddleTest, RowsOfTheDefaultAccessorComeFromAllFilesInTheOrderOfTheirKeys) {
  // slot unseen delta show click embed_w g2sum, then embedx_w and its g2sum for keys that scored
  write("001/part-000-00000", "30 1 0 0.5 3 1 0.25 0.1 0.5 -0.5 0.2\n7 1 2 0.5 1 0 1.5 0.1\n");
  write("001/part-000-00001", "18446744073709551615 1 0 0 9 2 -1 0 1e-3 2 0.3\n");
  const PaddleImport what{.tables = {parse_paddle_table("001=embedding:3")}};
  EXPECT_EQ(rows(import(what), "embedding"),
            "7: 1.5 0 0\n30: 0.25 0.5 -0.5\n18446744073709551615: -1 0.001 2\n");
  PaddleImport all = what;
  all.keep_scores = all.keep_unseen = true;
  all.run_bytes = 1;  // each row is sorted by itself, and merged with the others
  EXPECT_EQ(rows(import(all), "embedding"),
            "7: 2 1 0 1.5 0 0\n30: 0 3 1 0.25 0.5 -0.5\n18446744073709551615: 0 9 2 -1 0.001 2\n");
  EXPECT_FALSE(fs::exists(to_.path() + "/2/embedding.run-1"));
}

TEST_F(PaddleTest, EachRuleAndAccessorHasItsOwnLine) {
  write("001/part-000-00000", "5 0 0 0 1 0 0.5 1 2\n");
  PaddleImport what{.tables = {parse_paddle_table("001=e:3")}, .rule = "naive"};
  EXPECT_EQ(rows(import(what), "e"), "5: 0.5 1 2\n");
  write("001/part-000-00000", "5 0 0 0 1 0 0.5 8 8 8 8 1 2 7 7 7 7 7 7\n");
  what.rule = "adam";
  EXPECT_EQ(rows(import(what), "e"), "5: 0.5 1 2\n");
  write("001/part-000-00000", "5 3 0 4 1 0.5 8 0 8 1 2\n6 3 0 4 1 0.5 8 0\n");
  what.accessor = "ctr_double";
  what.keep_unseen = what.keep_scores = true;
  EXPECT_EQ(rows(import(what), "e"), "5: 3 4 1 0.5 1 2\n6: 3 4 1 0.5 0 0\n");
}

TEST_F(PaddleTest, RowsOfOneWeightMayHaveStateOfNone) {
  write("001/part-000-00000", "5 0 0 0 1 0 0.5 8 9\n6 0 0 0 1 0 1.5 8\n");
  PaddleImport what{.tables = {parse_paddle_table("001=e:1")}};
  EXPECT_EQ(rows(import(what), "e"), "5: 0.5\n6: 1.5\n");
  write("001/part-000-00000", "5 3 0 4 1 0.5 8 0 8\n6 3 0 4 1 1.5 8 0\n");
  what.accessor = "ctr_double";
  EXPECT_EQ(rows(import(what), "e"), "5: 0.5\n6: 1.5\n");
}

TEST_F(PaddleTest, RowsOfACommonTableAreThoseThatWereAdmitted) {
  write("001/emb.block0.txt", "9\t4\t1\t1\t0.5,1.5,7,7,\n3\t1\t0\t0\t0,0,0,0,\n");
  write("001/emb.block0.txt.meta",
        "param=emb\nshard_id=0\nrow_names=Moment,Param\nrow_dims=2,2\ncount=2\n");
  PaddleImport what{.tables = {parse_paddle_table("001=e:2")}, .accessor = "common"};
  EXPECT_EQ(rows(import(what), "e"), "9: 7 7\n");
  fs::remove(from_.path() + "/001/emb.block0.txt.meta");
  EXPECT_EQ(rows(import(what), "e"), "9: 0.5 1.5\n");
}

TEST_F(PaddleTest, LinesThatDoNotFitAreNamed) {
  const PaddleImport what{.tables = {parse_paddle_table("001=e:3")}};
  const std::string path = from_.path() + "/001/part-000-00000";
  write("001/part-000-00000", "5 0 0 0 1 0 0.5 1 2 3 4\n6 0 0 0 1\n");
  EXPECT_EQ(refusal(what), path +
                               ":2: 4 values behind the key, expected 7 or 10 (accessor sparse, "
                               "rule adagrad, 3 weights)");
  write("001/part-000-00000", "5 0 0 0 1 0 0.5x 1\n");
  EXPECT_EQ(refusal(what), path + ":1: cannot read '0.5x 1', expected a number");
  write("001/part-000-00000", "-5 0 0 0 1 0 0.5 1\n");
  EXPECT_EQ(refusal(what), path + ":1: cannot read '-5 0 0 0 1 0 0.5 1', expected a number");
  write("001/part-000-00000", "5 0 0 0 1 0 nan 1\n");
  EXPECT_EQ(refusal(what), path + ":1: holds nan");
  write("001/part-000-00000", "5 0 0 0 1 0 1 1\n5 0 0 0 1 0 1 1\n");
  EXPECT_EQ(refusal(what), "table 'e': key 5 is there twice");
  EXPECT_EQ(refusal({.tables = what.tables, .rule = "adagrat"}),
            "rule 'adagrat', expected naive, adagrad, std_adagrad, adam or shared_adam; did you "
            "mean adagrad?");
  EXPECT_TRUE(has(refusal({}), "nothing to import, say --table 001=NAME:WEIGHTS")) << refusal({});
  EXPECT_EQ(message_of<ConfigError>([] { parse_paddle_table("001=e"); }),
            "table '001=e', expected FOLDER=NAME:WEIGHTS such as 001=embedding:9");
}

TEST_F(PaddleTest, ParametersComeWithTheirOptimizerState) {
  copy_pickle("tensors4.pdparams");
  copy_pickle("adam.pdopt");
  const CheckpointFiles files = import({.renames = {{"fc.weight", "fc.0.w"}}});
  EXPECT_EQ(files.tensor("fc.0.w").value.shape(), Shape({2, 3}));
  EXPECT_EQ(files.tensor("fc.bias").value.numel(), 3);
  const auto state = files.tensor("fc.0.w@state").value.as<float>();
  ASSERT_EQ(state.size(), 12U);
  EXPECT_EQ(state[1], 0.25F);
  EXPECT_EQ(state[7], 0.0625F);
  EXPECT_EQ(files.tensor("@step").value.as<int64_t>()[0], 20);
  EXPECT_EQ(import({.step = 5}).tensor("@step").value.as<int64_t>()[0], 5);
  EXPECT_TRUE(
      has(refusal({.renames = {{"fc.wait", "w"}}}), "has no parameter 'fc.wait' to rename"));
}

}  // namespace
}  // namespace argosy
