// Every mode of communicators/: what is committed is applied, once and whole, to the bit. Gradients
// are integers and the rule adds them up, so that a wrong formula, a lost push and a repeated one
// all end in other numbers.
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/modes/test_modes.h"

namespace argosy {
namespace {

class Modes : public testing::TestWithParam<std::string> {
 protected:
  /// Trains, and compares with what the batches add up to.
  void expect_sums(int passes) {
    job_.train(passes, [&](IntegerWorker& first) {
      EXPECT_EQ(integers_of(first.communicator().store()), job_.sum(passes));
    });
  }
  IntegerJob job_{GetParam()};
};

class ModesWithServers : public Modes {};

TEST_P(Modes, ApplyWhatIsCommittedExactlyOnce) { expect_sums(1); }

TEST_P(Modes, GoOnInTheNextPassWhereTheLastEnded) { expect_sums(3); }

/// Batches read ahead but not computed have no effect.
TEST_P(Modes, GoOnBehindAPassThatEndedEarly) {
  job_.left_over = 3;
  expect_sums(2);
}

TEST_P(ModesWithServers, LoseAndRepeatNothingWhenLinksBreak) {
  // More frames than a worker may have to send again at once, or it would never get beyond them.
  job_.break_every = 12;
  expect_sums(1);
}

TEST_P(ModesWithServers, TalkToEachServerAsOftenAsTheySay) {
  const auto look = [&](IntegerWorker& first) {
    const Mode& mode = job_.mode;
    const Strategy& strategy = job_.strategy;
    const auto batches = static_cast<uint64_t>(IntegerJob::kBatches * strategy.threads);
    const auto merged = static_cast<uint64_t>(mode.batches_per_push(strategy));
    const auto ahead = static_cast<uint64_t>(first.communicator().lookahead() * strategy.threads);
    for (uint32_t server = 0; server < IntegerJob::kServers; ++server) {
      const Sent sent = first.sent(server);
      EXPECT_EQ(sent.pushes, mode.empty_pushes + (batches + merged - 1) / merged);
      uint64_t most = batches + ahead;  // one for each batch, and pulls that are ahead of all
      if (mode.exchanges > 1) most += sent.pushes;
      // Rows are asked for anew by the batches that a push finds on their way.
      if (mode.pushes == Mode::Pushes::differences)
        most += sent.pushes * (1 + ahead + static_cast<uint64_t>(strategy.threads));
      EXPECT_LE(sent.exchanges, most);
    }
  };
  job_.train(1, look);
}

TEST_P(ModesWithServers, SayWhatTheyNeed) {
  EXPECT_NE(message_of<ConfigError>([&] {
              make_communicator(job_.plan, job_.strategy);
            }).find(GetParam()),
            std::string::npos);
}

std::vector<std::string> names(const std::function<bool(const Mode&)>& wanted) {
  std::vector<std::string> all;
  for (const Mode& mode : modes())
    if (wanted(mode)) all.push_back(mode.name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Modes, testing::ValuesIn(names([](const Mode&) { return true; })),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(All, ModesWithServers, testing::ValuesIn(names([](const Mode& mode) {
                           return mode.needs == Mode::Needs::servers;
                         })),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace argosy
