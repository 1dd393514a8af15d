#include <gtest/gtest.h>

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/launch/launcher.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;

const Machine kMachine = {.environment = {}, .hosts = {"localhost", "127.0.0.1", "10.0.0.2"}};

Job job_of(Flags flags, const Machine& machine = kMachine) {
  if (flags.command.empty()) flags.command = {"train"};
  return make_job(flags, machine);
}

std::string refusal(const Flags& flags, const Machine& machine = kMachine) {
  return message_of<ConfigError>([&] { job_of(flags, machine); });
}

/// Addresses of one kind.
std::string text_of(const Job& job, ProcessKind kind) {
  std::string text;
  for (const Member& member : job.of(kind)) text += (text.empty() ? "" : " ") + member.at.text();
  return text;
}
std::string servers(const Job& job) { return text_of(job, ProcessKind::server); }
std::string workers(const Job& job) { return text_of(job, ProcessKind::worker); }

/// "0;1" for two workers with a card each.
std::string cards(const Job& job) {
  std::string text;
  for (const Member& member : job.of(ProcessKind::worker)) {
    if (!text.empty()) text += ";";
    for (const std::string& card : member.cards)
      text += (text.empty() || text.back() == ';' ? "" : ",") + card;
  }
  return text;
}

TEST(LaunchJob, NumbersMeanThisMachineAndFreePorts) {
  const Job job = job_of({.server_num = 2, .worker_num = 3});
  EXPECT_EQ(servers(job), "127.0.0.1:0 127.0.0.1:0");
  EXPECT_EQ(workers(job), "127.0.0.1:0 127.0.0.1:0 127.0.0.1:0");
  EXPECT_TRUE(job.is_here(job.members[0]));
  EXPECT_FALSE(job.meeting);
  EXPECT_EQ(job.log_dir, "log");
  EXPECT_EQ(job.grace, 10s);
}

TEST(LaunchJob, HostsWithoutPortsGetThoseBehindTheServers) {
  const Job job =
      job_of({.servers = "10.0.0.1:6170,10.0.0.2:6170", .workers = "10.0.0.1,10.0.0.2"});
  EXPECT_EQ(servers(job), "10.0.0.1:6170 10.0.0.2:6170");
  EXPECT_EQ(workers(job), "10.0.0.1:6172 10.0.0.2:6173");
  EXPECT_EQ(workers(job_of({.servers = "a:1", .workers = "::1"},
                           {.environment = {{"POD_IP", "a"}}, .hosts = {}})),
            "[::1]:6171");
}

TEST(LaunchJob, NumberBesideAListIsOnTheListsMachine) {
  EXPECT_EQ(workers(job_of({.worker_num = 2, .servers = "10.0.0.2:6170"})),
            "10.0.0.2:0 10.0.0.2:0");
  EXPECT_EQ(servers(job_of({.server_num = 1, .workers = "a:1,a:2"})), "a:0");
  EXPECT_EQ(refusal({.worker_num = 2, .servers = "10.0.0.1:1,10.0.0.2:1"}),
            "--worker_num counts processes of one machine, but there are 10.0.0.1 and 10.0.0.2, "
            "expected --workers");
}

TEST(LaunchJob, MachineIsFoundByItsAddressesOrByPodIp) {
  const Flags flags = {.servers = "10.0.0.1:6170,10.0.0.2:6170",
                       .workers = "10.0.0.1,10.0.0.2,10.0.0.3"};
  EXPECT_EQ(job_of(flags).here, std::vector{1});
  Machine pod = {.environment = {{"POD_IP", "10.0.0.3"}}, .hosts = kMachine.hosts};
  EXPECT_EQ(job_of(flags, pod).here, std::vector{2});
  pod.environment["POD_IP"] = "10.0.0.4";
  EXPECT_EQ(
      refusal(flags, pod),
      "POD_IP is '10.0.0.4', expected one of the job's machines: 10.0.0.1, 10.0.0.2, 10.0.0.3");
  EXPECT_EQ(
      refusal(flags, {}),
      "none of the job's machines (10.0.0.1, 10.0.0.2, 10.0.0.3) is this one, expected POD_IP "
      "to say which is");
}

TEST(LaunchJob, PortsOfSeveralMachinesAreKnownBefore) {
  EXPECT_EQ(refusal({.servers = "10.0.0.1:0", .workers = "10.0.0.2:1"}),
            "the server 10.0.0.1:0 has no port, expected one that the other machines can know");
}

