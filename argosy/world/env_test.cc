#include "argosy/world/env.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <future>

#include "argosy/base/error.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;

class EnvTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ =
        (std::filesystem::temp_directory_path() / ("argosy_env_" + std::to_string(env_->random())))
            .string();
    env_->make_directories(dir_);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  static std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
  }

  std::unique_ptr<Env> env_ = real_env();
  std::string dir_;
};

TEST_F(EnvTest, TimerRunsOnceAfterItsTime) {
  std::promise<Env::Time> ran;
  const Env::Time start = env_->now();
  env_->schedule(5ms, [&] { ran.set_value(env_->now()); });
  EXPECT_GE(ran.get_future().get() - start, 5ms);
}

TEST_F(EnvTest, CancelledTimerNeverRuns) {
  std::promise<void> later;
  bool wrong = false;
  const Env::TimerId id = env_->schedule(20ms, [&] { wrong = true; });
  EXPECT_TRUE(env_->cancel(id));
  EXPECT_FALSE(env_->cancel(id));
  env_->schedule(40ms, [&] { later.set_value(); });
  later.get_future().wait();
  EXPECT_FALSE(wrong);
}

TEST_F(EnvTest, AtomicWriteReplacesTheWholeFile) {
  const std::string path = dir_ + "/model";
  write_file_atomically(*env_, path, bytes("first, and longer"));
  write_file_atomically(*env_, path, bytes("second"));
  const auto read = env_->read_file(path);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(read.data()), read.size()), "second");
  EXPECT_FALSE(env_->file_exists(path + ".new"));
}

TEST_F(EnvTest, FailuresNamePathAndReason) {
  try {
    env_->read_file(dir_ + "/absent");
    FAIL();
  } catch (const IoError& e) {
    EXPECT_EQ(std::string(e.what()), "open " + dir_ + "/absent: No such file or directory");
  }
  EXPECT_THROW(env_->read_file(dir_), IoError);
  EXPECT_NO_THROW(env_->remove_file(dir_ + "/absent"));
}

TEST_F(EnvTest, ANewFileIsItsOwnersAloneAndNeverReplacesOne) {
  const std::string path = dir_ + "/log";
  env_->create_new_file(path)->append(bytes("first"));
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(path).permissions(), perms::owner_read | perms::owner_write);
  EXPECT_THROW(env_->create_new_file(path), IoError);
  EXPECT_EQ(env_->file_size(path), 5U);
}

TEST_F(EnvTest, FilesAreListedLinkedAndCut) {
  const std::string path = dir_ + "/b";
  const auto file = env_->create_file(path);
  file->append(bytes("0123456789"));
  env_->link_file(path, dir_ + "/a");
  EXPECT_THROW(env_->link_file(path, dir_ + "/a"), IoError);
  env_->make_directories(dir_ + "/folder");
  env_->sync_folder(dir_);
  EXPECT_EQ(env_->list_files(dir_), (std::vector<std::string>{"a", "b"}));
  env_->truncate_file(path, 4);
  EXPECT_EQ(env_->file_size(dir_ + "/a"), 4U);
  EXPECT_THROW(env_->truncate_file(path, 5), IoError);
  EXPECT_THROW(env_->list_files(dir_ + "/absent"), IoError);
  EXPECT_THROW(env_->sync_folder(dir_ + "/absent"), IoError);
}

}  // namespace
}  // namespace argosy
