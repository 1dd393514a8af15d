#include "argosy/plan/ranks.h"

#include <gtest/gtest.h>

#include <map>

#include "argosy/base/test_support.h"
#include "argosy/net/sockets.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

using Variables = std::map<std::string, std::string>;

Getenv from(const Variables& variables) {
  return [variables](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(std::string(name));
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(GroupFromEnv, IsWhatFleetrunTellsARank) {
  const auto options =
      group_from_env(from({{"PADDLE_TRAINER_ENDPOINTS", "10.0.0.1:6070,10.0.0.2:6070"},
                           {"PADDLE_TRAINER_ID", "1"},
                           {"PADDLE_TRAINERS_NUM", "2"},
                           {"ARGOSY_LISTEN_FD", "3"},
                           {"PADDLE_JOB_ID", "night"}}));
  ASSERT_TRUE(options);
  EXPECT_EQ(options->rank, 1);
  EXPECT_EQ(options->ranks, (std::vector<Endpoint>{{"10.0.0.1", 6070}, {"10.0.0.2", 6070}}));
  EXPECT_EQ(options->listen_fd, 3);
  EXPECT_EQ(options->job, "night");
}

TEST(GroupFromEnv, IsNothingWithoutRanksOrWithServers) {
  EXPECT_FALSE(group_from_env(from({})));
  EXPECT_FALSE(group_from_env(from({{"PADDLE_TRAINER_ENDPOINTS", "10.0.0.1:6070"},
                                    {"PADDLE_PSERVERS_IP_PORT_LIST", "10.0.0.1:6170"}})));
}

TEST(GroupFromEnv, SaysWhereRanksMeetThatAreNotListed) {
  Variables variables = {{"PADDLE_TRAINER_ID", "1"},
                         {"PADDLE_TRAINERS_NUM", "3"},
                         {"PADDLE_GLOO_RENDEZVOUS", "2"},
                         {"PADDLE_GLOO_FS_PATH", "/shared/meet"},
                         {"POD_IP", "10.0.0.2"}};
  const auto files = group_from_env(from(variables));
  ASSERT_TRUE(files && files->meeting);
  EXPECT_EQ(files->meeting->ranks, 3);
  EXPECT_EQ(files->meeting->folder, "/shared/meet");
  EXPECT_EQ(files->meeting->host, "10.0.0.2");
  const Role role = role_from_env(from(variables));
  EXPECT_EQ(role.text(), "rank 1 of 3");
  EXPECT_EQ(group_options(role).meeting->folder, "/shared/meet");

  variables["PADDLE_GLOO_RENDEZVOUS"] = "3";
  const auto refusal = [&] {
    return message_of<ConfigError>([&] { group_from_env(from(variables)); });
  };
  EXPECT_EQ(refusal(),
            "PADDLE_GLOO_HTTP_ENDPOINT is not set, expected host:port, where rank 0 serves");
  variables["PADDLE_GLOO_HTTP_ENDPOINT"] = "10.0.0.1:8080";
  EXPECT_EQ(group_from_env(from(variables))->meeting->http, (Endpoint{"10.0.0.1", 8080}));
  variables["PADDLE_GLOO_RENDEZVOUS"] = "1";
  EXPECT_EQ(refusal(),
            "PADDLE_GLOO_RENDEZVOUS is '1', expected 2 (files in PADDLE_GLOO_FS_PATH) or 3 "
            "(PADDLE_GLOO_HTTP_ENDPOINT)");
  variables["PADDLE_TRAINERS_NUM"] = "1";
  variables["PADDLE_TRAINER_ID"] = "0";
  EXPECT_FALSE(group_from_env(from(variables)));
}

TEST(GroupFromEnv, HasTheBackendAndTheCard) {
  Variables variables = {{"PADDLE_TRAINER_ENDPOINTS", "a:1,b:1"},
                         {"PADDLE_TRAINER_ID", "0"},
                         {"PADDLE_DISTRI_BACKEND", "gloo"},
                         {"FLAGS_selected_gpus", "3,4"}};
  EXPECT_EQ(group_from_env(from(variables))->backend, "auto");
  variables["ARGOSY_BACKEND"] = "mpi";
  const comm::GroupOptions options = group_options(role_from_env(from(variables)));
  EXPECT_EQ(options.backend, "mpi");
  EXPECT_EQ(options.device, "3");
  variables["ARGOSY_BACKEND"] = "gloo";
  EXPECT_EQ(message_of<ConfigError>([&] { group_from_env(from(variables)); }),
            "ARGOSY_BACKEND is 'gloo', expected auto, shm, tcp, hierarchical, mpi, nccl");
}

TEST(GroupFromEnv, NamesTheVariableThatIsWrong) {
  EXPECT_EQ(
      message_of<ConfigError>([] {
        group_from_env(from({{"PADDLE_TRAINER_ENDPOINTS", "a:1,b:1"}, {"PADDLE_TRAINER_ID", "2"}}));
      }),
      "PADDLE_TRAINER_ID is '2', expected a worker's number from 0 to 1");
  EXPECT_EQ(message_of<ConfigError>([] {
              group_from_env(from({{"PADDLE_TRAINER_ENDPOINTS", "a:1,b:1"},
                                   {"PADDLE_TRAINER_ID", "0"},
                                   {"PADDLE_TRAINERS_NUM", "3"}}));
            }),
            "PADDLE_TRAINERS_NUM is '3', expected 2, as PADDLE_TRAINER_ENDPOINTS lists so many");
}

TEST(GroupFromEnv, ConnectsOnTheInheritedSocket) {
  const Endpoint any{"127.0.0.1", 0};
  Descriptor socket = bind_to(any);
  start_listening(socket, any);
  const std::string at = Endpoint{"127.0.0.1", port_of(socket)}.text();
  const auto options =
      group_from_env(from({{"PADDLE_TRAINER_ENDPOINTS", at},
                           {"PADDLE_TRAINER_ID", "0"},
                           {"ARGOSY_LISTEN_FD", std::to_string(socket.release())}}));
  const auto env = real_env();
  const auto group = comm::connect_group(*env, *options);
  std::vector<float> data = {1, 2};
  group->all_reduce<float>(data);
  EXPECT_EQ(data, (std::vector<float>{1, 2}));
}

TEST(Ranks, HierarchicalSumsHaveAsManyRanksOnEachHostAsAsked) {
  Role role{.kind = RoleKind::rank,
            .workers = {{"10.0.0.1", 1}, {"10.0.0.1", 2}, {"10.0.0.2", 1}},
            .worker_num = 3};
  EXPECT_EQ(group_options(role, {}).backend, "auto");
  EXPECT_EQ(group_options(role, {.hierarchical = true}).backend, "hierarchical");
  EXPECT_EQ(message_of<ConfigError>(
                [&] { group_options(role, {.hierarchical = true, .ranks_per_host = 2}); }),
            "hierarchical_allreduce_inter_nranks is 2, but host 10.0.0.2 has 1 rank");
  role.workers.push_back({"10.0.0.2", 2});
  EXPECT_EQ(group_options(role, {.hierarchical = true, .ranks_per_host = 2}).backend,
            "hierarchical");
}

}  // namespace
}  // namespace argosy