TEST(LaunchJob, RefusesFlagsThatDoNotFit) {
  EXPECT_EQ(refusal({.worker_num = 1}), "no servers, expected --server_num or --servers");
  EXPECT_EQ(refusal({.servers = "a:1"}), "no workers, expected --worker_num or --workers");
  EXPECT_EQ(refusal({.server_num = 0, .worker_num = 1}), "--server_num is 0, expected at least 1");
  EXPECT_EQ(refusal({.server_num = 2, .worker_num = 1, .servers = "a:1"}),
            "--servers lists 1 but --server_num is 2, expected the same number");
  EXPECT_EQ(refusal({.server_num = 1, .workers = "a,b:2"}),
            "--workers: 'a,b:2' has ports for 1 of 2 workers, expected all or none");
  EXPECT_EQ(refusal({.server_num = 1, .worker_num = 1, .env = {"A"}}),
            "--env is 'A', expected NAME=VALUE");
  EXPECT_EQ(refusal({.server_num = 1, .worker_num = 1, .grace = -1}),
            "--grace is -1, expected seconds");
  EXPECT_EQ(message_of<ConfigError>([] { make_job({}, kMachine); }),
            "no command, expected a program behind the flags");
  const std::string server = refusal({.worker_num = 1, .servers = "a"});
  EXPECT_TRUE(server.starts_with("--servers: ")) << server;
}

TEST(LaunchJob, ModeComesFromTheFlags) {
  EXPECT_EQ(job_of({}).mode, Mode::collective);
  EXPECT_EQ(job_of({.server_num = 1, .worker_num = 1}).mode, Mode::servers);
  EXPECT_EQ(job_of({.server_num = 1, .worker_num = 1, .heter_worker_num = "1"}).mode,
            Mode::heterogeneous);
  EXPECT_EQ(refusal({.run_mode = "ps"}), "no servers, expected --server_num or --servers");
  EXPECT_EQ(refusal({.run_mode = "rpc"}),
            "--run_mode is 'rpc', expected collective, ps or ps-heter");
  EXPECT_EQ(refusal({.server_num = 1, .worker_num = 1, .ips = "10.0.0.2"}),
            "--server_num and --ips contradict each other: a job has servers and workers, or "
            "ranks");
  EXPECT_EQ(refusal({.nproc_per_node = 2, .heter_workers = "a:1"}),
            "--heter_workers and --nproc_per_node contradict each other: a job has servers and "
            "workers, or ranks");
  EXPECT_EQ(refusal({.server_num = 1, .run_mode = "collective"}),
            "--run_mode=collective and --server_num contradict each other: a job has servers and "
            "workers, or ranks");
}

TEST(LaunchJob, RanksAreOneForEachCardOrAsManyAsAsked) {
  EXPECT_EQ(workers(job_of({})), "127.0.0.1:0");
  EXPECT_EQ(cards(job_of({})), "");
  const Machine four = {.environment = {{"CUDA_VISIBLE_DEVICES", "4,5,6,7"}},
                        .hosts = {"10.0.0.1"}};
  EXPECT_EQ(cards(job_of({}, four)), "0;1;2;3");
  EXPECT_EQ(cards(job_of({.gpus = "7,5"}, four)), "3;1");
  EXPECT_EQ(cards(job_of({.gpus = "7,5"})), "7;5");
  EXPECT_EQ(cards(job_of({.nproc_per_node = 2}, four)), "0,1;2,3");
  EXPECT_EQ(job_of({.nproc_per_node = 3}).members.size(), 3U);
  EXPECT_EQ(refusal({.nproc_per_node = 3}, four),
            "--nproc_per_node is 3 but there are 4 cards, expected a number that divides them");
  EXPECT_EQ(refusal({.gpus = "3"}, four),
            "--gpus has card 3, expected one of CUDA_VISIBLE_DEVICES: 4,5,6,7");
  const Machine emulated = {.environment = {{"ARGOSY_EMULATED_DEVICES", "2"}},
                            .hosts = {"10.0.0.1"}};
  EXPECT_EQ(cards(job_of({}, emulated)), "0;1");
  EXPECT_EQ(cards(job_of({.gpus = "1"}, emulated)), "1");
  EXPECT_EQ(refusal({.gpus = "2"}, emulated),
            "--gpus has card 2, expected one of ARGOSY_EMULATED_DEVICES: 0,1");
  EXPECT_EQ(refusal({.gpus = "a"}), "--gpus is 'a', expected a number of at least 0");
  const Job two = job_of({.ips = "10.0.0.1,10.0.0.2", .gpus = "4,5"}, four);
  EXPECT_EQ(workers(two), "10.0.0.1:6070 10.0.0.1:6071 10.0.0.2:6070 10.0.0.2:6071");
  EXPECT_TRUE(two.meeting->head);
  EXPECT_EQ(two.meeting->at.text(), "10.0.0.1:6070");
  EXPECT_EQ(cards(two), "0;1;;");  // the others' are known to them
}

