#include "argosy/data/pipe.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/data/lines.h"
#include "argosy/data/samples.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;

class PipeTest : public testing::Test {
 public:
  ~PipeTest() override {
    EXPECT_TRUE(::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) << "a child was left";
  }

 protected:
  static std::string text_of(ByteStream& stream) {
    const auto bytes = read_all(stream);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string output(const std::string& command) const {
    return text_of(*open_pipe(file_, {.command = command}));
  }
  /// The message of a pipe that fails, without its name.
  std::string failure(const PipeOptions& options, std::stop_token stop = {}) const {
    const std::string message =
        message_of<IoError>([&] { text_of(*open_pipe(file_, options, stop)); });
    const std::string name = file_ + " | " + options.command;
    return message.starts_with(name) ? message.substr(name.size()) : message;
  }
  TestFolder folder_;
  std::string file_ = folder_.write("part 0'", "one\ntwo\n");
};

TEST_F(PipeTest, GivesWhatTheCommandWrites) {
  EXPECT_EQ(output("cat"), "one\ntwo\n");  // without a process
  EXPECT_EQ(output("cat -"), "one\ntwo\n");
  EXPECT_EQ(output("sed s/o/0/ | tr a-z A-Z"), "0NE\nTW0\n");
  EXPECT_EQ(output("true"), "");
  EXPECT_EQ(output("head -1"), "one\n");
}

TEST_F(PipeTest, StartsInTheFolderItIsTold) {
  const auto stream = open_pipe(file_, {.command = "pwd -P", .directory = "/usr"});
  EXPECT_EQ(text_of(*stream), "/usr\n");
  EXPECT_EQ(failure({.command = "cat -", .directory = "/no/such"}),
            ": exit status 126, stderr: cannot enter the folder of the pipe command");
}

TEST_F(PipeTest, ReportsHowAChildFailed) {
  EXPECT_EQ(failure({.command = "cat; echo a bad day >&2; echo at row 3 >&2; exit 3"}),
            ": exit status 3, stderr: a bad day | at row 3");
  EXPECT_EQ(failure({.command = "kill -9 $$"}), ": killed by signal 9 (Killed)");
  EXPECT_EQ(failure({.command = "no_such_program"}).substr(0, 25), ": exit status 127, stderr");
}

TEST_F(PipeTest, KeepsTheEndOfALongStderrWithoutBlocking) {
  const std::string message =
      failure({.command = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done >&2; "
                          "cat; exit 1"});
  EXPECT_LT(message.size(), 7000U);
  EXPECT_TRUE(message.ends_with("line 19998 | line 19999")) << message.substr(message.size() - 80);
}

TEST_F(PipeTest, EndsAChildThatHangs) {
  EXPECT_EQ(failure({.command = "sleep 1000", .patience = 50ms}),
            ": neither output nor an end for 50 ms");
  EXPECT_EQ(failure({.command = "exec >&-; sleep 1000", .patience = 50ms}),
            ": neither output nor an end for 50 ms");
}

TEST_F(PipeTest, StopsWhenTold) {
  std::stop_source source;
  std::jthread stopper([&] { source.request_stop(); });
  EXPECT_EQ(failure({.command = "sleep 1000"}, source.get_token()), ": stopped");
  EXPECT_EQ(failure({.command = "yes"}, source.get_token()), ": stopped");
}

TEST_F(PipeTest, ClosingKillsTheWholeGroup) {
  std::string pid(32, '\0');
  {
    const auto stream = open_pipe(file_, {.command = "sleep 1000 & echo $!; wait"});
    pid.resize(stream->read(pid));
  }
  const auto grandchild = static_cast<pid_t>(std::stol(pid));
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  const auto gone = [&] {  // it may stay a zombie where nobody reaps orphans
    std::ifstream status("/proc/" + std::to_string(grandchild) + "/stat");
    std::string id, name, state;
    return !(status >> id >> name >> state) || state == "Z";
  };
  while (!gone() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_TRUE(gone());
}

TEST_F(PipeTest, PackedFilesReachTheChildUnpacked) {
  const std::string folder = data_folder("criteo");
  if (folder.empty()) GTEST_SKIP() << "set ARGOSY_DATA to a folder with criteo/";
  const auto stream = open_pipe(folder + "/test.tsv.gz", {.command = "wc -l"});
  EXPECT_EQ(text_of(*stream), "13000\n");
  EXPECT_EQ(text_of(*open_pipe(folder + "/test.tsv.gz", {.command = "true"})), "");
}

TEST_F(PipeTest, ATruncatedPackedFileIsAnErrorThoughTheChildIsContent) {
  const std::string path =
      folder_.write("cut", std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b", 11));
  EXPECT_EQ(message_of<DataError>([&] { text_of(*open_pipe(path, {.command = "cat -"})); }),
            path + ": damaged or truncated gzip at byte 11");
}

TEST_F(PipeTest, StartsTheNextFileAhead) {
  std::vector<std::string> files = {file_, folder_.write("b", "three\n"), folder_.write("c", "")};
  size_t asked = 0;
  PipedFiles piped(
      [&]() -> std::optional<std::string> {
        if (asked == files.size()) return std::nullopt;
        return files[asked++];
      },
      {.command = "cat -"});
  EXPECT_EQ(asked, 1U);
  std::string all;
  while (const auto stream = piped.next()) {
    EXPECT_GE(asked, 2U);
    all += text_of(*stream);
  }
  EXPECT_EQ(all, "one\ntwo\nthree\n");
}

TEST_F(PipeTest, RefusesFilesItCannotOpenAndEmptyCommands) {
  EXPECT_THROW(open_pipe(folder_.path(), {.command = "cat -"}), IoError);
  EXPECT_THROW(open_pipe(folder_.path() + "/none", {.command = "cat -"}), IoError);
  EXPECT_THROW(open_pipe(file_, {}), ConfigError);
}

TEST(WithPython3, ReplacesOnlyALeadingWordAndOnlyWhereItIsAbsent) {
  const std::string before = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
  const TestFolder empty;
  ::setenv("PATH", empty.path().c_str(), 1);
  EXPECT_EQ(with_python3("python reader.py"), "python3 reader.py");
  EXPECT_EQ(with_python3(" python"), " python3");
  EXPECT_EQ(with_python3("python3 x"), "python3 x");
  EXPECT_EQ(with_python3("cat | python x"), "cat | python x");
  EXPECT_EQ(with_python3(""), "");
  std::filesystem::permissions(empty.write("python", ""), std::filesystem::perms::all);
  EXPECT_EQ(with_python3("python reader.py"), "python reader.py");
  ::setenv("PATH", before.c_str(), 1);
}

}  // namespace
}  // namespace argosy
