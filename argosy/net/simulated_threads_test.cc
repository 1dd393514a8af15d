#include "argosy/world/simulated_threads.h"

#include <gtest/gtest.h>

#include <set>

#include "argosy/base/error.h"
#include "argosy/base/mutex.h"
#include "argosy/base/test_support.h"
#include "argosy/base/thread.h"
#include "argosy/base/thread_team.h"
#include "argosy/net/simulation.h"
#include "argosy/net/test_links.h"

namespace argosy {
namespace {

constexpr Env::Duration kLimit = 1h;

/// Numbers from one thread to another.
class Channel {
 public:
  void put(int number) {
    {
      const Lock lock(mutex_);
      numbers_.push_back(number);
    }
    changed_.notify_one();
  }
  int take() {
    const Lock lock(mutex_);
    changed_.wait(mutex_, [&]() REQUIRES(mutex_) { return !numbers_.empty(); });
    const int first = numbers_.front();
    numbers_.erase(numbers_.begin());
    return first;
  }
  std::optional<int> take_until(Env::Time deadline) {
    const Lock lock(mutex_);
    const bool came =
        changed_.wait_until(mutex_, deadline, [&]() REQUIRES(mutex_) { return !numbers_.empty(); });
    if (!came) return std::nullopt;
    const int first = numbers_.front();
    numbers_.erase(numbers_.begin());
    return first;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<int> numbers_ GUARDED_BY(mutex_);
};

TEST(SimulatedThreads, SleepInSimulatedTime) {
  Simulation simulation(1);
  const Env::Time start = simulation.env().now();
  std::string order;
  for (const int hours : {3, 1, 2}) {
    simulation.start_thread("", "sleeper", [&order, hours] {
      sleep_for(1h * hours);
      order += std::to_string(hours);
    });
  }
  simulation.run(4h);
  EXPECT_EQ(order, "123");
  EXPECT_EQ(simulation.env().now() - start, 3h);
}

TEST(SimulatedThreads, WaitForEachOther) {
  Simulation simulation(1);
  Channel there, back;
  int sum = 0;
  simulation.start_thread("", "asks", [&] {
    for (int i = 0; i < 100; ++i) {
      there.put(i);
      sum += back.take();
    }
  });
  simulation.start_thread("", "answers", [&] {
    for (int i = 0; i < 100; ++i) back.put(2 * there.take());
  });
  simulation.run(kLimit);
  EXPECT_EQ(sum, 9900);
}

TEST(SimulatedThreads, EventsWakeThreadsAndDeadlinesPass) {
  Simulation simulation(1);
  Env& env = simulation.env();
  Channel channel;
  env.schedule(10s, [&] { channel.put(1); });
  env.schedule(30s, [&] { channel.put(2); });
  std::vector<std::optional<int>> seen;
  simulation.start_thread("", "looks", [&] {
    const Env::Time start = env.now();
    seen.push_back(channel.take_until(start + 20s));
    EXPECT_EQ(env.now() - start, 10s);
    seen.push_back(channel.take_until(start + 20s));
    EXPECT_EQ(env.now() - start, 20s);
    seen.push_back(channel.take_until(start + 40s));
    EXPECT_EQ(env.now() - start, 30s);
  });
  simulation.run(kLimit);
  EXPECT_EQ(seen, (std::vector<std::optional<int>>{1, std::nullopt, 2}));
}

TEST(SimulatedThreads, StartThreadsOfTheirOwnAndStopThem) {
  Simulation simulation(1);
  Env& env = simulation.env();
  std::string order;
  simulation.start_thread("", "parent", [&] {
    Mutex mutex;
    CondVar changed;
    Thread child("child", [&](const std::stop_token& stop) {
      const Lock lock(mutex);
      EXPECT_FALSE(changed.wait(mutex, stop, [] { return false; }));
      order += "stopped ";
    });
    const Thread timed("timed", [&](const std::stop_token& stop) {
      const Env::Time start = env.now();
      const Lock lock(mutex);
      EXPECT_FALSE(changed.wait_for(mutex, stop, 5s, [] { return false; }));
      EXPECT_EQ(env.now() - start, 5s);
      order += "late ";
    });
    sleep_for(10s);
    child.request_stop();
    child.join();
    order += "joined";
  });
  simulation.run(kLimit);
  EXPECT_EQ(order, "late stopped joined");
}

/// Threads, timers and a link: who does what, in which order and when.
std::string history(uint64_t seed) {
  Simulation simulation(seed, {.drop = 0.1, .duplicate = 0.1, .reorder = 0.2});
  std::string trace;
  const auto note = [&](const std::string& text) {
    trace += text + "@" + std::to_string(simulation.env().now().time_since_epoch().count()) + " ";
  };
  Log log;
  std::shared_ptr<Side> server, client;
  simulation.host("server").listen({"server", 1}, [&](auto link) {
    server = std::make_shared<Side>(log, link, echo);
    return server;
  });
  simulation.host("client").connect({"server", 1}, 1s, [&](auto link, const auto&) {
    client = std::make_shared<Side>(
        log, link, [&](Link&, InFrame& frame) { note("frame" + std::to_string(frame.id)); });
    return client;
  });
  EXPECT_TRUE(simulation.run_until([&] { return client != nullptr; }, kLimit));
  Channel channel;
  Mutex mutex;
  for (int thread = 0; thread < 4; ++thread) {
    simulation.start_thread("client", "thread", [&, thread] {
      for (int i = 0; i < 5; ++i) {
        {
          const Lock lock(mutex);
          note("thread" + std::to_string(thread));
          client->link->send(text_frame(FrameKind::exchange, static_cast<uint64_t>(thread), "x"));
        }
        simulation.host_env("client").schedule(1ms * thread, [&, thread] { channel.put(thread); });
        note("took" + std::to_string(channel.take()));
      }
    });
  }
  simulation.run(kLimit);
  simulation.run_until([] { return false; }, kLimit);
  return trace;
}

TEST(SimulatedThreads, TheSameSeedGivesTheSameHistory) {
  std::set<std::string> all;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::string first = history(seed);
    ASSERT_EQ(first, history(seed)) << "seed " << seed;
    all.insert(first);
  }
  EXPECT_EQ(all.size(), 100U);
}

/// The first seed for which the program fails, with what it throws; both empty: none does.
struct Found {
  std::optional<uint64_t> seed;
  std::string error;
};
Found find_failure(const std::function<void(Simulation&)>& program) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Simulation simulation(seed);
    try {
      program(simulation);
    } catch (const Error& e) {
      return {seed, e.what()};
    }
  }
  return {};
}