TEST(LaunchJob, HeterogeneousWorkersHaveStages) {
  const Job job = job_of(
      {.server_num = 1, .worker_num = 2, .heter_worker_num = "1;2", .heter_devices = "cpu;gpu"});
  std::string text;
  for (const Member& member : job.of(ProcessKind::heter_worker))
    text += std::to_string(member.stage) + member.device + " ";
  EXPECT_EQ(text, "2cpu 3gpu 3gpu ");
  const Job listed = job_of({.servers = "a:1", .workers = "a:2", .heter_workers = "a:3;a:4,a:5"});
  EXPECT_EQ(text_of(listed, ProcessKind::heter_worker), "a:3 a:4 a:5");
  EXPECT_EQ(refusal({.server_num = 1, .worker_num = 1, .heter_worker_num = "2;x"}),
            "--heter_worker_num is 'x', expected a number of at least 1");
  EXPECT_EQ(
      refusal(
          {.server_num = 1, .worker_num = 1, .heter_worker_num = "2", .heter_devices = "cpu;gpu"}),
      "--heter_devices has 2 stages, expected 1");
  EXPECT_EQ(
      refusal({.server_num = 1, .worker_num = 1, .heter_worker_num = "2", .heter_devices = "npu"}),
      "--heter_devices is 'npu', expected cpu or gpu for each stage");
  EXPECT_EQ(refusal({.server_num = 1, .worker_num = 1, .heter_devices = "cpu"}),
            "no heterogeneous workers, expected --heter_worker_num or --heter_workers");
}

TEST(LaunchJob, MachinesThatFindEachOtherBringTheirOwnMembers) {
  const Job head =
      job_of({.server_num = 1, .worker_num = 2, .nnodes = 2, .master = "10.0.0.2:6000"});
  ASSERT_TRUE(head.meeting);
  EXPECT_TRUE(head.meeting->head && head.meeting->offers);
  EXPECT_EQ(head.members.size(), 3U);
  EXPECT_EQ(head.members[0].at, Endpoint());
  EXPECT_FALSE(job_of({.nnodes = 2, .rank = 1, .master = "10.0.0.2:6000"}).meeting->head);
  EXPECT_FALSE(job_of({.nnodes = 2, .master = "10.0.0.9:6000"}).meeting->head);
  const Machine pod = {.environment = {{"JOB_COMPLETION_INDEX", "1"}}};
  EXPECT_EQ(job_of({.nnodes = 2, .master = "a:1"}, pod).meeting->rank, 1);
  EXPECT_EQ(refusal({.nnodes = 2, .rank = 2, .master = "a:1"}),
            "--rank is 2, expected 0 to 1, as --nnodes is 2");
  EXPECT_EQ(refusal({.nnodes = 2, .ips = "a,b", .master = "a:1"}),
            "--master finds the machines and --ips lists them, expected one of the two");
  EXPECT_EQ(refusal({.nnodes = 2}), "--nnodes is 2, expected --master to say where they meet");
  EXPECT_TRUE(refusal({.master = "a"}).starts_with("--master: "));
}

TEST(LaunchJob, PaddleCloudListsItsMachines) {
  Machine cloud = {.environment = {{"PADDLE_TRAINERS", "10.0.0.1,10.0.0.2"},
                                   {"POD_IP", "10.0.0.2"},
                                   {"PADDLE_TRAINER_ID", "1"},
                                   {"TRAINER_PORTS_NUM", "1"}}};
  EXPECT_EQ(workers(job_of({}, cloud)), "10.0.0.1:6170 10.0.0.2:6170");
  EXPECT_EQ(job_of({}, cloud).here, std::vector{1});
  cloud.environment["DISTRIBUTED_TRAINER_ENDPOINTS"] = "10.0.0.1:7000,10.0.0.2:7001";
  EXPECT_EQ(workers(job_of({}, cloud)), "10.0.0.1:7000 10.0.0.2:7001");
}

