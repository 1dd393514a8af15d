// Whole clusters on a simulated network, each from one seed: what the servers hold at the end is
// exactly what the workers were told is applied, whatever the network did.
#include <gtest/gtest.h>

#include "argosy/ps/test_cluster.h"

namespace argosy::ps {
namespace {

TEST(Cluster, AsyncAppliesEveryPushOnce) {
  Cluster cluster(1, {});
  ASSERT_TRUE(cluster.run()) << cluster.log();
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(cluster.worker(i).acknowledged(), 20);
    EXPECT_EQ(cluster.value(i), 20.0F);
  }
  EXPECT_EQ(cluster.value(kShared), 60.0F);
}

TEST(Cluster, SyncAppliesTheMeanOfEveryStep) {
  const ClusterSpec spec{.servers = 2, .workers = 4, .steps = 12, .sync = true, .faults = {}};
  Cluster cluster(1, spec);
  ASSERT_TRUE(cluster.run()) << cluster.log();
  EXPECT_EQ(cluster.server(0).step(), 12U);
  EXPECT_EQ(cluster.value(kShared), 12.0F);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(cluster.value(i), 12.0F / 4);
}

struct Seeds : testing::TestWithParam<int> {};

TEST_P(Seeds, SumsAreExactAndNobodyHangs) {
  for (int i = 0; i < 10; ++i) expect_exact_sums(static_cast<uint64_t>(GetParam() * 10 + i));
}

INSTANTIATE_TEST_SUITE_P(Cluster, Seeds, testing::Range(0, 30));

}  // namespace
}  // namespace argosy::ps
