// Where workers wait for each other, and what a server knows of them, without a network.
#include "argosy/ps/meetings.h"

#include <gtest/gtest.h>

#include "argosy/ps/ledger.h"

namespace argosy::ps {
namespace {

using namespace std::chrono_literals;

std::vector<std::byte> bytes_of(char c) { return {static_cast<std::byte>(c)}; }

class MeetingsOfTwo : public testing::Test {
 protected:
  MeetingsOfTwo() {
    for (uint32_t i = 0; i < 2; ++i) roster_.came(i, now_);
  }
  void come(uint32_t worker, uint64_t number, std::vector<std::byte> bytes) {
    meetings_.come({.worker = worker, .incarnation = 1, .id = number},
                   verbs::Gather{"job", number, "of a test", std::move(bytes)}, now_);
  }
  /// With worker 0 alive.
  void pass_time(Env::Duration time) {
    for (const Env::Time until = now_ + time; now_ < until; now_ += 500ms) {
      roster_.heard(0, now_);
      roster_.tick(now_);
    }
  }
  static std::string parts_of(const Meetings::Answer& answer) {
    std::string text;
    for (const auto& part : answer_of<verbs::Gather>(answer.bytes).parts)
      for (const std::byte byte : part.bytes) text += static_cast<char>(byte);
    return text;
  }

