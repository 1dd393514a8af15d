// Launchers that meet over loopback, one thread each.
#include "argosy/launch/meeting.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/net/sockets.h"
#include "argosy/world/test_processes.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;

uint16_t free_port() { return port_of(bind_to({"127.0.0.1", 0})); }

/// One launcher and what became of its meeting.
struct Attempt {
  explicit Attempt(Job job)
      : thread([this, job = std::move(job)]() mutable {
          try {
            reserved.emplace(reserve_ports(std::move(job)));
            launchers.emplace(*reserved, [this](const std::string& line) {
              said += line + "\n";
              waits = true;
            });
          } catch (const Error& e) {
            error = e.what();
            reserved.reset();
          }
        }) {}

  std::optional<Reservation> reserved;
  std::optional<Launchers> launchers;
  std::string said, error;
  std::atomic<bool> waits = false;  // it has said that it does
  std::jthread thread;
};

struct Options {
  std::string id = "job";
  std::chrono::milliseconds within = 20s;
  std::string workers = {};
};

/// Two machines of one launch line, which are both this one: 127.0.0.1 and 127.0.0.2.
Job listed(uint16_t port, const std::string& here, const Options& options = {}) {
  const std::string text = std::to_string(port);
  const std::string workers =
      options.workers.empty() ? "127.0.0.1:1,127.0.0.2:1,127.0.0.2:2" : options.workers;
  Job job = make_job({.servers = "127.0.0.1:" + text + ",127.0.0.2:" + text,
                      .workers = workers,
                      .job_id = options.id,
                      .command = {"train"}},
                     {.environment = {{"POD_IP", here}}});
  job.meeting->within = options.within;
  return job;
}

/// A machine that finds the others.
Job offering(uint16_t port, bool head, std::optional<int> rank, int servers, int workers,
             int nodes) {
  Job job = make_job({.server_num = servers,
                      .worker_num = workers,
                      .nnodes = nodes,
                      .rank = rank,
                      .master = "127.0.0.1:" + std::to_string(port),
                      .command = {"train"}},
                     {.hosts = {head ? "127.0.0.1" : "10.9.9.9"}});
  job.meeting->head = head;
  job.meeting->within = 20s;
  return job;
}

std::string names(const Job& job) {
  std::string text;
  for (const Process& process : plan_processes(job)) text += process.name() + " ";
  return text;
}

