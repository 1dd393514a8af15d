// Models that an early build saved, by every kind of table: they load for ever, with the metrics
// that they had then.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "argosy/base/test_support.h"
#include "argosy/config/runner.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

struct Golden {
  std::string kind;  // its folder
  std::vector<std::string> settings;
};

struct GoldenModel : testing::TestWithParam<Golden> {};

/// Loss and AUC of the line that begins with the kind.
std::pair<double, double> expected(const fs::path& folder, const std::string& kind) {
  std::ifstream lines(folder / "expected.txt");
  std::string name;
  double loss = 0, auc = 0;
  while (lines >> name >> loss >> auc)
    if (name == kind) return {loss, auc};
  ADD_FAILURE() << "expected.txt has no " << kind;
  return {};
}

TEST_P(GoldenModel, LoadsWithTheFiguresOfItsDay) {
  const fs::path golden = fs::path(ARGOSY_SOURCE_DIR) / "tests/golden/saved_model";
  const TestFolder folder;  // the data are generated into it
  fs::copy(golden / "config.yaml", fs::path(folder.path()) / "config.yaml");
  std::vector<std::string> settings = GetParam().settings;
  settings.push_back("runner.infer_load_path=" + (golden / GetParam().kind).string());
  const Config config = load_config(folder.path() + "/config.yaml", settings);
  const auto env = real_env();
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::tmpfile(), std::fclose);
  const std::vector<Metric> metrics = run_infer(*env, config, out.get());
  const auto [loss, auc] = expected(golden, GetParam().kind);
  const auto value = [&](const std::string& name) {
    return std::ranges::find(metrics, name, &Metric::name)->value;
  };
  EXPECT_NEAR(value("loss"), loss, 2e-6);
  EXPECT_NEAR(value("auc"), auc, 2e-6);
}

INSTANTIATE_TEST_SUITE_P(Kinds, GoldenModel,
                         testing::Values(Golden{"local", {}}, Golden{"servers", {}},
                                         Golden{"counted",
                                                {"tables.embedding.entry=count_filter(3)",
                                                 "tables.embedding.track_unseen=True"}},
                                         Golden{"scored", {"tables.embedding.entry=show_click"}}),
                         [](const auto& info) { return info.param.kind; });

}  // namespace
}  // namespace argosy
