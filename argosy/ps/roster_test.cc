#include "argosy/ps/roster.h"

#include <gtest/gtest.h>

namespace argosy::ps {
namespace {

using namespace std::chrono_literals;
using State = Roster::State;
using Workers = std::vector<uint32_t>;

/// Two workers that are there at time 0; ticks come twice a second.
class RosterTest : public testing::Test {
 protected:
  explicit RosterTest(const RosterLimits& limits = {}) : roster_(2, limits, {}) {
    for (const uint32_t worker : {0, 1}) roster_.came(worker, now_);
  }
  /// What changed until then. Worker 0 is heard of all the time.
  Roster::Changes pass(Env::Duration time) {
    Roster::Changes all;
    const auto add = [](Workers& to, const Workers& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    for (const Env::Time until = now_ + time; now_ < until;) {
      now_ += 500ms;
      roster_.heard(0, now_);
      const Roster::Changes changes = roster_.tick(now_);
      add(all.silent, changes.silent);
      add(all.absent, changes.absent);
      add(all.dead, changes.dead);
      add(all.gone, changes.gone);
    }
    return all;
  }

  Env::Time now_ = {};
  Roster roster_;
};

TEST_F(RosterTest, AWorkerThatIsSilentIsDeadAndMayComeBack) {
  EXPECT_FALSE(pass(20s).any());
  EXPECT_EQ(pass(1s).silent, Workers{1});
  EXPECT_FALSE(roster_.is_awaited(1));
  EXPECT_FALSE(pass(9min).any());
  EXPECT_EQ(roster_.came(1, now_), State::dead);
  EXPECT_TRUE(roster_.is_awaited(1));
}

TEST_F(RosterTest, AWorkerThatStaysSilentIsGivenUp) {
  pass(21s);
  EXPECT_EQ(pass(10min + 1s).gone, Workers{1});
  EXPECT_FALSE(roster_.may_return(1));
  EXPECT_FALSE(roster_.has_left(1));
}

TEST_F(RosterTest, ALostLinkIsWaitedForAsLongAsASilentOne) {
  roster_.lost(1, now_);
  EXPECT_FALSE(pass(20s).any());
  EXPECT_EQ(pass(1s).dead, Workers{1});
  EXPECT_EQ(roster_.state(1), State::gone) << "nobody starts it again";
}

TEST_F(RosterTest, TimeInWhichTheServerItselfWasStoppedCountsAgainstNobody) {
  pass(15s);
  now_ += 10min;
  EXPECT_FALSE(roster_.tick(now_).any());
  EXPECT_FALSE(pass(5s).any());
  EXPECT_EQ(pass(1s).silent, Workers{1});
}

struct RestartingRosterTest : RosterTest {
  RestartingRosterTest() : RosterTest({.away = 1min}) {}
};

TEST_F(RestartingRosterTest, AProcessThatEndedMayBeStartedAgain) {
  roster_.lost(1, now_);
  EXPECT_EQ(pass(21s).dead, Workers{1});
  EXPECT_EQ(roster_.state(1), State::dead);
  EXPECT_EQ(pass(62s).gone, Workers{1});
}

}  // namespace
}  // namespace argosy::ps
