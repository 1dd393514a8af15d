#include <gtest/gtest.h>

#include <filesystem>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/launch/launcher.h"

namespace argosy::launch {
namespace {

namespace fs = std::filesystem;

std::string refusal(const std::vector<std::string>& command) {
  return message_of<ConfigError>([&] { find_command(command); });
}

TEST(FindCommand, ProgramsAreFoundInPathOrWhereTheyAre) {
  EXPECT_EQ(find_command({"sh", "-c", "x"})[1], "-c");
  EXPECT_TRUE(find_command({"sh"})[0].ends_with("/sh"));
  EXPECT_EQ(find_command({"/bin/sh"}), std::vector<std::string>{"/bin/sh"});
}

TEST(FindCommand, PythonRunsPythonFiles) {
  const TestFolder folder;
  folder.write("train.py", "");
  const std::string script = folder.path() + "/train.py";
  const auto argv = find_command({script, "-m", "a"});
  ASSERT_EQ(argv.size(), 5U);
  EXPECT_NE(argv[0].find("python3"), std::string::npos);
  EXPECT_EQ(argv[1], "-u");
  EXPECT_EQ(argv[2], script);
  EXPECT_EQ(argv[4], "a");
}

TEST(FindCommand, WhatCannotBeRunIsNamed) {
  const TestFolder folder;
  folder.write("data", "");
  EXPECT_EQ(refusal({}), "no command, expected a program behind the flags");
  EXPECT_EQ(refusal({folder.path() + "/data"}), folder.path() + "/data is not executable");
  EXPECT_EQ(refusal({"./no-such-program"}), "there is no program ./no-such-program");
  EXPECT_EQ(refusal({"no-such-program"}), "there is no program no-such-program in PATH");
  EXPECT_TRUE(refusal({"absent.py"}).starts_with("there is no script absent.py, expected "));
  EXPECT_TRUE(refusal({"tools/absent.py"}).starts_with("there is no script tools/absent.py"));
}

TEST(LogDir, IsMadeOrRefused) {
  const TestFolder folder;
  prepare_log_dir(folder.path() + "/a/b");
  EXPECT_TRUE(fs::is_directory(folder.path() + "/a/b"));
  folder.write("file", "");
  EXPECT_EQ(message_of<ConfigError>([&] { prepare_log_dir(folder.path() + "/file"); }),
            "cannot make the folder " + folder.path() + "/file: Not a directory");
}

}  // namespace
}  // namespace argosy::launch
