#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/launch/launcher.h"

namespace argosy {
namespace {

Job two_machines(const std::string& here) {
  return {.servers = {{"10.0.0.1", 6170}, {"10.0.0.2", 6170}},
          .workers = {{"10.0.0.1", 6172}, {"10.0.0.1", 6173}, {"10.0.0.2", 6174}},
          .hosts_here = {here},
          .log_dir = "log",
          .env = {{"OMP_NUM_THREADS", "1"}},
          .cards = {},
          .grace = std::chrono::seconds(10),
          .command = {"train.py", "-m", "a b.yaml"}};
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
    EXPECT_EQ(process.unset, (std::vector<std::string>{"http_proxy", "https_proxy",
                                                       "ARGOSY_LISTEN_FD", "ARGOSY_PROGRESS_FD"}));
}

TEST(LaunchPlan, OnlyPythonFilesNeedPython) {
  Job job = two_machines("10.0.0.2");
  EXPECT_EQ(plan_processes(job).front().argv,
            (std::vector<std::string>{"python3", "-u", "train.py", "-m", "a b.yaml"}));
  job.command = {"argosy", "train.py"};
  EXPECT_EQ(plan_processes(job).front().argv, job.command);
}

TEST(LaunchPlan, WorkersTakeTurnsWithTheCards) {
  Job job = two_machines("10.0.0.1");
  job.cards = {"2"};
  EXPECT_FALSE(plan_processes(job).front().env.contains("CUDA_VISIBLE_DEVICES"));
  EXPECT_EQ(plan_processes(job)[2].env.at("CUDA_VISIBLE_DEVICES"), "2");
  job.cards = {"4", "7"};
  EXPECT_EQ(plan_processes(job)[1].env.at("CUDA_VISIBLE_DEVICES"), "4");
  EXPECT_EQ(plan_processes(job)[2].env.at("CUDA_VISIBLE_DEVICES"), "7");
}

TEST(LaunchPlan, RefusesToSetItsOwnVariables) {
  Job job = two_machines("10.0.0.1");
  job.env = {{"TRAINING_ROLE", "x"}};
  EXPECT_EQ(message_of<ConfigError>([&] { plan_processes(job); }),
            "--env TRAINING_ROLE=x: fleetrun sets this one itself");
}

TEST(LaunchPlan, BannerCountsWhatStartsHere) {
  EXPECT_EQ(banner(two_machines("10.0.0.1")), "1 of 2 servers, 2 of 3 workers; logs in log/");
  Job job = two_machines("10.0.0.1");
  job.hosts_here.emplace_back("10.0.0.2");
  job.servers.pop_back();
  EXPECT_EQ(banner(job), "1 server, 3 workers; logs in log/");
}

}  // namespace
}  // namespace argosy
