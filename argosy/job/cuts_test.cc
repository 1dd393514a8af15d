#include "argosy/job/cuts.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/job/saves.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;

TEST(CutInterval, IsATimeOrANumberOfSteps) {
  EXPECT_TRUE(parse_cut_interval("").never());
  EXPECT_TRUE(parse_cut_interval("0").never());
  EXPECT_EQ(parse_cut_interval("60s").time, 60s);
  EXPECT_EQ(parse_cut_interval("10m").time, 10min);
  EXPECT_EQ(parse_cut_interval("2h").time, 2h);
  EXPECT_EQ(parse_cut_interval("500").steps, 500U);
  for (const char* text : {"s", "10 m", "-1", "1.5h", "10d", "99999999h"})
    EXPECT_TRUE(has(message_of<ConfigError>([&] { parse_cut_interval(text); }),
                    std::string("'") + text + "' is no interval, expected "))
        << text;
}

/// Cuts of servers that are not there: each is a folder with a file.
class CutsTest : public testing::Test {
 protected:
  /// Takes so many cuts. `late`: which of them come too late.
  void take(size_t count, const CutOptions& options, size_t late = 0) {
    std::atomic<size_t> asked = 0;
    Cuts cuts(*env_,
              {.prepare = [] { return [] {}; },
               .begin =
                   [&](const std::string& folder) {
                     const bool is_late = ++asked == late;
                     return [this, folder, is_late] { return part_of(folder, is_late); };
                   }},
              options);
    while (asked < count) {
      cuts.after_step(2);
      std::this_thread::yield();
    }
  }
  SavedCut part_of(const std::string& folder, bool late) {
    env_->make_directories(folder);
    std::ofstream(folder + "/server-0.cut") << "part";
    SavedCut cut{.parts = {{"", "server-0.cut", {1, 100, 5}}}};
    cut.marks.push_back({.step = 3, .applied = {4, 5}, .trained = {{1, 7, 7}, {1, 6, 6}}});
    cut.late = late;
    return cut;
  }
  CutOptions options(uint64_t steps, size_t keep) {
    return {.folder = folder_.path(),
            .interval = {.time = {}, .steps = steps},
            .keep = keep,
            .log = [this](const std::string& line) { log_ += line + "\n"; }};
  }

  TestFolder folder_;
  const std::unique_ptr<Env> env_ = real_env();
  std::string log_;
};

TEST_F(CutsTest, KeepTheNewestOnesWithTheirManifests) {
  for (int run = 0; run < 4; ++run) take(1, options(1, 2));
  EXPECT_EQ(cut_numbers(folder_.path()), (std::vector<uint64_t>{3, 4})) << log_;
  EXPECT_TRUE(has(log_, cut_folder(folder_.path(), 4) + ": 1 rows")) << log_;
  EXPECT_EQ(newest_save(*env_, folder_.path())->folder, cut_folder(folder_.path(), 4));
  const std::vector<Trained> cursors = cursors_of_cut(*env_, cut_folder(folder_.path(), 4));
  ASSERT_EQ(cursors.size(), 2U);
  EXPECT_EQ(cursors[1].batches, 6U);
}

TEST_F(CutsTest, RemoveWhatWasNeverFinished) {
  env_->make_directories(cut_folder(folder_.path(), 1) + "/server-0");
  env_->make_directories(cut_folder(folder_.path(), 2));
  take(1, options(1, 5));
  EXPECT_EQ(cut_numbers(folder_.path()), (std::vector<uint64_t>{3})) << log_;
}

TEST_F(CutsTest, ATooLateOneIsTriedAgainAfterTheNextStep) {
  take(2, options(1000, 5), 1);
  EXPECT_FALSE(is_save(*env_, cut_folder(folder_.path(), 1)));
  EXPECT_EQ(newest_save(*env_, folder_.path())->folder, cut_folder(folder_.path(), 2));
}

TEST_F(CutsTest, OneThatFailsIsToldAndTheNextIsTaken) {
  {
    std::atomic<bool> asked = false;
    Cuts cuts(*env_,
              {.prepare = [] { return [] {}; },
               .begin =
                   [&](const std::string&) {
                     asked = true;
                     return []() -> SavedCut {
                       fail<IoError>("server 1: write x: No space left on device");
                     };
                   }},
              options(1, 2));
    while (!asked) {
      cuts.after_step(1);
      std::this_thread::yield();
    }
  }
  EXPECT_TRUE(has(log_, "no cut ")) << log_;
  EXPECT_TRUE(has(log_, "server 1: write x: No space left on device")) << log_;
  take(1, options(1, 2));
  EXPECT_TRUE(newest_save(*env_, folder_.path()).has_value());
}

}  // namespace
}  // namespace argosy
