#include <gtest/gtest.h>

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/launch/launcher.h"

namespace argosy::launch {
namespace {

Job two_machines(const std::string& here) {
  return make_job({.servers = "10.0.0.1:6170,10.0.0.2:6170",
                   .workers = "10.0.0.1:6172,10.0.0.1:6173,10.0.0.2:6174",
                   .env = {"OMP_NUM_THREADS=1"},
                   .command = {"train.py", "-m", "a b.yaml"}},
                  {.environment = {{"POD_IP", here}}});
}

TEST(LaunchPlan, EveryMachineStartsItsPart) {
  expect_golden("launch_plan.txt", plan_text(plan_processes(two_machines("10.0.0.1"))));
  std::string names;
  for (const Process& process : plan_processes(two_machines("10.0.0.2")))
    names += process.name() + " " + process.log_file + ", ";
  EXPECT_EQ(names, "server 1 log/serverlog.1, worker 2 log/workerlog.2, ");
}

TEST(LaunchPlan, TakesProxiesAndWhatAnotherLauncherSetOutOfTheEnvironment) {
  for (const Process& process : plan_processes(two_machines("10.0.0.1")))
    for (const char* name : {"http_proxy", "https_proxy", "ARGOSY_RESTART", "PADDLE_PSERVERS"})
      EXPECT_NE(std::ranges::find(process.unset, name), process.unset.end()) << name;
}

TEST(LaunchPlan, AJobThatMayResumeKeepsJournals) {
  const auto env = [](bool resume) {
    const Flags flags{.server_num = 1, .worker_num = 1, .resume = resume, .command = {"train"}};
    return plan_processes(make_job(flags, {}))[0].env;
  };
  EXPECT_FALSE(env(false).contains("ARGOSY_RESUME") || env(false).contains("ARGOSY_NOTES"));
  EXPECT_EQ(env(true).at("ARGOSY_RESUME"), "1");
  EXPECT_TRUE(env(true).contains("ARGOSY_NOTES"));
}

TEST(LaunchPlan, WorkersTakeTurnsWithTheCards) {
  const auto plan = [](const std::string& cards) {
    return plan_processes(make_job({.server_num = 1, .worker_num = 2, .command = {"train"}},
                                   {.environment = {{"CUDA_VISIBLE_DEVICES", cards}}}));
  };
  EXPECT_FALSE(plan("2")[0].env.contains("CUDA_VISIBLE_DEVICES"));
  EXPECT_EQ(plan("2")[2].env.at("CUDA_VISIBLE_DEVICES"), "2");
  EXPECT_EQ(plan("4,7")[1].env.at("CUDA_VISIBLE_DEVICES"), "4");
  EXPECT_EQ(plan("4,7")[2].env.at("CUDA_VISIBLE_DEVICES"), "7");
  EXPECT_EQ(plan("")[2].env.at("CUDA_VISIBLE_DEVICES"), "0");
}

TEST(LaunchPlan, FirstReleasesKnewOnePortForAllServers) {
  const auto env = [](const std::string& servers) {
    return plan_processes(make_job({.servers = servers, .workers = "a:1", .command = {"train"}},
                                   {.environment = {{"POD_IP", "a"}}}))
        .back()
        .env;
  };
  const Variables same = env("a:6174,b:6174"), different = env("a:6174,b:6175");
  EXPECT_EQ(same.at("PADDLE_PSERVER_IPS"), "a,b");
  EXPECT_EQ(same.at("PADDLE_PSERVER_PORT"), "6174");
  EXPECT_EQ(same.at("PADDLE_TRAINING_ROLE"), "TRAINER");
  EXPECT_FALSE(different.contains("PADDLE_PSERVER_IPS"));
}

TEST(LaunchPlan, HeterogeneousWorkersKnowTheirNeighbours) {
  expect_golden("launch_plan_heter.txt",
                plan_text(plan_processes(make_job({.http_port = 8,
                                                   .heter_devices = "cpu;gpu",
                                                   .servers = "a:1",
                                                   .workers = "a:2,a:3",
                                                   .heter_workers = "a:4;a:5,a:6",
                                                   .coordinators = "a:7",
                                                   .command = {"train"}},
                                                  {.environment = {{"POD_IP", "a"}}}))));
}

TEST(LaunchPlan, IsThereForATaskThatDoesNotKnowTheServersYet) {
  const Machine task = {.environment = {{"SLURM_JOB_ID", "7"},
                                        {"SLURM_STEP_ID", "0"},
                                        {"SLURM_STEP_NUM_TASKS", "2"},
                                        {"SLURM_STEP_NUM_NODES", "2"},
                                        {"SLURM_STEP_NODELIST", "n[1-2]"},
                                        {"SLURM_PROCID", "1"},
                                        {"SLURM_NODEID", "1"}}};
  const auto plan =
      plan_processes(make_job({.server_num = 1, .worker_num = 1, .command = {"train"}}, task));
  ASSERT_EQ(plan.size(), 1U);
  EXPECT_EQ(plan[0].env.at("TRAINING_ROLE"), "TRAINER");
  EXPECT_FALSE(plan[0].env.contains("PADDLE_PSERVER_IPS"));
}

TEST(LaunchPlan, RanksOfSeveralMachines) {
  expect_golden("launch_plan_ranks.txt",
                plan_text(plan_processes(make_job(
                    {.nproc_per_node = 2, .ips = "a,b", .gpus = "0,1,2,3", .command = {"train"}},
                    {.environment = {{"POD_IP", "b"}}}))));
}

TEST(LaunchPlan, RefusesToSetItsOwnVariables) {
  Job job = two_machines("10.0.0.1");
  job.env = {{"TRAINING_ROLE", "x"}};
  EXPECT_EQ(message_of<ConfigError>([&] { plan_processes(job); }),
            "--env TRAINING_ROLE=x: fleetrun sets this one itself");
}

TEST(LaunchPlan, BannerCountsWhatStartsHere) {
  EXPECT_EQ(summary(two_machines("10.0.0.1")), "1 of 2 servers, 2 of 3 workers; logs in log/");
  Job job = two_machines("10.0.0.1");
  job.here = {0, 1};
  job.members.erase(job.members.begin());
  EXPECT_EQ(summary(job), "1 server, 3 workers; logs in log/");
}

TEST(LaunchPlan, FlagsAndEnvironmentArePrintedAsPaddleDoes) {
  const Flags flags = {.gpus = "0,1,2,3", .command = {"train.py"}};
  const Flags more = {.server_num = 2,
                      .workers = "a,b",
                      .env = {"A=1"},
                      .max_restart = 3,
                      .command = {"argosy", "train", "-m", "config.yaml"}};
  Job job = make_job(flags, {});
  for (Member& member : job.members) member.at.port = 33360;
  expect_golden("launch_banner.txt",
                configuration_text(flags) +
                    environment_text(plan_processes(job), "2020-01-31 06:09:36,185") +
                    configuration_text(more));
}

TEST(LaunchPlan, IsJsonForPrograms) {
  expect_golden("launch_plan.json",
                plan_json(two_machines("10.0.0.2"), plan_processes(two_machines("10.0.0.2"))));
}

}  // namespace
}  // namespace argosy::launch
