#include "argosy/data/pipe.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/base/mutex.h"
#include "argosy/base/test_support.h"
#include "argosy/data/lines.h"
#include "argosy/samples/samples.h"
#include "argosy/world/test_processes.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;

class PipeTest : public testing::Test {
 public:
  ~PipeTest() override {
    siginfo_t left{};
    ::waitid(P_ALL, 0, &left, WEXITED | WNOHANG | WNOWAIT);
    EXPECT_EQ(left.si_pid, 0) << "a child was not waited for";
    EXPECT_LE(children_of(::getpid()).size(), 1U) << "only the guard stays";
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
  std::string failure(const PipeOptions& options, const SourceOptions& source = {},
                      const std::stop_token& stop = {}) const {
    const std::string message =
        message_of<IoError>([&] { text_of(*open_pipe(file_, options, source, stop)); });
    const std::string name = file_ + " through '" + options.command + "'";
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
            ": exit status 127, stderr: cannot enter /no/such: No such file or directory");
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
  EXPECT_EQ(failure({.command = "sleep 1000"}, {.give_up = 50ms}),
            ": neither output nor an end for 0.05 s");
  EXPECT_EQ(failure({.command = "exec >&-; sleep 1000"}, {.give_up = 50ms}),
            ": neither output nor an end for 0.05 s");
}

TEST_F(PipeTest, StopsWhenTold) {
  std::stop_source source;
  std::jthread stopper([&] { source.request_stop(); });
  EXPECT_EQ(failure({.command = "sleep 1000"}, {}, source.get_token()), ": stopped");
  EXPECT_EQ(failure({.command = "yes"}, {}, source.get_token()), ": stopped");
}

/// The lines about a source; a condition on them can be waited for.
class Heard {
 public:
  SourceOptions options(std::chrono::milliseconds patience) {
    return {.patience = patience, .log = [this](const SourceNews& news) {
              const Lock lock(mutex_);
              if (!news.line.empty()) lines_.push_back(news.line);
              note_ = news.note;
            }};
  }
  std::vector<std::string> lines() const {
    const Lock lock(mutex_);
    return lines_;
  }
  std::string note() const {
    const Lock lock(mutex_);
    return note_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<std::string> lines_ GUARDED_BY(mutex_);
  std::string note_ GUARDED_BY(mutex_);
};

TEST_F(PipeTest, SpeaksOfACommandThatGivesNothingUntilItDoes) {
  const std::string go = folder_.path() + "/go",
                    command = "echo a; until [ -e go ]; do sleep 0.01; done; echo b";
  Heard heard;
  const auto stream =
      open_pipe(file_, {.command = command, .directory = folder_.path()}, heard.options(20ms));
  std::string text;
  std::jthread reader([&] { text = text_of(*stream); });
  await([&] { return heard.lines().size() >= 3; }, "three lines");
  const std::string name = file_ + " through '" + command + "'";
  EXPECT_EQ(heard.lines()[0].find("waits for data: " + name +
                                  " has given nothing for 0 s; it is process "),
            0U)
      << heard.lines()[0];
  EXPECT_EQ(heard.note().find(name + " gives nothing; it is process "), 0U) << heard.note();
  folder_.write("go", "");
  reader.join();
  EXPECT_EQ(text, "a\nb\n");
  EXPECT_EQ(heard.lines().back().find(name + " gives data again, after "), 0U)
      << heard.lines().back();
  EXPECT_EQ(heard.note(), "");
}

TEST_F(PipeTest, SaysThatACommandIsStopped) {
  Heard heard;
  const auto stream = open_pipe(file_, {.command = "kill -STOP $$; cat"}, heard.options(20ms));
  std::string text;
  std::jthread reader([&] { text = text_of(*stream); });
  await([&] { return heard.note().ends_with(" is stopped"); }, "a line");
  const std::string note = heard.note();
  ::kill(std::stoi(note.substr(note.find("process ") + 8)), SIGCONT);
  reader.join();
  EXPECT_EQ(text, "one\ntwo\n");
}

TEST_F(PipeTest, EndsAFileWhoseOutputSomethingElseHoldsOpen) {
  Heard heard;
  SourceOptions source = heard.options(20ms);
  source.held = 100ms;
  const auto stream = open_pipe(
      file_, {.command = "cat; setsid sh -c 'echo $$ >&2; exec sleep 1000' & exit 0"}, source);
  EXPECT_EQ(text_of(*stream), "one\ntwo\n");
  const std::string first = heard.lines().front(), last = heard.lines().back();
  EXPECT_NE(first.find(": the command has ended (exit status 0), but process "), std::string::npos)
      << first;
  EXPECT_NE(first.find(" (sleep 1000) holds its output open; after 0.1 s without data that is the "
                       "end of the file"),
            std::string::npos)
      << first;
  EXPECT_NE(
      last.find(" is taken to be at its end: the command has ended (exit status 0), and process "),
      std::string::npos)
      << last;
}

TEST_F(PipeTest, ReadsWhatTheRestOfTheGroupWritesAfterTheCommandHasEnded) {
  Heard heard;
  SourceOptions source = heard.options(20ms);
  source.held = 10s;
  const std::string command =
      "exec 3<&0; (until [ -e go ]; do sleep 0.01; done; cat <&3) & echo first";
  const auto stream = open_pipe(file_, {.command = command, .directory = folder_.path()}, source);
  std::string text;
  std::jthread reader([&] { text = text_of(*stream); });
  await([&] { return heard.note().find("has ended (exit status 0)") != std::string::npos; },
        "a line");
  folder_.write("go", "");
  reader.join();
  EXPECT_EQ(text, "first\none\ntwo\n");
}

TEST_F(PipeTest, AFileThatIsHeldOpenAfterAFailureIsAnError) {
  EXPECT_EQ(failure({.command = "setsid sleep 1000 & exit 3"}, {.held = 50ms}), ": exit status 3");
}

/// A FIFO that nobody writes to.
class FifoTest : public PipeTest {
 protected:
  FifoTest() { EXPECT_EQ(::mkfifo(fifo_.c_str(), 0600), 0); }

