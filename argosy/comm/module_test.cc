// Backends of modules: OpenMPI's mpirun starts this program again, and each task is a rank.
#include <csignal>
#include <filesystem>
#include <fstream>

#include "argosy/base/own_folder.h"
#include "argosy/base/test_support.h"
#include "argosy/comm/backends.h"
#include "argosy/comm/module_file.h"
#include "argosy/comm/test_groups.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;

std::string content(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Why a module cannot be tried here; "": it can.
std::string obstacle(const std::string& name) {
  if (launched_test()) return "for the process that starts the others";
  try {
    load_module(name);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

/// As mpirun starts tests of this program.
class UnderMpi : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = obstacle("mpi"); !why.empty()) GTEST_SKIP() << why;
    if (std::system("mpirun --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no mpirun";
  }
  /// The exit code; what tasks print is in output().
  int run(int ranks, const std::string& tests, const std::string& flags = "") const {
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
    // A short folder: OpenMPI keeps sockets there.
    const std::string line = "TMPDIR='" + folder_.path() +
                             "' ARGOSY_TEST_BACKEND=mpi ARGOSY_TEST_FOLDER='" + folder_.path() +
                             "/meet' timeout -k 5 200 mpirun --allow-run-as-root --oversubscribe " +
                             "--bind-to none " + flags + " -n " + std::to_string(ranks) + " '" +
                             program + "' --gtest_brief=1 --gtest_color=no --gtest_filter='" +
                             tests + "' >'" + folder_.path() + "/out' 2>&1";
    const int status = std::system(line.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string output() const { return content(folder_.path() + "/out"); }

  const TestFolder folder_;
};

class UnderMpiConforms : public UnderMpi, public testing::WithParamInterface<int> {};

TEST_P(UnderMpiConforms, AsEveryBackend) {
  EXPECT_EQ(run(GetParam(), "Launched/Backends.*:Deterministic.*"), 0) << output();
  EXPECT_TRUE(has(output(), "[  PASSED  ] 7 tests.")) << output();
}

INSTANTIATE_TEST_SUITE_P(Ranks, UnderMpiConforms, testing::Values(1, 2, 3),
                         [](const auto& info) { return std::to_string(info.param); });

/// After a failure MPI is not ended, which mpirun takes for one as well.
TEST_F(UnderMpi, CallsThatDifferAreShown) {
  EXPECT_NE(run(2, "LaunchedOnly.ShowsCallsThatDiffer"), 0) << output();
  EXPECT_TRUE(has(output(), "[  PASSED  ] 1 test.") && !has(output(), "FAILED")) << output();
}

TEST_F(UnderMpi, CirclesOfMessagesAreRefused) {
  EXPECT_NE(run(2, "LaunchedOnly.RefusesACircle"), 0) << output();
  EXPECT_TRUE(has(output(), "[  PASSED  ] 1 test.") && !has(output(), "FAILED")) << output();
}

/// mpirun ends all tasks when one dies; with --enable-recovery it leaves them to themselves, and
/// says nothing by its exit code.
TEST_F(UnderMpi, AKilledRankIsNamed) {
  run(3, "LaunchedOnly.NamesTheKilled", "--enable-recovery");
  for (const int rank : {0, 2})
    EXPECT_TRUE(
        has(content(folder_.path() + "/said." + std::to_string(rank)), "rank 1 (127.0.0.1:"))
        << rank << output();
}

/// Tests that only make sense as one of several tasks.
class LaunchedOnly : public testing::Test {
 protected:
  void SetUp() override {
    if (!launched_test()) GTEST_SKIP() << "only as a task of mpirun";
  }
};

TEST_F(LaunchedOnly, ShowsCallsThatDiffer) {
  const auto env = real_env();
  const auto group = connect_group(*env, launched_options(*launched_test()));
  std::vector<float> data(group->rank() == 0 ? 10 : 12);
  const std::string text = message_of<Error>([&] { group->all_reduce<float>(data); });
  EXPECT_TRUE(has(text, "10 f32") && has(text, "12 f32")) << text;
}

TEST_F(LaunchedOnly, RefusesACircle) {
  const auto env = real_env();
  const auto group = connect_group(*env, launched_options(*launched_test()));
  std::vector<float> data(3'000'000);
  const std::string text = message_of<Error>([&] { group->send<float>(data, 1 - group->rank()); });
  EXPECT_TRUE(has(text, "messages wait for each other in a circle")) << text;
}

TEST_F(LaunchedOnly, NamesTheKilled) {
  const auto env = real_env();
  const auto group = connect_group(*env, launched_options(*launched_test()));
  std::vector<float> data(100'000);
  const std::string file = launched_test()->folder + "/../said." + std::to_string(group->rank());
  const auto begin = std::chrono::steady_clock::now();
  for (int step = 0;; ++step) {
    if (step == 100 && group->rank() == 1) ::kill(::getpid(), SIGKILL);
    try {
      group->all_reduce<float>(data);
    } catch (const IoError& e) {
      std::ofstream(file) << e.what();
      EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
      FAIL() << e.what();
    }
  }
}

TEST(ModuleFile, SaysWhatIsMissingAndHowToGetIt) {
  const std::string text = message_of<ConfigError>([] { load_module("none"); });
  EXPECT_TRUE(has(text, "backend none: there is no libargosy_none.so in " + own_folder().string()))
      << text;
  EXPECT_TRUE(has(text, "build again")) << text;
}

TEST(Modules, RefuseAProcessThatTheyCannotServe) {
  const auto env = real_env();
  if (launched_test()) GTEST_SKIP() << "this process was started by mpirun";
  for (const std::string name : {"mpi", "nccl"}) {
    if (!obstacle(name).empty()) continue;
    TestRanks test(2);
    std::vector<std::string> texts(2);
    on_threads(2, [&](int rank) {
      texts[static_cast<size_t>(rank)] =
          message_of<Error>([&] { connect_group(*env, test.options(rank, name)); });
    });
    for (const std::string& text : texts) EXPECT_TRUE(has(text, "backend " + name + ": ")) << text;
  }
}

}  // namespace
}  // namespace argosy::comm
