#include "argosy/launch/engine.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"

namespace argosy::launch {
namespace {

std::string expanded(const std::string& list) {
  return fmt::format("{}", fmt::join(expand_node_list(list), " "));
}

TEST(NodeList, IsExpandedAsSlurmWritesIt) {
  EXPECT_EQ(expanded("alone"), "alone");
  EXPECT_EQ(expanded("a,b"), "a b");
  EXPECT_EQ(expanded("n[1-3,07],m"), "n1 n2 n3 n07 m");
  EXPECT_EQ(expanded("n[08-11]"), "n08 n09 n10 n11");
  EXPECT_EQ(expanded("r[1-2]n[3,5]x"), "r1n3x r1n5x r2n3x r2n5x");
}

TEST(NodeList, NonsenseIsRefused) {
  for (const char* list : {"n[1-", "n[a]", "n[3-1]", "n]1[", ",", "a,", "n[1-999999999]", ""}) {
    const std::string error = message_of<ConfigError>([&] { expand_node_list(list); });
    EXPECT_TRUE(error.find("is no list of nodes") != std::string::npos) << list << ": " << error;
  }
}

Machine slurm(const Variables& changes = {}) {
  Variables environment = {{"SLURM_JOB_ID", "77"},        {"SLURM_STEP_ID", "0"},
                           {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_STEP_NUM_NODES", "2"},
                           {"SLURM_PROCID", "2"},         {"SLURM_NODEID", "1"},
                           {"SLURM_LOCALID", "0"},        {"SLURM_STEP_NODELIST", "n[1-2]"},
                           {"SLURM_JOB_NUM_NODES", "2"}};
  for (const auto& [name, value] : changes) environment[name] = value;
  return {.environment = environment};
}

TEST(ClusterEngine, ReadsSlurmsStep) {
  const auto engine = find_engine(slurm());
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->name, "Slurm");
  EXPECT_EQ(engine->tasks, 4);
  EXPECT_EQ(engine->rank, 2);
  EXPECT_EQ(engine->nodes, 2);
  EXPECT_EQ(engine->meet->host, "n1");
  EXPECT_FALSE(engine->head);
  EXPECT_TRUE(find_engine(slurm({{"SLURM_PROCID", "0"}, {"SLURM_NODEID", "0"}}))->head);
  EXPECT_EQ(engine->meet->port, find_engine(slurm({{"SLURM_PROCID", "1"}}))->meet->port);
  EXPECT_NE(engine->meet->port, find_engine(slurm({{"SLURM_STEP_ID", "1"}}))->meet->port);
}

TEST(ClusterEngine, OneTaskIsNobodyElsesBusiness) {
  EXPECT_FALSE(find_engine({}));
  EXPECT_FALSE(find_engine(slurm({{"SLURM_STEP_NUM_TASKS", "1"}})));
  EXPECT_FALSE(find_engine(slurm({{"SLURM_STEP_ID", ""}, {"SLURM_JOB_NUM_NODES", "1"}})));
}

TEST(ClusterEngine, BatchScriptOnSeveralNodesNeedsSrun) {
  EXPECT_EQ(message_of<ConfigError>([] {
              find_engine(slurm({{"SLURM_STEP_ID", ""}}));
            }),
            "Slurm's job 77 has 2 nodes, but this launcher was not started by srun and runs on one "
            "of them, expected srun fleetrun ...");
}

TEST(ClusterEngine, NumbersThatAreNoneAreNamed) {
  EXPECT_EQ(message_of<ConfigError>([] {
              find_engine(slurm({{"SLURM_PROCID", "x"}}));
            }),
            "SLURM_PROCID is 'x', expected a number");
  EXPECT_EQ(message_of<ConfigError>([] {
              find_engine(slurm({{"SLURM_PROCID", "4"}}));
            }),
            "Slurm says that this is task 4 of 4");
}

TEST(ClusterEngine, OpenMpisTasksMeetOnTheMachineOfMpirun) {
  Machine machine = {.environment = {{"OMPI_COMM_WORLD_SIZE", "4"},
                                     {"OMPI_COMM_WORLD_RANK", "2"},
                                     {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                     {"OMPI_MCA_orte_hnp_uri", "9.0;tcp://10.0.0.1,10.1.0.1:44"}},
                     .hosts = {"10.0.0.2"}};
  const auto engine = find_engine(machine);
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->meet->host, "10.0.0.1");
  EXPECT_EQ(engine->nodes, 2);
  EXPECT_FALSE(engine->head);
  machine.hosts = {"10.0.0.1"};
  EXPECT_TRUE(find_engine(machine)->head);
  machine.environment["OMPI_MCA_orte_num_nodes"] = "2";
  machine.environment["OMPI_MCA_orte_local_daemon_uri"] = "9.1;tcp://10.0.0.2:45";
  EXPECT_TRUE(find_engine(machine)->meet);
  machine.environment["OMPI_MCA_orte_local_daemon_uri"] = "9.2;tcp://10.0.0.2:45";
  EXPECT_FALSE(find_engine(machine)->meet);
  machine.environment.erase("OMPI_MCA_orte_local_daemon_uri");
  machine.environment["OMPI_COMM_WORLD_LOCAL_SIZE"] = "4";
  EXPECT_EQ(find_engine(machine)->meet->host, "127.0.0.1");
}

}  // namespace
}  // namespace argosy::launch