/// Lets launchers listen to each other until something has happened.
void tend_until(std::initializer_list<Launchers*> all, const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (!condition() && std::chrono::steady_clock::now() < deadline) {
    for (Launchers* one : all) one->tend(std::chrono::steady_clock::now());
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(condition());
}

TEST(Meeting, MachinesOfAListStartTheirParts) {
  const uint16_t port = free_port();
  Attempt second(listed(port, "127.0.0.2"));  // it may come first
  await([&] { return second.waits.load(); }, "a launcher that is alone");
  Attempt first(listed(port, "127.0.0.1"));
  first.thread.join();
  second.thread.join();
  ASSERT_EQ(first.error + second.error, "");
  EXPECT_EQ(names(first.reserved->job), "server 0 worker 0 ");
  EXPECT_EQ(names(second.reserved->job), "server 1 worker 1 worker 2 ");
  EXPECT_EQ(first.reserved->job.members, second.reserved->job.members);
  EXPECT_GE(second.reserved->sockets[1].get(), 0);
}

TEST(Meeting, WhoFindsTheOthersOffersWhatItHas) {
  const uint16_t port = free_port();
  Attempt head(offering(port, true, {}, 1, 1, 3)), last(offering(port, false, 2, 1, 0, 3)),
      middle(offering(port, false, {}, 0, 2, 3));
  for (Attempt* each : {&head, &last, &middle}) each->thread.join();
  ASSERT_EQ(head.error + last.error + middle.error, "");
  EXPECT_EQ(names(head.reserved->job), "server 0 worker 0 ");
  EXPECT_EQ(names(middle.reserved->job), "worker 1 worker 2 ");
  EXPECT_EQ(names(last.reserved->job), "server 1 ");
  for (const Attempt* each : {&head, &last, &middle}) {
    EXPECT_EQ(each->reserved->job.members, head.reserved->job.members);
    EXPECT_EQ(each->reserved->job.http, head.reserved->job.http);
  }
  const Job& job = last.reserved->job;
  EXPECT_EQ(job.members[1].at.host, "127.0.0.1");
  EXPECT_EQ(port_of(last.reserved->sockets[1]), job.members[1].at.port);
  EXPECT_EQ(last.reserved->sockets[0].get(), -1);
}

TEST(Meeting, WhoIsMissingIsNamed) {
  const uint16_t port = free_port();
  Attempt first(listed(port, "127.0.0.1", {.within = 1200ms}));
  first.thread.join();
  EXPECT_EQ(first.error, "127.0.0.2 did not come within 1.2 s");
  EXPECT_EQ(first.said, "waiting for 127.0.0.2\n");
  Attempt second(listed(port, "127.0.0.2", {.within = 300ms}));
  second.thread.join();
  EXPECT_EQ(second.error, "no launcher answers at 127.0.0.1:" + std::to_string(port) +
                              " for 0.3 s: the machine that starts server 0 did not come");
}

TEST(Meeting, OtherJobsAndOtherLaunchLinesAreTurnedAway) {
  const uint16_t port = free_port();
  Attempt first(listed(port, "127.0.0.1"));
  Attempt other(listed(port, "127.0.0.2", {.id = "other"}));
  other.thread.join();
  const std::string at = "the launcher at 127.0.0.1:" + std::to_string(port) + ": ";
  EXPECT_EQ(other.error, at + "it is of job 'other', this is 'job'");
  Attempt fewer(listed(port, "127.0.0.2", {.workers = "127.0.0.1:1,127.0.0.2:1"}));
  fewer.thread.join();
  EXPECT_EQ(fewer.error, at + "it starts 2 processes, expected 3: its launch line differs");
  Attempt moved(listed(port, "127.0.0.2", {.workers = "127.0.0.1:1,127.0.0.2:1,127.0.0.2:3"}));
  moved.thread.join();
  EXPECT_EQ(moved.error, at + "its worker is at 127.0.0.2:3, expected a worker at 127.0.0.2:2: its "
                              "launch line differs");
  Attempt second(listed(port, "127.0.0.2"));
  second.thread.join();
  first.thread.join();
  EXPECT_EQ(first.error + second.error, "");
}

TEST(Meeting, StrangersAreTurnedAway) {
  const uint16_t port = free_port();
  Attempt first(listed(port, "127.0.0.1"));
  for (const char* words : {"GET / HTTP/1.1\r\n\r\n", "launcher x\n", "launcher 1\nrank x\n"}) {
    std::optional<Descriptor> stranger;
    while (!stranger) stranger = connect_within({"127.0.0.1", port}, 1s);
    ::send(stranger->get(), words, std::strlen(words), MSG_NOSIGNAL);
    char byte = 0;
    while (::recv(stranger->get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
      std::this_thread::sleep_for(1ms);
  }
  Attempt second(listed(port, "127.0.0.2"));
  second.thread.join();
  first.thread.join();
  EXPECT_EQ(first.error + second.error, "");
  EXPECT_NE(first.said.find(": it is no launcher\n"), std::string::npos) << first.said;
}

TEST(Meeting, FailuresAreToldToAllAndTheFirstOneCounts) {
  const uint16_t port = free_port();
  Attempt head(offering(port, true, 0, 1, 1, 3)), second(offering(port, false, 1, 0, 1, 3)),
      third(offering(port, false, 2, 0, 1, 3));
  for (Attempt* each : {&head, &second, &third}) each->thread.join();
  ASSERT_EQ(head.error + second.error + third.error, "");
  Launchers &a = *head.launchers, &b = *second.launchers, &c = *third.launchers;
  b.fail("worker 1 failed\n  50 % of it", 7);
  tend_until({&a, &b, &c}, [&] { return a.failure() && c.failure(); });
  EXPECT_EQ(a.failure()->text, "worker 1 failed\n  50 % of it");
  EXPECT_EQ(c.failure()->code, 7);
  EXPECT_FALSE(b.failure());
}

TEST(Meeting, AllAreDoneWhenEachIs) {
  const uint16_t port = free_port();
  Attempt head(offering(port, true, 0, 1, 1, 2)), second(offering(port, false, 1, 0, 1, 2));
  for (Attempt* each : {&head, &second}) each->thread.join();
  ASSERT_EQ(head.error + second.error, "");
  Launchers &a = *head.launchers, &b = *second.launchers;
  b.done();
  tend_until({&a, &b}, [] { return true; });
  EXPECT_FALSE(a.all_done() || b.all_done());
  a.done();
  tend_until({&a, &b}, [&] { return a.all_done() && b.all_done(); });
  head.launchers.reset();  // then they end when they like
  tend_until({&b}, [&] { return b.descriptors().empty(); });
  EXPECT_FALSE(b.failure());
}

/// Time is made up: a launcher that is not tended says nothing.
TEST(Meeting, ASilentLauncherIsNamedToAllAndTakenForDeadLater) {
  const uint16_t port = free_port();
  Attempt head(offering(port, true, 0, 1, 1, 3)), second(offering(port, false, 1, 0, 1, 3)),
      third(offering(port, false, 2, 0, 1, 3));
  for (Attempt* each : {&head, &second, &third}) each->thread.join();
  ASSERT_EQ(head.error + second.error + third.error, "");
  Launchers &a = *head.launchers, &b = *second.launchers, &c = *third.launchers;
  const auto start = Launchers::Clock::now();
  const auto notes_of = [&](Launchers& one, std::chrono::seconds time) {
    std::vector<std::string> notes;
    await(
        [&] {
          one.tend(start + time);
          for (const std::string& note : one.take_notes()) notes.push_back(note);
          return !notes.empty();
        },
        "a note");
    return fmt::format("{}", fmt::join(notes, "; "));
  };
  for (Launchers* one : {&a, &b, &c}) one->tend(start);
  a.tend(start + 4s);
  EXPECT_TRUE(a.take_notes().empty());
  c.tend(start + 4s);
  const std::string silent = notes_of(a, 6s), told = notes_of(c, 6s);
  EXPECT_TRUE(silent.starts_with("nothing is heard of the launcher at 127.0.0.1:")) << silent;
  EXPECT_TRUE(silent.ends_with(" for 6 s; after 20 s it is taken for dead")) << silent;
  EXPECT_EQ(told, "elsewhere: " + silent);
  b.tend(start + 7s);
  EXPECT_TRUE(notes_of(a, 7s).ends_with(" is heard of again"));
  EXPECT_TRUE(notes_of(c, 7s).ends_with(" is heard of again"));
  EXPECT_FALSE(a.failure());
  c.tend(start + 26s);
  await([&] { return a.tend(start + 28s), a.failure().has_value(); }, "a failure");
  EXPECT_TRUE(a.failure()->text.ends_with(" is silent for 20 s")) << a.failure()->text;
  await([&] { return c.tend(start + 28s), c.failure().has_value(); }, "the failure elsewhere");
  EXPECT_EQ(c.failure()->text, a.failure()->text);
}

TEST(Meeting, LauncherThatIsGoneFailsTheJob) {
  const uint16_t port = free_port();
  Attempt head(offering(port, true, 0, 1, 1, 2)), second(offering(port, false, 1, 0, 1, 2));
  for (Attempt* each : {&head, &second}) each->thread.join();
  second.launchers.reset();
  tend_until({&*head.launchers}, [&] { return head.launchers->failure().has_value(); });
  EXPECT_TRUE(head.launchers->failure()->text.ends_with(" is gone"));
}

/// The head has failed and is gone before a slow launcher has even heard that all are there.
TEST(Meeting, LastWordsThatComeWithTheFirstAreHeard) {
  Descriptor listening = bind_to({"127.0.0.1", 0});
  const Endpoint at{"127.0.0.1", port_of(listening)};
  start_listening(listening, at);
  const std::jthread head([&] {
    std::optional<Descriptor> visitor;
    while (!visitor) visitor = accept_one(listening);
    std::string heard;
    while (heard.find("ready\n") == std::string::npos) {
      std::array<char, 4096> block;
      const ssize_t n = ::recv(visitor->get(), block.data(), block.size(), 0);
      if (n > 0) heard.append(block.data(), static_cast<size_t>(n));
      if (n == 0) return;
    }
    const std::string all = "node 1\nmember 0 server 127.0.0.1 1 0 - -\ngo\nfailed 7 the%20cause\n";
    // Held back until the end, so that both arrive together.
    ASSERT_EQ(::send(visitor->get(), all.data(), all.size(), MSG_NOSIGNAL | MSG_MORE),
              static_cast<ssize_t>(all.size()));
  });
  Attempt launcher(offering(at.port, false, 1, 1, 1, 2));
  launcher.thread.join();
  ASSERT_EQ(launcher.error, "");
  launcher.launchers->tend(Launchers::Clock::now());
  ASSERT_TRUE(launcher.launchers->failure());
  EXPECT_EQ(launcher.launchers->failure()->code, 7);
  EXPECT_EQ(launcher.launchers->failure()->text, "the cause");
}

TEST(Meeting, OneMachineAloneIsDoneAtOnce) {
  Reservation reserved = reserve_ports(offering(1, true, 0, 1, 1, 1));
  Launchers alone(reserved, [](const std::string&) {});
  EXPECT_EQ(reserved.job.members[0].at.host, "127.0.0.1");
  EXPECT_FALSE(alone.all_done());
  alone.done();
  EXPECT_TRUE(alone.all_done());
}

}  // namespace
}  // namespace argosy::launch
