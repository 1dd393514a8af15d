#include "argosy/world/child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/world/test_processes.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;

Command shell(const std::string& line, int output = STDOUT_FILENO) {
  return {
      .argv = {"sh", "-c", line},
      .descriptors = {
          {STDIN_FILENO, STDIN_FILENO}, {output, STDOUT_FILENO}, {STDERR_FILENO, STDERR_FILENO}}};
}

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw IoError("no pipe");
    reading = Descriptor(ends[0]);
    writing = Descriptor(ends[1]);
  }
  std::string line() const {
    std::string text;
    for (char byte = 0; ::read(reading.get(), &byte, 1) == 1 && byte != '\n';) text += byte;
    return text;
  }
  Descriptor reading, writing;
};

Ending end_of(Child& child) {
  std::optional<Ending> ending;
  await([&] { return (ending = child.ended()).has_value(); }, "the end of a child");
  return *ending;
}

TEST(Child, SaysHowItEnded) {
  Guard guard;
  const auto run = [&](const std::string& line) {
    Child child(shell(line), guard);
    return end_of(child);
  };
  EXPECT_TRUE(run("true").ok());
  EXPECT_EQ(run("exit 3").text(), "exit status 3");
  EXPECT_EQ(run("kill -9 $$").text(), "killed by signal 9 (Killed)");
  EXPECT_EQ(run("kill -9 $$").exit_code(), 137);
  Child body([] { return 5; }, guard);
  EXPECT_EQ(end_of(body).exit_code(), 5);
}

TEST(Child, SaysWhyItCannotRun) {
  Guard guard;
  Pipe pipe;
  Command command{.argv = {"/no/such program"}, .descriptors = {{pipe.writing.get(), 2}}};
  Child missing(command, guard);
  EXPECT_EQ(end_of(missing).exit_code(), 127);
  EXPECT_EQ(pipe.line(), "cannot run /no/such program: No such file or directory");
  command = {.argv = {"true"}, .directory = "/dev/null", .descriptors = {{pipe.writing.get(), 2}}};
  Child lost(command, guard);
  EXPECT_EQ(end_of(lost).exit_code(), 126);
  EXPECT_EQ(pipe.line(), "cannot enter /dev/null: Not a directory");
}

TEST(Child, HasTheDescriptorsItWasGivenAndNoOther) {
  Guard guard;
  Pipe pipe;
  Command command =
      shell("for n in 0 1 2 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$n ] && printf $n; done",
            pipe.writing.get());
  command.descriptors.push_back({STDERR_FILENO, 5});
  Child child(command, guard);
  pipe.writing.reset();
  EXPECT_EQ(pipe.line(), "0125");
  await([&] { return child.ended().has_value(); }, "the end of a child");
}

TEST(Child, TakesItsGroupWithIt) {
  Guard guard;
  Pipe pipe;
  pid_t grandchild = 0;
  {
    Child child(shell("sleep 1000 & echo $!; wait", pipe.writing.get()), guard);
    grandchild = std::stoi(pipe.line());
    EXPECT_FALSE(child.ended());
  }
  await([&] { return is_gone(grandchild); }, "the end of a grandchild");
  Child child(shell("sleep 1000 & echo $!", pipe.writing.get()), guard);
  grandchild = std::stoi(pipe.line());
  EXPECT_TRUE(end_of(child).ok());
  await([&] { return is_gone(grandchild); }, "the end of what a child has left");
}

TEST(Guard, EndsWhatHasLeftItsGroupWhenItIsDestroyed) {
  Pipe pipe;
  pid_t daemon = 0;
  {
    Guard guard;
    Child child(shell("setsid sh -c 'echo $$; exec sleep 1000' &", pipe.writing.get()), guard);
    daemon = std::stoi(pipe.line());
    EXPECT_TRUE(end_of(child).ok());
    EXPECT_FALSE(is_gone(daemon));
  }
  EXPECT_TRUE(is_gone(daemon));
}

TEST(Guard, ThatSomebodyEndsIsNoReasonToStop) {
  Guard guard;
  const auto guards = children_of(::getpid());
  ASSERT_EQ(guards.size(), 1U);
  ::kill(guards[0].pid, SIGTERM);  // it does not mind
  Child child(shell("exit 3"), guard);
  EXPECT_EQ(end_of(child).exit_code(), 3);
  EXPECT_FALSE(is_gone(guards[0].pid));
  ::kill(guards[0].pid, SIGKILL);
  await([&] { return is_gone(guards[0].pid); }, "the end of a guard");
  for (int i = 0; i < 3; ++i) {
    Child child(shell("exit 3"), guard);
    EXPECT_EQ(end_of(child).exit_code(), 3);
  }
}

