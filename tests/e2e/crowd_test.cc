// Far more workers than cores: they train slowly, and nobody is taken for dead.
#include <fmt/format.h>

#include <cstdlib>

#include "tests/e2e/test_jobs.h"

namespace argosy::e2e {
namespace {

int from_env(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

/// Fewer in the suite; ARGOSY_CROWD says how many.
class Crowd : public PsJob, public testing::WithParamInterface<const char*> {
 protected:
  static constexpr int kRowsEach = 100;

  Crowd() {
    write("config.yaml", small_job(workers_ * kRowsEach, workers_,
                                   "  epochs: 2\n  print_interval: 1\n  thread_num: 1\n"
                                   "  audit: True\n"));
  }
  std::string logs() const {
    std::string all;
    for (const auto& entry : fs::directory_iterator(folder_ / "log")) all += content(entry.path());
    return all;
  }

  const int workers_ = from_env("ARGOSY_CROWD", 40);
};

TEST_P(Crowd, TrainsSlowlyAndNobodyDies) {
  Process job(
      folder_, "run",
      fmt::format("fleetrun --server_num=1 --worker_num={} '{}/'", workers_, ARGOSY_BIN_DIR) +
          train(std::string("runner.sync_mode=") + GetParam()));
  EXPECT_EQ(job.wait(280s), 0) << job.errors();
  EXPECT_EQ(logs().find("taken for dead"), std::string::npos) << log("serverlog.0");
  EXPECT_EQ(instances(workers_).back(), workers_ * kRowsEach);
}

INSTANTIATE_TEST_SUITE_P(Of, Crowd, testing::Values("sync", "async"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace argosy::e2e
