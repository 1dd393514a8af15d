#include "argosy/launch/screen.h"

#include <gtest/gtest.h>

#include <fstream>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"

namespace argosy::launch {
namespace {

void append(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::app) << text;
}

TEST(LogTail, GivesWholeLinesAndTheRestAtTheEnd) {
  const TestFolder folder;
  const std::string path = folder.write("log", "one\ntw");
  LogTail tail(path);
  EXPECT_EQ(tail.read(), "one\n");
  EXPECT_EQ(tail.read(), "");
  append(path, "o\nthree");
  EXPECT_EQ(tail.read(), "two\n");
  EXPECT_EQ(tail.read_rest(), "three\n");
  EXPECT_EQ(tail.read_rest(), "");
}

TEST(LogTail, ShowsALineThatDoesNotEndWhenItIsLong) {
  const TestFolder folder;
  const std::string path = folder.write("log", std::string(5000, 'x'));
  EXPECT_EQ(LogTail(path).read().size(), 5000U);
}

TEST(LogTail, RefusesAFileThatIsNotThere) {
  EXPECT_EQ(message_of<IoError>([] { LogTail("absent/log"); }),
            "cannot open absent/log: No such file or directory");
}

TEST(LastLines, AreThoseOfTheFile) {
  const TestFolder folder;
  EXPECT_EQ(last_lines(folder.write("a", "1\n2\n3\n"), 2, "> "), "> 2\n> 3\n");
  EXPECT_EQ(last_lines(folder.write("b", "1\n\n3"), 5, ""), "1\n\n3\n");
  EXPECT_EQ(last_lines(folder.write("c", "\n\n"), 5, "  "), "");
  EXPECT_EQ(last_lines(folder.path() + "/absent", 5, "  "), "");
  EXPECT_EQ(last_lines(folder.write("d", std::string(100000, 'x') + "\nend\n"), 1, ""), "end\n");
}

TEST(Screen, SaysOnceThatNothingCanBeShown) {
  std::FILE* full = std::fopen("/dev/full", "w");
  std::FILE* errors = std::tmpfile();
  ASSERT_NE(full, nullptr);
  Screen screen(full, errors);
  screen.text("a\n");
  screen.text("b\n");
  std::rewind(errors);
  std::string text(200, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), errors));
  EXPECT_EQ(text,
            "fleetrun: cannot write to the standard output: No space left on device; the job goes "
            "on\n");
  std::fclose(full);
  std::fclose(errors);
}

TEST(Screen, WritesPlainLinesWhereThereIsNoTerminal) {
  std::FILE* out = std::tmpfile();
  std::FILE* errors = std::tmpfile();
  Screen screen(out, errors);
  screen.text("a\n");
  screen.progress("p");
  screen.message("m");
  screen.settle();
  const auto content = [](std::FILE* file) {
    std::rewind(file);
    std::string text(100, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file));
    std::fclose(file);
    return text;
  };
  EXPECT_EQ(content(out), "a\np\n");
  EXPECT_EQ(content(errors), "m\n");
}

}  // namespace
}  // namespace argosy::launch
