#include "argosy/ps/lanes.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "argosy/base/rng.h"
#include "argosy/net/test_links.h"

namespace argosy::ps {
namespace {

using Threads = Lanes::Threads;
using Size = Lanes::Size;

/// Work made of two functions; without one it does nothing.
class Task final : public PartedWork {
 public:
  using Advance = std::function<bool(size_t part, const Resume& resume)>;
  explicit Task(Advance advance, std::function<void()> finish = {})
      : advance_(std::move(advance)), finish_(std::move(finish)) {}

  bool advance(size_t part, const Resume& resume) override {
    return advance_ ? advance_(part, resume) : true;
  }
  void finish() override {
    if (finish_) finish_();
  }

 private:
  Advance advance_;
  std::function<void()> finish_;
};

std::shared_ptr<Task> task(Task::Advance advance, std::function<void()> finish = {}) {
  return std::make_shared<Task>(std::move(advance), std::move(finish));
}

/// What happens, line by line.
class Diary {
 public:
  void write(const std::string& line) {
    log_.change([&] { lines_.push_back(line); });
  }
  /// Waits for so many.
  std::vector<std::string> lines(size_t count) {
    EXPECT_TRUE(log_.wait([&] { return lines_.size() >= count; }));
    std::vector<std::string> copy;
    log_.change([&] { copy = lines_; });
    return copy;
  }

 private:
  Log log_;
  std::vector<std::string> lines_;
};

/// Something that one thread waits for and another lets happen.
class Signal {
 public:
  void give() {
    log_.change([&] { given_ = true; });
  }
  void wait() {
    EXPECT_TRUE(log_.wait([&] { return given_; }));
  }