/// A process that starts children and is killed, or ends.
class Parent {
 public:
  /// `work` has a pipe to write to.
  explicit Parent(const std::function<void(int)>& work) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::setenv("ARGOSY_CHILD_TEST", marker_.c_str(), 1);
    work(pipe_.writing.get());
    ::pause();
    ::_exit(1);
  }
  ~Parent() {
    kill();
    for (const Found& left : processes_with({variable()})) ::kill(left.pid, SIGKILL);
  }
  Parent(const Parent&) = delete;
  Parent& operator=(const Parent&) = delete;

  std::string next_line() const { return pipe_.line(); }
  pid_t next_number() const { return std::stoi(next_line()); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  void wait() {
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  /// The guard is among them.
  void expect_nobody_left() const {
    await([&] { return processes_with({variable()}).empty(); },
          "the end of all with " + variable());
  }

 private:
  static std::string new_marker() {
    static int count = 0;
    return std::to_string(::getpid()) + "." + std::to_string(++count);
  }
  std::string variable() const { return "ARGOSY_CHILD_TEST=" + marker_; }

  const std::string marker_ = new_marker();
  Pipe pipe_;
  pid_t pid_;
};

TEST(Child, EndsWithAParentThatIsKilled) {
  Parent parent([](int pipe) {
    static Guard guard;
    static Child plain(shell("echo $$; sleep 1000 & cat /dev/zero | sleep 1000", pipe), guard);
    static Child without_mark(shell("env -i sh -c 'echo $$; sleep 1000; true'", pipe), guard);
    static Child daemon(shell("setsid sh -c 'echo $$; exec sleep 1000' & wait", pipe), guard);
  });
  const std::array children = {parent.next_number(), parent.next_number(), parent.next_number()};
  for (const pid_t child : children) EXPECT_FALSE(is_gone(child));
  parent.kill();
  for (const pid_t child : children)
    await([&] { return is_gone(child); }, "the end of " + std::to_string(child), 10s);
  parent.expect_nobody_left();
}

TEST(Child, EndsWithItsProcessAndNotWithTheThreadThatStartedIt) {
  Parent parent([](int pipe) {
    static std::unique_ptr<Child> child;
    std::jthread([&] {
      child = std::make_unique<Child>(shell("echo $$; exec sleep 1000", pipe),
                                      Guard::of_this_process());
    }).join();
    static Child other(shell("echo $$; exec sleep 1000", pipe), Guard::of_this_process());
  });
  const pid_t child = parent.next_number();
  parent.next_number();
  EXPECT_FALSE(is_gone(child));
  parent.kill();
  parent.expect_nobody_left();
}

TEST(Child, EndsThoughAForkedProcessLivesOn) {
  Parent parent([](int pipe) {
    static Child child(shell("echo child $$; exec sleep 1000", pipe), Guard::of_this_process());
    const pid_t copy = ::fork();
    if (copy > 0) return;
    // It has a guard of its own when it needs one.
    static Child own(shell("echo own $$; exec sleep 1000", pipe), Guard::of_this_process());
    ::dprintf(pipe, "copy %d\n", ::getpid());
  });
  std::map<std::string, pid_t> numbers;
  while (numbers.size() < 3) {
    const std::string line = parent.next_line();
    const size_t blank = line.find(' ');
    numbers[line.substr(0, blank)] = std::stoi(line.substr(blank + 1));
  }
  parent.kill();
  await([&] { return is_gone(numbers["child"]); }, "the end of the parent's child", 10s);
  EXPECT_FALSE(is_gone(numbers["own"]));
  ::kill(numbers["copy"], SIGKILL);
  parent.expect_nobody_left();
}

TEST(Child, IsNotLeftByAParentThatEnds) {
  Pipe start;
  Parent parent([go = start.reading.get()](int pipe) {
    static Child child(shell("setsid sh -c 'echo $$; exec sleep 1000' & wait", pipe),
                       Guard::of_this_process());
    char byte = 0;
    if (::read(go, &byte, 1) == 1) std::exit(0);
  });
  parent.next_number();
  ASSERT_EQ(::write(start.writing.get(), "", 1), 1);
  parent.wait();
  parent.expect_nobody_left();
}

}  // namespace
}  // namespace argosy