std::string failure_of(uint64_t seed, const std::function<void(Simulation&)>& program) {
  Simulation simulation(seed);
  return message_of<Error>([&] { program(simulation); });
}

TEST(SimulatedThreads, FindTwoLocksTakenInBothOrders) {
  const auto program = [](Simulation& simulation) {
    Mutex a, b;
    simulation.start_thread("", "first", [&] {
      const Lock one(a);
      const Lock other(b);
    });
    simulation.start_thread("", "second", [&] {
      const Lock one(b);
      const Lock other(a);
    });
    simulation.run(kLimit);
  };
  const Found found = find_failure(program);
  ASSERT_TRUE(found.seed);
  EXPECT_EQ(found.error,
            "the simulation stands still: first waits for a mutex that second has locked; second "
            "waits for a mutex that first has locked");
  EXPECT_EQ(failure_of(*found.seed, program), found.error);
}

TEST(SimulatedThreads, FindAWakeUpThatIsLost) {
  const auto program = [](Simulation& simulation) {
    Mutex mutex;
    CondVar changed;
    bool ready = false;
    int line = 0;
    simulation.start_thread("", "waits", [&] {
      if (ready) return;  // looked at without the lock
      const Lock lock(mutex);
      line = __LINE__ + 1;
      changed.wait(mutex);
    });
    simulation.start_thread("", "tells", [&] {
      const Lock lock(mutex);
      ready = true;
      changed.notify_all();
    });
    try {
      simulation.run(kLimit);
    } catch (const Error& e) {
      EXPECT_EQ(
          std::string(e.what()),
          "the simulation stands still: waits waits at argosy/net/simulated_threads_test.cc:" +
              std::to_string(line));
      throw;
    }
  };
  const Found found = find_failure(program);
  ASSERT_TRUE(found.seed);
  EXPECT_EQ(failure_of(*found.seed, program), found.error);
}

/// The notifier does not take the lock: it may come between the look and the wait.
TEST(SimulatedThreads, FindANotifyBetweenTheLookAndTheWait) {
  const auto program = [](Simulation& simulation) {
    Mutex mutex;
    CondVar changed;
    bool ready = false;
    simulation.start_thread("", "waits", [&] {
      const Lock lock(mutex);
      while (!ready) changed.wait(mutex);
    });
    simulation.start_thread("", "tells", [&] {
      ready = true;
      changed.notify_all();
    });
    simulation.run(kLimit);
  };
  const Found found = find_failure(program);
  ASSERT_TRUE(found.seed);
  EXPECT_EQ(failure_of(*found.seed, program), found.error);
}

