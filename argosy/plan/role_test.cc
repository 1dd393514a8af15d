#include "argosy/plan/role.h"

#include <gtest/gtest.h>

#include <map>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"

namespace argosy {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

Getenv environment(Variables variables) {
  return [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

Role role(const Variables& variables) { return role_from_env(environment(variables)); }

/// `base` with some variables changed; an empty value takes one away.
std::string refusal(Variables variables, const Variables& changes) {
  for (const auto& [name, value] : changes) variables[name] = value;
  return message_of<ConfigError>([&] { role(variables); });
}

const Variables kWorker = {{"PADDLE_PSERVERS_IP_PORT_LIST", "127.0.0.1:7000,127.0.0.1:7001"},
                           {"PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:7002,127.0.0.1:7003"},
                           {"PADDLE_TRAINERS_NUM", "2"},
                           {"TRAINING_ROLE", "TRAINER"},
                           {"PADDLE_TRAINER_ID", "1"}};
const Variables kServer = {{"PADDLE_PSERVERS_IP_PORT_LIST", "10.0.0.1:7000,127.0.0.1:7001"},
                           {"PADDLE_TRAINERS_NUM", "4"},
                           {"TRAINING_ROLE", "PSERVER"},
                           {"POD_IP", "127.0.0.1"},
                           {"PADDLE_PORT", "7001"}};

TEST(Role, ProcessWithoutServersIsLocal) {
  const Role local = role({});
  EXPECT_EQ(local.kind, RoleKind::local);
  EXPECT_EQ(local.worker_num, 1);
  EXPECT_TRUE(local.first_worker());
  EXPECT_TRUE(local.is_worker());
  EXPECT_EQ(local.current_endpoint(), std::nullopt);
  EXPECT_EQ(local.text(), "local");
  EXPECT_EQ(role({{"PADDLE_PSERVERS_IP_PORT_LIST", ""}, {"TRAINING_ROLE", "TRAINER"}}).text(),
            "local");
}

const Variables kRank = {{"PADDLE_TRAINER_ID", "1"},
                         {"PADDLE_TRAINERS_NUM", "2"},
                         {"PADDLE_TRAINING_ROLE", "TRAINER"},
                         {"PADDLE_CURRENT_ENDPOINT", "127.0.0.1:6171"},
                         {"PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:6170,127.0.0.1:6171"},
                         {"ARGOSY_LISTEN_FD", "4"},
                         {"PADDLE_JOB_ID", "night"}};

TEST(Role, ARankIsOneOfSeveralWithoutServers) {
  const Role rank = role(kRank);
  EXPECT_EQ(rank.text(), "rank 1 of 2 at 127.0.0.1:6171, job 'night'");
  EXPECT_TRUE(rank.is_rank());
  EXPECT_TRUE(rank.is_worker());
  EXPECT_FALSE(rank.first_worker());
  EXPECT_EQ(rank.listen_fd, 4);
  EXPECT_EQ(rank.job, "night");
}

TEST(Role, ASingleRankIsLocal) {
  EXPECT_EQ(role({{"PADDLE_TRAINER_ID", "0"},
                  {"PADDLE_TRAINERS_NUM", "1"},
                  {"PADDLE_CURRENT_ENDPOINT", "127.0.0.1:6171"},
                  {"PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:6171"}})
                .text(),
            "local");
}

TEST(Role, RanksThatContradictThemselvesAreRefused) {
  EXPECT_EQ(refusal(kRank, {{"PADDLE_CURRENT_ENDPOINT", "127.0.0.1:6170"}}),
            "PADDLE_CURRENT_ENDPOINT is '127.0.0.1:6170', expected 127.0.0.1:6171, which "
            "PADDLE_TRAINER_ENDPOINTS has for rank 1");
  EXPECT_EQ(refusal({}, {{"PADDLE_TRAINERS_NUM", "2"}}),
            "PADDLE_TRAINERS_NUM is '2', expected 1, as neither PADDLE_TRAINER_ENDPOINTS nor "
            "PADDLE_PSERVERS_IP_PORT_LIST is set");
}

TEST(Role, WorkerOfTheLauncher) {
  const Role worker = role(kWorker);
  EXPECT_EQ(worker.text(), "worker 1 of 2 at 127.0.0.1:7003, 2 servers");
  EXPECT_FALSE(worker.first_worker());
  EXPECT_EQ(worker.servers, (std::vector<Endpoint>{{"127.0.0.1", 7000}, {"127.0.0.1", 7001}}));
  EXPECT_EQ(worker.workers, (std::vector<Endpoint>{{"127.0.0.1", 7002}, {"127.0.0.1", 7003}}));
}

TEST(Role, KnowsItsJob) {
  EXPECT_EQ(role(kWorker).job, "default");
  Variables variables = kWorker;
  variables["PADDLE_JOB_ID"] = "night";
  EXPECT_EQ(role(variables).job, "night");
  EXPECT_EQ(role(variables).text(), "worker 1 of 2 at 127.0.0.1:7003, 2 servers, job 'night'");
}

TEST(Role, WorkerNeedsNoWorkersAddresses) {
  Variables variables = kWorker;
  variables.erase("PADDLE_TRAINER_ENDPOINTS");
  variables["PADDLE_TRAINER_ID"] = "0";
  const Role worker = role(variables);
  EXPECT_EQ(worker.text(), "worker 0 of 2, 2 servers");
  EXPECT_TRUE(worker.first_worker());
  EXPECT_EQ(worker.current_endpoint(), std::nullopt);
}

TEST(Role, NumberOfWorkersMayComeFromTheirAddresses) {
  Variables variables = kWorker;
  variables.erase("PADDLE_TRAINERS_NUM");
  EXPECT_EQ(role(variables).worker_num, 2);
}

TEST(Role, ServerFindsItselfByItsAddress) {
  const Role server = role(kServer);
  EXPECT_EQ(server.text(), "server 1 of 2 at 127.0.0.1:7001, 4 workers");
  EXPECT_TRUE(server.is_server());
  EXPECT_FALSE(server.first_worker());
  EXPECT_EQ(server.listen_fd, std::nullopt);
}

TEST(Role, LocalhostIsTheLoopbackAddress) {
  Variables variables = kServer;
  variables["POD_IP"] = "localhost";
  EXPECT_EQ(role(variables).index, 1);
  variables["PADDLE_PSERVERS_IP_PORT_LIST"] = "localhost:7000,localhost:7001";
  variables["POD_IP"] = "127.0.0.1";
  EXPECT_EQ(role(variables).index, 1);
}

TEST(Role, ServerFindsItselfByItsCurrentEndpoint) {
  Variables variables = kServer;
  variables.erase("POD_IP");
  variables["PADDLE_CURRENT_ENDPOINT"] = "10.0.0.1:7000";
  EXPECT_EQ(role(variables).index, 0);
}

TEST(Role, ServerTakesTheSocketItWasHandedDown) {
  Variables variables = kServer;
  variables["ARGOSY_LISTEN_FD"] = "5";
  EXPECT_EQ(role(variables).listen_fd, 5);
  EXPECT_EQ(refusal(kServer, {{"ARGOSY_LISTEN_FD", "x"}}),
            "ARGOSY_LISTEN_FD is 'x', expected a file descriptor's number");
}

TEST(Role, ALauncherSaysHowOftenItHasStartedAProcess) {
  EXPECT_EQ(role(kWorker).restarts, 0);
  EXPECT_EQ(role(kWorker).away, 0);
  for (Variables variables : {kWorker, kServer}) {
    variables["ARGOSY_RESTART"] = "2";
    variables["ARGOSY_AWAY"] = "60";
    EXPECT_EQ(role(variables).restarts, 2);
    EXPECT_EQ(role(variables).away, 60);
    EXPECT_FALSE(role(variables).resume);
    variables["ARGOSY_RESUME"] = "1";
    EXPECT_TRUE(role(variables).resume);
  }
  EXPECT_EQ(refusal(kWorker, {{"ARGOSY_RESUME", "yes"}}),
            "ARGOSY_RESUME is 'yes', expected 1 to go on from journals");
  EXPECT_EQ(refusal(kWorker, {{"ARGOSY_RESTART", "often"}}),
            "ARGOSY_RESTART is 'often', expected how often it restarted");
  EXPECT_EQ(refusal(kServer, {{"ARGOSY_AWAY", "-1"}}),
            "ARGOSY_AWAY is '-1', expected a number of seconds");
}

TEST(Role, FitALineOfTheFirstReleases) {
  Variables variables = {
      {"PADDLE_PSERVER_PORT", "6174"},
      {"PADDLE_PSERVER_IPS", "192.168.1.2,192.168.1.3"},
      {"PADDLE_TRAINERS", "2"},
      {"PADDLE_CURRENT_IP", "192.168.1.3"},
      {"PADDLE_TRAINING_ROLE", "PSERVER"},
      {"PADDLE_TRAINER_ID", "1"},
  };
  EXPECT_EQ(role(variables).text(), "server 1 of 2 at 192.168.1.3:6174, 2 workers");
  variables.erase("PADDLE_TRAINING_ROLE");
  EXPECT_EQ(role(variables).text(), "worker 1 of 2, 2 servers");
}

TEST(Role, ServersOfTheFirstReleasesShareOnePort) {
  const Role worker = role({{"PADDLE_PSERVER_IPS", "10.0.0.1,::1"},
                            {"PADDLE_TRAINERS", "1"},
                            {"PADDLE_TRAINER_ID", "0"}});
  EXPECT_EQ(worker.servers, (std::vector<Endpoint>{{"10.0.0.1", 6174}, {"::1", 6174}}));
}

TEST(Role, NamesOfReleases12And13) {
  const Variables variables = {{"PADDLE_INIT_PORT", "7164"},
                               {"PADDLE_INIT_PSERVERS", "10.0.0.1,10.0.0.2"},
                               {"TRAINERS", "3"},
                               {"PADDLE_INIT_TRAINER_ID", "2"},
                               {"POD_IP", "10.0.0.2"}};
  EXPECT_EQ(role(variables).text(), "worker 2 of 3, 2 servers");
  Variables server = variables;
  server["TRAINING_ROLE"] = "PSERVER";
  EXPECT_EQ(role(server).text(), "server 1 of 2 at 10.0.0.2:7164, 3 workers");
}

TEST(Role, NamesOfRelease15) {
  const Variables variables = {{"PADDLE_PORT", "6175"},
                               {"PADDLE_PSERVERS", "10.0.0.1"},
                               {"PADDLE_TRAINERS_NUM", "1"},
                               {"POD_IP", "10.0.0.1"},
                               {"TRAINING_ROLE", "PSERVER"}};
  EXPECT_EQ(role(variables).text(), "server 0 of 1 at 10.0.0.1:6175, 1 worker");
}

TEST(Role, NewNamesWinOverOldOnes) {
  Variables variables = kWorker;
  variables.insert({{"PADDLE_PSERVER_IPS", "10.9.9.9"},
                    {"PADDLE_TRAINERS", "9"},
                    {"PADDLE_TRAINING_ROLE", "PSERVER"},
                    {"PADDLE_INIT_TRAINER_ID", "8"}});
  EXPECT_EQ(role(variables).text(), role(kWorker).text());
}

TEST(Role, NamesOfReleasesMayBeMixed) {
  EXPECT_EQ(role({{"PADDLE_PSERVER_IPS", "10.0.0.1"},
                  {"PADDLE_TRAINERS_NUM", "2"},
                  {"TRAINING_ROLE", "PSERVER"},
                  {"POD_IP", "10.0.0.1"}})
                .text(),
            "server 0 of 1 at 10.0.0.1:6174, 2 workers");
}

TEST(Role, RefusesWhatIsMissingByName) {
  EXPECT_EQ(refusal(kWorker, {{"TRAINING_ROLE", ""}}),
            "TRAINING_ROLE is not set, expected TRAINER or PSERVER");
  EXPECT_EQ(refusal(kServer, {{"PADDLE_TRAINERS_NUM", ""}}),
            "PADDLE_TRAINERS_NUM is not set, expected the number of workers, at least 1");
  EXPECT_EQ(refusal(kWorker, {{"PADDLE_TRAINER_ID", ""}}),
            "PADDLE_TRAINER_ID is not set, expected a worker's number from 0 to 1");
  EXPECT_EQ(refusal(kServer, {{"POD_IP", ""}}),
            "POD_IP is not set, expected this server's address");
  EXPECT_EQ(refusal(kServer, {{"PADDLE_PORT", ""}}),
            "PADDLE_PORT is not set, expected this server's port");
  EXPECT_EQ(refusal({}, {{"TRAINING_ROLE", "PSERVER"}}),
            "TRAINING_ROLE is 'PSERVER' but PADDLE_PSERVERS_IP_PORT_LIST is not set, expected the "
            "addresses of all servers");
}

TEST(Role, RefusesAnUnknownRole) {
  EXPECT_EQ(refusal(kWorker, {{"TRAINING_ROLE", "WORKER"}}),
            "TRAINING_ROLE is 'WORKER', expected TRAINER or PSERVER");
  EXPECT_EQ(refusal(kWorker, {{"TRAINING_ROLE", "HETER_TRAINER"}}),
            "TRAINING_ROLE is 'HETER_TRAINER', a role that is not there yet, expected TRAINER or "
            "PSERVER");
}

TEST(Role, RefusesNumbersOutOfRange) {
  EXPECT_EQ(refusal(kWorker, {{"PADDLE_TRAINER_ID", "2"}}),
            "PADDLE_TRAINER_ID is '2', expected a worker's number from 0 to 1");
  EXPECT_EQ(refusal(kWorker, {{"PADDLE_TRAINER_ID", "-1"}}),
            "PADDLE_TRAINER_ID is '-1', expected a worker's number from 0 to 1");
  EXPECT_EQ(refusal(kServer, {{"PADDLE_TRAINERS_NUM", "two"}}),
            "PADDLE_TRAINERS_NUM is 'two', expected the number of workers, at least 1");
  EXPECT_EQ(refusal(kServer, {{"PADDLE_TRAINERS_NUM", "99999999999"}}),
            "PADDLE_TRAINERS_NUM is '99999999999', expected the number of workers, at least 1");
  EXPECT_EQ(refusal(kWorker, {{"PADDLE_TRAINERS_NUM", "3"}}),
            "PADDLE_TRAINERS_NUM is '3', expected 2, as PADDLE_TRAINER_ENDPOINTS lists so many");
  EXPECT_EQ(refusal(kServer, {{"PADDLE_PORT", "70010"}}),
            "PADDLE_PORT is '70010', expected a port number from 1 to 65535");
}

TEST(Role, RefusesAServerThatIsNotInTheList) {
  EXPECT_EQ(refusal(kServer, {{"PADDLE_PORT", "7002"}}),
            "POD_IP:PADDLE_PORT is '127.0.0.1:7002', expected one of the servers in "
            "PADDLE_PSERVERS_IP_PORT_LIST: 10.0.0.1:7000,127.0.0.1:7001");
}

TEST(Role, RefusesBadListsByTheNameOfTheirVariable) {
  EXPECT_EQ(refusal({}, {{"PADDLE_PSERVER_IPS", "10.0.0.1:6174"}}),
            "PADDLE_PSERVER_IPS is '10.0.0.1:6174', expected addresses without ports, separated by "
            "commas; PADDLE_PSERVER_PORT is the port of all");
  const std::string list = refusal(kWorker, {{"PADDLE_PSERVERS_IP_PORT_LIST", "127.0.0.1"}});
  EXPECT_TRUE(list.starts_with("PADDLE_PSERVERS_IP_PORT_LIST: ")) << list;
  const std::string twice =
      refusal(kWorker, {{"PADDLE_PSERVERS_IP_PORT_LIST", "127.0.0.1:7000,localhost:7000"}});
  EXPECT_EQ(twice,
            "PADDLE_PSERVERS_IP_PORT_LIST: 127.0.0.1:7000 and localhost:7000 are the same server");
}

TEST(Role, OfAProgramIsChecked) {
  const std::vector<Endpoint> servers = {{"a", 1}, {"b", 1}};
  EXPECT_EQ(user_defined_role(RoleKind::worker, 3, 4, servers).text(), "worker 3 of 4, 2 servers");
  EXPECT_EQ(user_defined_role(RoleKind::server, 1, {{"c", 2}}, servers).text(),
            "server 1 of 2 at b:1, 1 worker");
  EXPECT_EQ(user_defined_role(RoleKind::worker, 0, {{"c", 2}}, servers).text(),
            "worker 0 of 1 at c:2, 2 servers");
  EXPECT_EQ(user_defined_role(RoleKind::local, 0, 1, {}).text(), "local");
  const auto refused = [&](RoleKind kind, int index, int workers, std::vector<Endpoint> list) {
    return message_of<ConfigError>([&] { user_defined_role(kind, index, workers, list); });
  };
  EXPECT_EQ(refused(RoleKind::server, 2, 4, servers), "server index 2 but the last one is 1");
  EXPECT_EQ(refused(RoleKind::worker, -1, 4, servers), "worker index -1 but the last one is 3");
  EXPECT_EQ(refused(RoleKind::worker, 0, 0, servers), "a role needs at least 1 worker, got 0");
  EXPECT_EQ(refused(RoleKind::worker, 0, 1, {}), "workers and servers need servers, got none");
  EXPECT_EQ(refused(RoleKind::local, 0, 1, servers), "a local role has no servers, got a:1,b:1");
  EXPECT_EQ(refused(RoleKind::local, 0, 2, {}), "a local role is its only worker, got 2");
}

TEST(Role, ReadsTheProcessEnvironment) {
  ::setenv("ARGOSY_ROLE_TEST", "here", 1);
  EXPECT_EQ(process_environment()("ARGOSY_ROLE_TEST"), "here");
  ::unsetenv("ARGOSY_ROLE_TEST");
  EXPECT_EQ(process_environment()("ARGOSY_ROLE_TEST"), std::nullopt);
}

TEST(FileShard, IsContiguousAndTheFirstTakeOneMore) {
  using Files = std::vector<std::string>;
  const Files five = {"a", "b", "c", "d", "e"}, two = {"a", "b"};
  EXPECT_EQ(file_shard(five, 0, 2), (Files{"a", "b", "c"}));
  EXPECT_EQ(file_shard(five, 1, 2), (Files{"d", "e"}));
  EXPECT_EQ(file_shard(two, 0, 3), Files{"a"});
  EXPECT_EQ(file_shard(two, 1, 3), Files{"b"});
  EXPECT_EQ(file_shard(two, 2, 3), Files{});
  EXPECT_EQ(file_shard({}, 0, 1), Files{});
}

TEST(FileShard, RefusesAWorkerThatIsNotThere) {
  EXPECT_EQ(message_of<ConfigError>([] { file_shard({}, 2, 2); }),
            "worker 2 of 2 has no share of files");
  EXPECT_EQ(message_of<ConfigError>([] { file_shard({}, 0, 0); }),
            "worker 0 of 0 has no share of files");
}

}  // namespace
}  // namespace argosy