  Env::Time now_{};
  Roster roster_{2, {.grace = 3s, .away = 60s}, now_};
  Meetings meetings_{roster_};
};

TEST_F(MeetingsOfTwo, AGatherThatIsOverGivesWhatItGave) {
  come(0, 1, bytes_of('a'));
  EXPECT_TRUE(meetings_.settle().answers.empty());
  come(1, 1, bytes_of('b'));
  EXPECT_EQ(meetings_.settle().answers.at(0).askers.size(), 2U);
  come(1, 1, bytes_of('c'));  // a process that was started again
  const auto again = meetings_.settle();
  ASSERT_EQ(again.answers.size(), 1U);
  EXPECT_EQ(parts_of(again.answers[0]), "ab");
}

TEST_F(MeetingsOfTwo, AGatherWaitsForOneThatIsDeadWhileItMayComeBack) {
  roster_.lost(1, now_);
  pass_time(10s);
  EXPECT_EQ(roster_.state(1), Roster::State::dead);
  come(0, 1, bytes_of('a'));
  EXPECT_TRUE(meetings_.settle().answers.empty());
  pass_time(61s);
  EXPECT_EQ(roster_.state(1), Roster::State::gone);
  const auto alone = meetings_.settle();
  ASSERT_EQ(alone.answers.size(), 1U);
  EXPECT_EQ(parts_of(alone.answers[0]), "a");
}

TEST_F(MeetingsOfTwo, AServerThatWasStartedAnewHearsWhichGathersAreOver) {
  come(0, 2, {});
  come(1, 3, bytes_of('b'));
  EXPECT_TRUE(meetings_.settle().answers.empty());
  meetings_.begin_anew({.job = "", .worker = 0, .gathered = {{"job", 4}}});
  come(0, 2, {});
  const auto outcome = meetings_.settle();
  ASSERT_EQ(outcome.answers.size(), 2U);
  for (const Meetings::Answer& answer : outcome.answers) {
    const bool barrier = answer.askers.at(0).worker == 0;
    EXPECT_EQ(answer.error.empty(), barrier);
    if (!barrier) {
      EXPECT_EQ(answer.error.find("gather 3, 'of a test', is over"), 0U) << answer.error;
    }
  }
  meetings_.ask_standing({.worker = 0, .incarnation = 1, .id = 9}, "job");
  const auto standing = meetings_.settle();
  ASSERT_EQ(standing.answers.size(), 1U);
  EXPECT_EQ(answer_of<verbs::Standing>(standing.answers[0].bytes).gather, 4U);
}

TEST(Ledger, KnowsHowFarAWorkerIs) {
  Ledger ledger(2);
  ledger.taken(1, {.pass = 1, .batches = 7, .steps = 7});
  ledger.taken(1, {});  // a pull
  EXPECT_EQ(ledger[1].trained.batches, 7U);
  ledger.taken(1, {.pass = 2, .batches = 1, .steps = 8});
  EXPECT_EQ(ledger[1].trained.steps, 8U);
  ledger.forget_last(1);
  EXPECT_EQ(ledger[1].trained.steps, 7U);
  EXPECT_EQ(ledger[1].received, 2U);

  const ServerMark mark = ServerMark::parse(ledger.mark(5).text());
  Ledger anew(2);
  anew.go_on_from(mark);
  EXPECT_EQ(anew[0].trained, Trained());
  EXPECT_EQ(anew[1].trained, ledger[1].trained);
  EXPECT_EQ(anew[1].trained.steps, 7U);
}

TEST(ServerMark, IsReadAsEarlierReleasesWroteIt) {
  const ServerMark mark = ServerMark::parse("812 1630 1622");
  EXPECT_EQ(mark.step, 812U);
  EXPECT_EQ(mark.applied, (std::vector<uint64_t>{1630, 1622}));
  EXPECT_TRUE(mark.trained.empty());
  EXPECT_THROW(ServerMark::parse("812 1630 x"), DataError);
  EXPECT_THROW(ServerMark::parse("812 1630 trained 1 2"), DataError);
}

/// Two workers that are there, of whom the second is lost when a test says so.
class MeetingsTest : public testing::Test {
 protected:
  MeetingsTest() {
    for (const uint32_t worker : {0, 1}) roster_.came(worker, now_);
  }
  void lose_second() {
    roster_.lost(1, now_);
    for (const Env::Time until = now_ + 4s; now_ < until; now_ += 500ms) roster_.tick(now_);
    ASSERT_EQ(roster_.state(1), Roster::State::dead);
  }
  /// How many are answered by that.
  size_t come(uint32_t worker, uint64_t milestone) {
    meetings_.come(Asker{.worker = worker, .incarnation = worker, .id = milestone},
                   verbs::Milestone{milestone, "a place", {}}, now_);
    size_t answered = 0;
    for (const Meetings::Answer& answer : meetings_.settle().answers)
      answered += answer.askers.size();
    return answered;
  }
  /// "worker/milestone ..."
  std::string missed() const {
    std::string text;
    for (const auto& [worker, milestone] : meetings_.missed().all)
      text += fmt::format("{}/{} ", worker, milestone);
    return text;
  }

  Env::Time now_ = {};
  Roster roster_{2, {.quiet = 1h, .grace = 3s, .away = 10min}, {}};
  Meetings meetings_{roster_};
};

TEST_F(MeetingsTest, AllWhoMetGetOneAnswer) {
  EXPECT_EQ(come(0, 1), 0U);
  EXPECT_EQ(come(1, 1), 2U);
  EXPECT_EQ(missed(), "");
}

TEST_F(MeetingsTest, AMilestoneIsMissedByAWorkerThatIsDeadUntilItComes) {
  EXPECT_EQ(come(0, 1), 0U);
  EXPECT_EQ(come(1, 1), 2U);
  lose_second();
  EXPECT_EQ(come(0, 2), 1U);
  EXPECT_EQ(come(0, 3), 1U);
  EXPECT_EQ(missed(), "1/2 1/3 ");
  roster_.came(1, now_);
  EXPECT_EQ(come(1, 2), 1U) << "it is over";
  EXPECT_EQ(missed(), "1/3 ");
}

TEST_F(MeetingsTest, NothingIsMissedByAWorkerThatHasLeft) {
  roster_.left(1);
  EXPECT_EQ(come(0, 1), 1U);
  EXPECT_EQ(missed(), "");
}

}  // namespace
}  // namespace argosy::ps