TEST(SimulatedThreads, NothingIsFoundWhereNothingIsWrong) {
  const Found found = find_failure([](Simulation& simulation) {
    Mutex mutex;
    CondVar changed;
    bool ready = false;
    for (int i = 0; i < 2; ++i) {
      simulation.start_thread("", "waits", [&] {
        const Lock lock(mutex);
        while (!ready) changed.wait(mutex);
      });
    }
    simulation.start_thread("", "tells", [&] {
      {
        const Lock lock(mutex);
        ready = true;
      }
      changed.notify_all();
    });
    simulation.run(kLimit);
  });
  EXPECT_FALSE(found.seed) << found.error;
}

TEST(SimulatedThreads, WhoWaitsForEverIsNamed) {
  Simulation simulation(1, {}, {.yield = 0, .stall = 0});
  Mutex mutex;
  const auto lock_both = [](Mutex& one, Mutex& other) {
    const Lock first(one);
    const Lock second(other);
  };
  simulation.start_thread("", "itself", [&] { lock_both(mutex, mutex); });
  simulation.start_thread("", "parent", [&] {
    const Thread child("child", [] {
      Channel nobody;
      nobody.take();
    });
  });
  const std::string error = message_of<Error>([&] { simulation.run(kLimit); });
  EXPECT_NE(error.find("itself waits for a mutex that itself has locked"), std::string::npos)
      << error;
  EXPECT_NE(error.find("parent waits for the end of child"), std::string::npos) << error;
  EXPECT_NE(error.find("child waits at argosy/net/simulated_threads_test.cc:"), std::string::npos)
      << error;
}

TEST(SimulatedThreads, WhoWaitsForTooLongIsNamed) {
  Simulation simulation(1);
  const std::function<void()> again = [&] { simulation.env().schedule(1s, again); };
  again();
  simulation.start_thread("", "patient", [] { sleep_for(2h); });
  const std::string error = message_of<Error>([&] { simulation.run(1h); });
  EXPECT_EQ(
      error.rfind("after 3600 s of simulated time patient waits at argosy/base/thread.cc:", 0), 0U)
      << error;
}

TEST(SimulatedThreads, WhatAThreadThrowsEndsTheRunAndTheOthers) {
  Simulation simulation(1);
  bool unwound = false;
  simulation.start_thread("", "waits", [&] {
    const std::shared_ptr<void> last(nullptr, [&](void*) { unwound = true; });
    Channel nobody;
    nobody.take();
  });
  simulation.start_thread("", "fails", [] {
    sleep_for(1s);
    fail<DataError>("wrong bytes");
  });
  EXPECT_EQ(message_of<DataError>([&] { simulation.run(kLimit); }), "wrong bytes");
  EXPECT_TRUE(unwound);
  simulation.start_thread("", "later", [] { sleep_for(1s); });
  simulation.run(kLimit);
}

TEST(SimulatedThreads, AreUnwoundWithTheSimulation) {
  Channel channel;
  int unwound = 0;
  {
    Simulation simulation(1);
    simulation.start_thread("", "parent", [&] {
      const std::shared_ptr<void> last(nullptr, [&](void*) { ++unwound; });
      const Thread child("child", [&] {
        const std::shared_ptr<void> last_of_child(nullptr, [&](void*) { ++unwound; });
        channel.take();
      });
      channel.take();
    });
    simulation.env().schedule(1h, [] {});
    EXPECT_FALSE(simulation.run_until([] { return false; }, 1s));
    simulation.start_thread("", "never runs", [&] { unwound = 100; });
  }
  EXPECT_EQ(unwound, 2);
}

TEST(SimulatedThreads, ACrashTakesTheThreadsOfAHost) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Simulation simulation(seed);
    Env& env = simulation.host_env("a");
    Channel channel;
    Mutex mutex;
    int unwound = 0;
    bool late = false;
    simulation.start_thread("a", "main", [&] {
      // A crashed process has no effects any more, its destructors included.
      const std::shared_ptr<void> last(nullptr, [&](void*) {
        ++unwound;
        env.schedule(1s, [&] { late = true; });
        EXPECT_EQ(message_of<IoError>([&] { env.create_file("after"); }),
                  "create after: a has crashed");
      });
      const Thread child("child", [&] {
        while (true) {
          const Lock lock(mutex);
          sleep_for(7us);
        }
      });
      const Lock lock(mutex);
      channel.take();
    });
    simulation.start_thread("b", "main", [&] {
      sleep_for(1ms);
      simulation.crash("a");
      EXPECT_EQ(unwound, 1);
      const Lock lock(mutex);  // its last owner is gone
      sleep_for(10s);
    });
    simulation.run(kLimit);
    EXPECT_FALSE(late);
    simulation.start_thread("a", "main again", [&] { channel.put(1); });
    simulation.run(kLimit);
  }
}