 private:
  Log log_;
  bool given_ = false;
};

// ---- without threads ----

TEST(InlineLanes, WorkIsDoneByWhoPostsIt) {
  Lanes lanes(3, Threads::none);
  EXPECT_EQ(lanes.parts(), 3U);
  for (const Size size : {Size::small, Size::large}) {
    std::vector<std::string> done;
    lanes.post(7,
               task(
                   [&](size_t part, const Resume&) {
                     done.push_back("part " + std::to_string(part));
                     return true;
                   },
                   [&] { done.emplace_back("finish"); }),
               size);
    EXPECT_EQ(done, (std::vector<std::string>{"part 0", "part 1", "part 2", "finish"}));
  }
}

TEST(InlineLanes, ParkedWorkHoldsUpItsOwnLaneOnly) {
  Lanes lanes(2, Threads::none);
  std::vector<std::string> done;
  std::vector<Resume> parked;
  const auto work = [&](const std::string& name, bool parks) {
    auto waits = std::make_shared<bool>(parks);
    return task(
        [&, name, waits](size_t part, const Resume& resume) {
          if (part == 1 && std::exchange(*waits, false)) {
            parked.push_back(resume);
            return false;
          }
          done.push_back(name + std::to_string(part));
          return true;
        },
        [&, name] { done.push_back(name); });
  };
  lanes.post(0, work("a", true), Size::small);
  lanes.post(0, work("b", false), Size::small);
  lanes.post(1, work("c", false), Size::small);
  EXPECT_EQ(done, (std::vector<std::string>{"a0", "b0", "c0", "c1", "c"}));
  ASSERT_EQ(parked.size(), 1U);
  done.clear();
  parked[0]();
  EXPECT_EQ(done, (std::vector<std::string>{"a1", "a", "b1", "b"}));
}

TEST(InlineLanes, WorkMayParkAgainAndAgain) {
  Lanes lanes(1, Threads::none);
  Resume resume;
  int turns = 0;
  bool finished = false;
  lanes.post(0,
             task(
                 [&](size_t, const Resume& later) {
                   resume = later;
                   return ++turns == 5;
                 },
                 [&] { finished = true; }),
             Size::small);
  for (int i = 1; i < 5; ++i) {
    EXPECT_EQ(turns, i);
    EXPECT_FALSE(finished);
    resume();
  }
  EXPECT_TRUE(finished);
}

TEST(InlineLanes, WorkMayBeResumedBeforeItHasParked) {
  Lanes lanes(2, Threads::none);
  std::array<int, 2> turns{};
  int finished = 0;
  lanes.post(0,
             task(
                 [&](size_t part, const Resume& resume) {
                   if (++turns[part] == 3) return true;
                   resume();  // what it waits for has come in between
                   return false;
                 },
                 [&] { ++finished; }),
             Size::small);
  EXPECT_EQ(turns, (std::array<int, 2>{3, 3}));
  EXPECT_EQ(finished, 1);
}

TEST(InlineLanes, WorkMayPostMoreWorkAsOftenAsItLikes) {
  constexpr int kWorks = 100'000;  // each inside of the one before would need a deep stack
  Lanes lanes(2, Threads::none);
  int posted = 0, finished = 0, depth = 0, deepest = 0;
  std::function<void()> post = [&] {
    if (posted == kWorks) return;
    const int number = posted++;
    lanes.post(static_cast<uint32_t>(number % 3),
               task({},
                    [&, number] {
                      deepest = std::max(deepest, ++depth);
                      EXPECT_EQ(finished++, number);
                      post();
                      --depth;
                    }),
               Size::small);
  };
  post();
  EXPECT_EQ(finished, kWorks);
  EXPECT_LE(deepest, 2) << "once for each part";
}

TEST(InlineLanes, WorkPostedByAnAdvanceComesBehindIt) {
  Lanes lanes(1, Threads::none);
  std::vector<std::string> done;
  const auto note = [&](const std::string& line) {
    return [&done, line] { done.push_back(line); };
  };
  lanes.post(0,
             task(
                 [&](size_t, const Resume&) {
                   lanes.post(0, task({}, note("same lane")), Size::small);
                   lanes.post(1, task({}, note("other lane")), Size::small);
                   done.emplace_back("first");
                   return true;
                 },
                 note("first finished")),
             Size::small);
  EXPECT_EQ(done, (std::vector<std::string>{"first", "first finished", "other lane", "same lane"}));
}

// ---- with threads ----

TEST(Lanes, EachPartHasAThreadOfItsOwn) {
  Lanes lanes(3, Threads::one_per_part);
  std::array<std::thread::id, 3> first;
  const auto poster = std::this_thread::get_id();
  for (int round = 0; round < 20; ++round) {
    std::array<std::thread::id, 3> threads;
    std::array<Signal, 3> begun;
    Signal finished;
    // No part ends before all have begun: they are done at the same time.
    lanes.post(0,
               task(
                   [&](size_t part, const Resume&) {
                     threads[part] = std::this_thread::get_id();
                     begun[part].give();
                     for (Signal& other : begun) other.wait();
                     return true;
                   },
                   [&] { finished.give(); }),
               Size::large);
    finished.wait();
    EXPECT_EQ(std::set(threads.begin(), threads.end()).size(), 3U);
    EXPECT_EQ(std::ranges::count(threads, poster), 0);
    if (round == 0) first = threads;
    EXPECT_EQ(threads, first);
  }
}

TEST(Lanes, SmallWorkIsDoneByTheCallerWhereNobodyIsBusy) {
  Lanes lanes(2, Threads::one_per_part);
  const auto poster = std::this_thread::get_id();
  std::array<std::thread::id, 2> threads;
  Signal begun, go_on, finished;
  const auto note_thread = [&](size_t part, const Resume&) {
    threads[part] = std::this_thread::get_id();
    return true;
  };
  bool done = false;
  lanes.post(0, task(note_thread, [&] { done = true; }), Size::small);
  EXPECT_TRUE(done) << "no thread had to wake up";
  EXPECT_EQ(threads, (std::array{poster, poster}));

  lanes.post(1, task([&](size_t part, const Resume&) {
               if (part == 1) return true;
               begun.give();
               go_on.wait();
               return true;
             }),
             Size::large);
  begun.wait();
  lanes.post(2, task(note_thread, [&] { finished.give(); }), Size::small);
  go_on.give();
  finished.wait();
  EXPECT_NE(threads[0], poster) << "its thread was at something else";
}

/// Posts works of several lanes that park now and then, and looks at the order.
class Traffic {
 public:
  Traffic(size_t lanes, size_t parts, uint64_t seed) : random_(seed), seen_(lanes) {
    for (Seen& seen : seen_) seen.advanced.resize(parts);
    touched_.resize(parts);
  }

  /// The work of this number, from 0, of a lane.
  std::shared_ptr<PartedWork> work(uint32_t lane, int number) {
    const uint64_t draw = random_.bits(static_cast<uint64_t>(number) * 1000 + lane);
    auto left = std::make_shared<std::atomic<size_t>>(touched_.size());
    auto turns = std::make_shared<std::vector<uint64_t>>(touched_.size());
    return task(
        [this, lane, number, draw, left, turns](size_t part, const Resume& resume) {
          uint64_t& turn = (*turns)[part];
          ++touched_[part];  // of this part alone: a race if two threads were in it
          if (turn++ < (draw >> (4 * part)) % 3) {
            park(resume);
            return false;
          }
          --*left;
          std::vector<int>& order = seen_[lane].advanced[part];
          EXPECT_EQ(order.size(), static_cast<size_t>(number));
          order.push_back(number);
          return true;
        },
        [this, lane, number, left] {
          EXPECT_EQ(*left, 0U) << "finished before all its parts";
          log_.change([&] {
            EXPECT_EQ(seen_[lane].finished.size(), static_cast<size_t>(number));
            seen_[lane].finished.push_back(number);
            ++finished_;
          });
        });
  }
  void await(size_t finished) {
    EXPECT_TRUE(log_.wait([&] { return finished_ == finished; }));
  }
  /// Resumes what has parked, in any order, until it is told to stop.
  void resume_all(const std::stop_token& stop) {
    for (uint64_t turn = 0; !stop.stop_requested(); ++turn) {
      Resume resume;
      {
        const Lock lock(mutex_);
        const auto has_parked = [&]() REQUIRES(mutex_) { return !parked_.empty(); };
        if (!changed_.wait(mutex_, stop, has_parked)) return;
        std::swap(parked_[random_.below(turn, parked_.size())], parked_.back());
        resume = parked_.back();
        parked_.pop_back();
      }
      resume();
    }
  }