TEST(LaunchJob, TasksOfAnEngineAreProcessesOrMachines) {
  Machine task = {.environment = {{"OMPI_COMM_WORLD_SIZE", "3"},
                                  {"OMPI_COMM_WORLD_RANK", "1"},
                                  {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}},
                  .hosts = {"127.0.0.1"}};
  const Job each = job_of({.server_num = 1, .worker_num = 2}, task);
  ASSERT_EQ(each.members.size(), 1U);
  EXPECT_EQ(each.members[0].kind, ProcessKind::worker);
  EXPECT_EQ(each.meeting->rank, 1);
  EXPECT_FALSE(each.meeting->head);
  EXPECT_EQ(refusal({.server_num = 1, .worker_num = 1}, task),
            "OpenMPI has started 3 tasks on 1 nodes, but the flags count 2 processes, expected as "
            "many tasks, or one task for each node");
  task.environment["OMPI_COMM_WORLD_LOCAL_SIZE"] = "1";
  task.environment["OMPI_COMM_WORLD_LOCAL_RANK"] = "0";
  EXPECT_EQ(
      refusal({.server_num = 1, .worker_num = 1}, task),
      "OpenMPI does not say where its tasks can meet, expected --master HOST:PORT --nnodes N");
  task.environment["OMPI_MCA_orte_hnp_uri"] = "12.0;tcp://10.0.0.1:4567";
  EXPECT_EQ(job_of({.server_num = 1, .worker_num = 1}, task).members.size(), 2U);
  EXPECT_EQ(job_of({.servers = "10.0.0.1:1", .workers = "10.0.0.1:2"}, task).members.size(), 2U);
}

TEST(LaunchJob, OneTaskOnEachMachineIsALauncherEvenWhereTheNumbersFitProcesses) {
  const auto members = [](Variables more) {
    more.insert({{"SLURM_JOB_ID", "7"},
                 {"SLURM_STEP_ID", "0"},
                 {"SLURM_STEP_NUM_TASKS", "2"},
                 {"SLURM_STEP_NUM_NODES", "2"},
                 {"SLURM_STEP_NODELIST", "n[1-2]"}});
    return job_of({.server_num = 1, .worker_num = 1}, {.environment = more}).members.size();
  };
  EXPECT_EQ(members({}), 1U);
  EXPECT_EQ(members({{"SLURM_NTASKS_PER_NODE", "1"}}), 2U);
}

TEST(LaunchJob, RefusesMoreProcessesThanTheMachineAllowsAndAddressesThatComeTwice) {
  EXPECT_EQ(refusal({.server_num = 1, .worker_num = 9}, {.process_limit = 9}),
            "the job starts 10 processes here, but this machine allows 9");
  EXPECT_EQ(refusal({.servers = "a:1", .workers = "a:1"}),
            "a server and a worker have the same address a:1, expected different ones");
  EXPECT_TRUE(refusal({.servers = "a:1,a:1", .workers = "a:2"}).starts_with("--servers: "));
}

TEST(ThisMachine, KnowsItsLoopbackAddressAndItsEnvironment) {
  ::setenv("ARGOSY_LAUNCH_TEST", "a=b", 1);
  const Machine machine = this_machine();
  ::unsetenv("ARGOSY_LAUNCH_TEST");
  EXPECT_EQ(machine.environment.at("ARGOSY_LAUNCH_TEST"), "a=b");
  EXPECT_NE(std::ranges::find(machine.hosts, "127.0.0.1"), machine.hosts.end());
}

TEST(LaunchJob, ResumesFromTheJournalsOfServersOnly) {
  EXPECT_TRUE(job_of({.server_num = 1, .worker_num = 1, .resume = true}).resume);
  EXPECT_EQ(refusal({.nproc_per_node = 2, .resume = true}),
            "--resume is for servers and their journals, expected --server_num or --servers with "
            "it; ranks go on from saves");
  EXPECT_EQ(refusal({.server_num = 1, .worker_num = 1, .resume = true, .durability = "none"}),
            "--resume and --durability=none contradict each other: without journals there is "
            "nothing to go on from");
}

}  // namespace
}  // namespace argosy::launch