TEST(SimulatedThreads, HelpersEndBeforeWhoStartedThem) {
  int helped = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Simulation simulation(seed);
    std::string order;
    simulation.start_thread("a", "main", [&] {
      ThreadTeam team(3);
      const std::string on_stack = "job ";
      const std::shared_ptr<void> last(nullptr, [&](void*) { order += "main "; });
      team.run(3, [&](size_t, size_t thread) {
        const std::shared_ptr<void> end(nullptr, [&](void*) {
          if (thread > 0) order += on_stack;
        });
        sleep_for(thread > 0 ? 1h : 0s);
      });
    });
    simulation.env().schedule(1min, [&] { simulation.crash("a"); });
    simulation.run(kLimit);
    EXPECT_EQ(order.find("main "), order.size() - 5) << order;
    helped += order.size() > 5 ? 1 : 0;
  }
  EXPECT_GT(helped, 5);
}

TEST(SimulatedThreads, AThreadMayCrashItsOwnHost) {
  Simulation simulation(1);
  bool unwound = false, after = false;
  simulation.start_thread("a", "main", [&] {
    const std::shared_ptr<void> last(nullptr, [&](void*) { unwound = true; });
    simulation.crash("a");
    after = true;
  });
  simulation.run(kLimit);
  EXPECT_TRUE(unwound);
  EXPECT_FALSE(after);
}

TEST(SimulatedThreads, AnEventWaitsForAMutexThatAThreadHas) {
  Simulation simulation(1);
  Mutex mutex;
  std::string order;
  simulation.start_thread("", "thread", [&] {
    const Lock lock(mutex);
    sleep_for(10s);
    order += "thread ";
  });
  simulation.env().schedule(1s, [&] {
    const Lock lock(mutex);
    order += "event ";
  });
  simulation.env().schedule(2s, [&] { order += "behind "; });
  EXPECT_FALSE(simulation.run_until([] { return false; }, kLimit));
  EXPECT_EQ(order, "thread event behind ");
}

TEST(SimulatedThreads, TheMainThreadMayWaitToo) {
  Simulation simulation(1);
  const Env::Time start = simulation.env().now();
  Channel there, back;
  const Thread thread("thread", [&] { back.put(there.take() + 1); });
  simulation.env().schedule(1min, [&] { there.put(1); });
  EXPECT_EQ(back.take(), 2);
  EXPECT_EQ(simulation.env().now() - start, 1min);
  EXPECT_EQ(back.take_until(start + 2min), std::nullopt);
  EXPECT_EQ(simulation.env().now() - start, 2min);
  EXPECT_EQ(message_of<Error>([&] {
              back.take();
            }).rfind("the simulation stands still: main waits at argosy/net/", 0),
            0U);
}

TEST(SimulatedThreads, TheMainThreadHearsWhatThreadsAndEventsThrowWhileItWaits) {
  Simulation simulation(1);
  const std::function<void()> again = [&] { simulation.env().schedule(1s, again); };
  again();
  Channel nobody;
  simulation.start_thread("", "fails", [] {
    sleep_for(1min);
    fail<DataError>("thread");
  });
  EXPECT_EQ(message_of<DataError>([&] { nobody.take(); }), "thread");
  simulation.env().schedule(1min, [] { fail<DataError>("event"); });
  EXPECT_EQ(message_of<DataError>([&] { nobody.take(); }), "event");
  simulation.start_thread("a", "was lost", [&] {
    try {
      nobody.take();
    } catch (...) {
      fail<DataError>("after its end");
    }
  });
  simulation.env().schedule(1min, [&] { simulation.crash("a"); });
  simulation.run(kLimit);
}

TEST(SimulatedThreads, HelpersThatWaitForWorkAreNotWaitedFor) {
  Simulation simulation(1);
  ThreadTeam team(3);
  int sum = 0;
  simulation.start_thread("", "asks", [&] {
    Mutex mutex;
    team.run(10, [&](size_t job, size_t) {
      const Lock lock(mutex);
      sum += static_cast<int>(job);
    });
  });
  simulation.run(kLimit);
  EXPECT_EQ(sum, 45);
  EXPECT_FALSE(simulation.run_until([] { return false; }, kLimit));
}

TEST(SimulatedThreads, RunsAreNotNested) {
  Simulation simulation(1);
  simulation.start_thread("", "thread", [&] { simulation.run(kLimit); });
  EXPECT_EQ(message_of<ConfigError>([&] { simulation.run(kLimit); }),
            "a simulation cannot be run by an event or a thread of its own");
}

}  // namespace
}  // namespace argosy