 private:
  void park(const Resume& resume) {
    {
      const Lock lock(mutex_);
      parked_.push_back(resume);
    }
    changed_.notify_one();
  }

  struct Seen {
    std::vector<std::vector<int>> advanced;  // by part
    std::vector<int> finished;
  };
  const RandomStream random_;
  Log log_;
  std::vector<Seen> seen_;  // by lane
  std::vector<uint64_t> touched_;
  size_t finished_ = 0;
  Mutex mutex_;
  CondVar changed_;
  std::vector<Resume> parked_ GUARDED_BY(mutex_);
};

TEST(Lanes, LanesKeepTheirOrderWhateverParksAndWhoeverResumes) {
  constexpr uint32_t kLanes = 6, kPosters = 3;
  constexpr int kWorks = 300;
  for (const Threads mode : {Threads::one_per_part, Threads::none})
    for (const size_t parts : {1, 3}) {
      constexpr uint64_t kSeed = 4711;
      SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", " << parts << " parts");
      Traffic traffic(kLanes, parts, kSeed);
      Lanes lanes(parts, mode);
      std::vector<std::jthread> threads;
      threads.reserve(2);
      for (int i = 0; i < 2; ++i)
        threads.emplace_back([&](const std::stop_token& stop) { traffic.resume_all(stop); });
      {
        std::vector<std::jthread> posters;
        posters.reserve(kPosters);
        for (uint32_t poster = 0; poster < kPosters; ++poster)
          posters.emplace_back([&, poster] {
            for (int number = 0; number < kWorks; ++number)
              for (uint32_t lane = poster; lane < kLanes; lane += kPosters)
                lanes.post(lane, traffic.work(lane, number),
                           number % 2 == 0 ? Size::small : Size::large);
          });
      }
      traffic.await(kLanes * kWorks);
    }
}

// ---- the end ----

TEST(Lanes, WorkThatWaitsIsDroppedAtTheEnd) {
  for (const Threads mode : {Threads::one_per_part, Threads::none}) {
    std::weak_ptr<PartedWork> parked, behind;
    Signal has_parked;
    bool ran = false;
    {
      Lanes lanes(1, mode);
      auto first = task(
          [&](size_t, const Resume&) {
            has_parked.give();
            return false;
          },
          [&] { ran = true; });
      auto second = task({}, [&] { ran = true; });
      parked = first;
      behind = second;
      lanes.post(0, std::move(first), Size::large);
      lanes.post(0, std::move(second), Size::large);
      has_parked.wait();
    }
    EXPECT_FALSE(ran);
    EXPECT_TRUE(parked.expired());
    EXPECT_TRUE(behind.expired());
  }
}

TEST(Lanes, TheEndWaitsForWhatIsBeingDone) {
  Signal begun;
  bool done = false;  // a race if it were not waited for
  {
    Lanes lanes(2, Threads::one_per_part);
    lanes.post(0, task([&](size_t part, const Resume&) {
                 if (part == 1) return true;
                 begun.give();
                 std::this_thread::yield();
                 done = true;
                 return true;
               }),
               Size::large);
    begun.wait();
  }
  EXPECT_TRUE(done);
}

TEST(Lanes, AResumeAfterTheEndDoesNothing) {
  for (const Threads mode : {Threads::one_per_part, Threads::none}) {
    Resume resume;
    Signal has_parked;
    int turns = 0;
    {
      Lanes lanes(1, mode);
      lanes.post(0, task([&](size_t, const Resume& later) {
                   ++turns;
                   resume = later;
                   has_parked.give();
                   return false;
                 }),
                 Size::large);
      has_parked.wait();
    }
    resume();
    EXPECT_EQ(turns, 1);
  }
}

TEST(Lanes, TheEndMayComeWhileOthersResume) {
  for (const Threads mode : {Threads::one_per_part, Threads::none})
    for (int round = 0; round < 50; ++round) {
      Log log;
      std::vector<Resume> parked;
      std::jthread resumer;
      {
        Lanes lanes(1, mode);
        for (uint32_t lane = 0; lane < 20; ++lane)
          lanes.post(lane, task([&, turns = std::make_shared<int>()](size_t, const Resume& resume) {
                       if (++*turns > 1) return true;
                       log.change([&] { parked.push_back(resume); });
                       return false;
                     }),
                     Size::large);
        ASSERT_TRUE(log.wait([&] { return parked.size() == 20; }));
        resumer = std::jthread([&] {
          for (const Resume& resume : parked) resume();
        });
      }
    }
}

}  // namespace
}  // namespace argosy::ps
