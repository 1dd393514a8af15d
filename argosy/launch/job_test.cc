#include <gtest/gtest.h>

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/launch/launcher.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;

const Machine kMachine = {.environment = {}, .hosts = {"localhost", "127.0.0.1", "10.0.0.2"}};

Job job_of(LaunchFlags flags, const Machine& machine = kMachine) {
  if (flags.command.empty()) flags.command = {"train"};
  return make_job(flags, machine);
}

std::string refusal(const LaunchFlags& flags, const Machine& machine = kMachine) {
  return message_of<ConfigError>([&] { job_of(flags, machine); });
}

std::string text_of(const std::vector<Endpoint>& endpoints) {
  std::string text;
  for (const Endpoint& endpoint : endpoints) text += (text.empty() ? "" : " ") + endpoint.text();
  return text;
}

TEST(Job, NumbersMeanThisMachineAndFreePorts) {
  const Job job = job_of({.server_num = 2, .worker_num = 3});
  EXPECT_EQ(text_of(job.servers), "127.0.0.1:0 127.0.0.1:0");
  EXPECT_EQ(text_of(job.workers), "127.0.0.1:0 127.0.0.1:0 127.0.0.1:0");
  EXPECT_TRUE(job.is_here(job.servers[0]));
  EXPECT_EQ(job.log_dir, "log");
  EXPECT_EQ(job.grace, 10s);
}

TEST(Job, HostsWithoutPortsGetThoseBehindTheServers) {
  const Job job =
      job_of({.servers = "10.0.0.1:6170,10.0.0.2:6170", .workers = "10.0.0.1,10.0.0.2"});
  EXPECT_EQ(text_of(job.servers), "10.0.0.1:6170 10.0.0.2:6170");
  EXPECT_EQ(text_of(job.workers), "10.0.0.1:6172 10.0.0.2:6173");
  EXPECT_EQ(text_of(job_of({.servers = "a:1", .workers = "::1"},
                           {.environment = {{"POD_IP", "a"}}, .hosts = {}})
                        .workers),
            "[::1]:6171");
}

TEST(Job, NumberBesideAListIsOnTheListsMachine) {
  EXPECT_EQ(text_of(job_of({.worker_num = 2, .servers = "10.0.0.2:6170"}).workers),
            "10.0.0.2:0 10.0.0.2:0");
  EXPECT_EQ(text_of(job_of({.server_num = 1, .workers = "a:1,a:2"}).servers), "a:0");
  EXPECT_EQ(refusal({.worker_num = 2, .servers = "10.0.0.1:1,10.0.0.2:1"}),
            "--worker_num counts processes of one machine, but there are 10.0.0.1 and 10.0.0.2, "
            "expected --workers");
}

TEST(Job, MachineIsFoundByItsAddressesOrByPodIp) {
  const LaunchFlags flags = {.servers = "10.0.0.1:6170,10.0.0.2:6170",
                             .workers = "10.0.0.1,10.0.0.2,10.0.0.3"};
  EXPECT_EQ(job_of(flags).hosts_here, std::vector<std::string>{"10.0.0.2"});
  Machine pod = {.environment = {{"POD_IP", "10.0.0.3"}}, .hosts = kMachine.hosts};
  EXPECT_EQ(job_of(flags, pod).hosts_here, std::vector<std::string>{"10.0.0.3"});
  pod.environment["POD_IP"] = "10.0.0.4";
  EXPECT_EQ(
      refusal(flags, pod),
      "POD_IP is '10.0.0.4', expected one of the job's machines: 10.0.0.1, 10.0.0.2, 10.0.0.3");
  EXPECT_EQ(
      refusal(flags, {}),
      "none of the job's machines (10.0.0.1, 10.0.0.2, 10.0.0.3) is this one, expected POD_IP "
      "to say which is");
}

TEST(Job, PortsOfSeveralMachinesAreKnownBefore) {
  EXPECT_EQ(refusal({.servers = "10.0.0.1:0", .workers = "10.0.0.2:1"}),
            "--servers has 10.0.0.1:0, expected a port that the other machines can know");
}

TEST(Job, RefusesFlagsThatDoNotFit) {
  EXPECT_EQ(refusal({}),
            "nothing says what to start, expected --server_num and --worker_num, or --servers and "
            "--workers; jobs without servers are not there yet");
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

TEST(ThisMachine, KnowsItsLoopbackAddressAndItsEnvironment) {
  ::setenv("ARGOSY_LAUNCH_TEST", "a=b", 1);
  const Machine machine = this_machine();
  ::unsetenv("ARGOSY_LAUNCH_TEST");
  EXPECT_EQ(machine.environment.at("ARGOSY_LAUNCH_TEST"), "a=b");
  EXPECT_NE(std::ranges::find(machine.hosts, "127.0.0.1"), machine.hosts.end());
}

}  // namespace
}  // namespace argosy