  std::string fifo_ = folder_.path() + "/fifo";
  Heard heard_;
};

TEST_F(FifoTest, IsSpokenOfUntilSomebodyWritesToIt) {
  for (const char* command : {"", "sed s/a/A/"}) {
    std::string text;
    Heard heard;
    std::jthread reader([&] {
      const SourceOptions source = heard.options(20ms);
      const auto stream =
          *command == 0 ? open_file(fifo_, source) : open_pipe(fifo_, {.command = command}, source);
      text = text_of(*stream);
    });
    await([&] { return heard.lines().size() >= 2; }, "lines");
    EXPECT_EQ(heard.lines()[0], "waits for data: " + fifo_ + " has given nothing for 0 s");
    std::ofstream(fifo_) << "abc\n";
    reader.join();
    EXPECT_EQ(text, *command == 0 ? "abc\n" : "Abc\n");
    EXPECT_EQ(heard.note(), "");
  }
}

TEST_F(FifoTest, StopsWhenTold) {
  for (const char* command : {"", "cat -"}) {
    Heard heard;
    const SourceOptions source = heard.options(20ms);
    std::string message;
    std::jthread reader([&](const std::stop_token& stop) {
      message = message_of<IoError>([&] {
        text_of(*(*command == 0 ? open_file(fifo_, source, stop)
                                : open_pipe(fifo_, {.command = command}, source, stop)));
      });
    });
    await([&] { return !heard.lines().empty(); }, "a line");
    reader.request_stop();
    reader.join();
    EXPECT_EQ(message, fifo_ + ": stopped");
  }
}

TEST_F(FifoTest, DoesNotKeepTheFileBeforeItWaiting) {
  std::vector<std::string> files = {file_, fifo_};
  PipedFiles piped(
      [&, next = size_t{0}]() mutable -> std::optional<std::string> {
        return next < files.size() ? std::optional(files[next++]) : std::nullopt;
      },
      {.command = "cat -"});
  EXPECT_EQ(text_of(*piped.next()), "one\ntwo\n");
  std::jthread writer([&] { std::ofstream(fifo_) << "three\n"; });
  EXPECT_EQ(text_of(*piped.next()), "three\n");
}

TEST_F(PipeTest, ClosingKillsTheWholeGroup) {
  std::string pid(32, '\0');
  {
    const auto stream = open_pipe(file_, {.command = "sleep 1000 & echo $!; wait"});
    pid.resize(stream->read(pid));
  }
  const auto grandchild = static_cast<pid_t>(std::stol(pid));
  await([&] { return is_gone(grandchild); }, "the end of a grandchild");
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
