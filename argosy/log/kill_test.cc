#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "argosy/log/test_log.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

std::string text_for(uint64_t number) {
  return std::string(1 + number * 7919 % 3000, static_cast<char>('a' + number % 26));
}

/// Appends records, and tells of each through a pipe once commit() has returned, until it is
/// killed.
[[noreturn]] void append_for_ever(const LogOptions& options, int told) {
  try {
    const auto env = real_env();
    const auto log = open_log(*env, options, {});
    for (uint64_t number = log->last_durable() + 1;; ++number) {
      const std::string text = text_for(number);
      log->begin_record();
      log->add_frame(1, log_bytes(text));
      log->add_frame(2, log_bytes(text));
      log->commit();
      if (::write(told, &number, sizeof(number)) != sizeof(number)) break;
    }
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
  }
  ::_exit(1);
}

/// The last record that a child told of which was killed after some of them.
uint64_t last_told(const LogOptions& options, uint64_t at_least) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    append_for_ever(options, ends[1]);
  }
  ::close(ends[1]);
  uint64_t number = 0, last = 0, count = 0;
  while (::read(ends[0], &number, sizeof(number)) == sizeof(number)) {
    last = number;
    if (++count == at_least) ::kill(child, SIGKILL);
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself";
  return last;
}

TEST(LogKill, WhatWasCommittedBeforeKill9IsThere) {
  TestFolder folder;
  const LogOptions options{.folder = folder.path() + "/log",
                           .identity = "job",
                           .durability = Durability::journal,
                           .segment_bytes = 50'000};
  for (uint64_t kill = 1; kill <= 20; ++kill) {
    SCOPED_TRACE("kill " + std::to_string(kill));
    const uint64_t told = last_told(options, kill * 13 % 40 + 1);
    const auto env = real_env();  // after the fork: it has threads
    uint64_t next = 1;
    read_log(*env, options.folder, options.identity, [&](LogRecord& record) {
      ASSERT_EQ(record.number(), next);
      ASSERT_EQ(text_of(record), "[1:" + text_for(next) + "][2:" + text_for(next) + "]");
      ++next;
    });
    ASSERT_GT(next, told);
  }
}

}  // namespace
}  // namespace argosy
