#include "argosy/net/tolerance.h"

#include <gtest/gtest.h>

#include <map>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;

Tolerance from(std::map<std::string, std::string> variables) {
  return tolerance_from_env([&](const std::string& name) { return variables[name]; });
}

TEST(Tolerance, IsWhatTheEnvironmentSays) {
  EXPECT_EQ(from({}).patience, 5s);
  const Tolerance own =
      from({{"ARGOSY_PATIENCE", "0.5"}, {"ARGOSY_QUIET", "3"}, {"ARGOSY_GIVE_UP", "3600"}});
  EXPECT_EQ(own.patience, 500ms);
  EXPECT_EQ(own.quiet, 3s);
  EXPECT_EQ(own.give_up, 1h);
}

TEST(Tolerance, RefusesWhatIsNoTime) {
  for (const char* wrong : {"soon", "5s", "-1", "0", "nan", "1e9"})
    EXPECT_EQ(message_of<ConfigError>([&] {
                from({{"ARGOSY_QUIET", wrong}});
              }),
              std::string("ARGOSY_QUIET=") + wrong + ", expected seconds, from 0.01 on");
}

}  // namespace
}  // namespace argosy
