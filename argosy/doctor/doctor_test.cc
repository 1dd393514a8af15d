#include "argosy/doctor/doctor.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>

#include "argosy/base/error.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;
using Severity = Finding::Severity;

constexpr uint64_t kMebibyte = uint64_t{1} << 20, kGibibyte = uint64_t{1} << 30;

LookUp found(std::vector<std::string> addresses) {
  return {.outcome = LookUp::Outcome::found, .addresses = std::move(addresses)};
}

/// A machine without a fault. Its name service knows the names in `names` only.
struct MadeUp : Surroundings {
  MadeUp() {
    host_name = "node1";
    addresses = {"127.0.0.1", "10.0.0.1"};
    now = 1800000000;
    kernel = "6.1.0-18-amd64";
    libc = "2.36";
    cpu_model = "Made-up CPU";
    outgoing_ports = {32768, 60999};
    open_files = 1024;
    memory = memory_available = 64 * kGibibyte;
    cores = 64;
    look_up = [this](const std::vector<std::string>& asked, Deadline) {
      std::vector<LookUp> results;
      for (const std::string& name : asked) {
        const auto known = names.find(name);
        results.push_back(known == names.end() ? LookUp{.outcome = LookUp::Outcome::unknown,
                                                        .error = "Name or service not known"}
                                               : known->second);
      }
      return results;
    };
    try_loopback = [] { return ""; };
    try_to_listen = [this](const std::string&, uint16_t) { return listen_error; };
    port_owner = [this](const Endpoint&) { return owner; };
    folder = [this](const std::string& path) {
      const auto known = folders.find(path);
      return known == folders.end() ? FolderState{.existing = path, .free_bytes = 100 * kGibibyte}
                                    : known->second;
    };
    program = [this](const std::string& name) {
      const auto known = programs.find(name);
      return known == programs.end() ? FoundProgram{.problem = name + " is nowhere"}
                                     : known->second;
    };
    run = [this](const std::vector<std::string>& command, Deadline) {
      ran.push_back(command);
      return child;
    };
  }
  MadeUp(const MadeUp&) = delete;
  MadeUp& operator=(const MadeUp&) = delete;

  std::map<std::string, LookUp> names = {{"node1", found({"10.0.0.1"})},
                                         {"node2", found({"10.0.0.2"})}};
  int listen_error = 0;
  std::optional<PortOwner> owner = {};
  std::map<std::string, FolderState> folders = {};
  std::map<std::string, FoundProgram> programs = {
      {"argosy", {.path = "argosy", .exists = true}},
      {"bin/argosy", {.path = "bin/argosy", .exists = true}},
      {"python3", {.path = "python3", .exists = true}}};
  ShortChild child = {.ending = Ending{0}};
  std::vector<std::vector<std::string>> ran = {};
};

/// "error: what", one line each.
std::string heads(const Needs& needs, const Surroundings& here) {
  std::string lines;
  for (const Finding& finding : examine(needs, here)) {
    const std::string whole = text({finding});
    lines += whole.substr(0, whole.find('\n') + 1);
    EXPECT_FALSE(finding.why.empty()) << finding.what;
  }
  return lines;
}

std::string first_fix(const Needs& needs, const Surroundings& here) {
  const Findings findings = examine(needs, here);
  return findings.empty() ? "nothing was found" : findings.front().fix;
}

TEST(Doctor, FindsNothingOnASoundMachine) {
  const MadeUp here;
  const Needs job{.listen = {{"10.0.0.1", 6170}, {"node1", 0}},
                  .hosts = {"10.0.0.1", "node1", "node2"},
                  .processes = 4,
                  .servers = 4,
                  .workers = 4,
                  .folders = {"log", "model"},
                  .command = {"argosy", "train", "-m", "config.yaml"}};
  EXPECT_EQ(text(examine({}, here)), "nothing to complain about\n");
  EXPECT_EQ(text(examine(job, here)), "nothing to complain about\n");
}

TEST(Doctor, PutsErrorsFirstAndSaysWhatWhyAndHow) {
  MadeUp here;
  here.now = 0;
  here.listen_error = EACCES;
  const Findings findings = examine({.listen = {{"10.0.0.1", 80}}}, here);
  EXPECT_TRUE(has_errors(findings));
  EXPECT_EQ(text(findings),
            "error: port 80 is for root only\n"
            "  why: the server that is to listen there cannot start; take a port above 1023, or "
            "open the lower ones to all\n"
            "  fix: sudo sysctl -w net.ipv4.ip_unprivileged_port_start=80\n"
            "warning: the clock is before 2024\n"
            "  why: times in logs are wrong, certificates do not count as valid, and resuming "
            "takes the newest save by its time\n"
            "  fix: sudo timedatectl set-ntp true\n");
  EXPECT_FALSE(has_errors({findings.back()}));
}

TEST(Doctor, JsonEscapesWhatItHasTo) {
  const Findings findings = {
      {.severity = Severity::warning, .what = "a \"b\"\\\n", .why = "c", .fix = ""}};
  EXPECT_EQ(json({{"host", "node1"}}, findings),
            "{\"machine\": {\"host\": \"node1\"}, \"findings\": [{\"severity\": \"warning\", "
            "\"what\": \"a \\\"b\\\"\\\\\\n\", \"why\": \"c\", \"fix\": \"\"}]}\n");
  EXPECT_EQ(json({}, {}), "{\"machine\": {}, \"findings\": []}\n");
}

TEST(Doctor, TellsTheMachineInAFewLines) {
  MadeUp here;
  here.group = {.memory_left = 2 * kGibibyte, .cores = 1.5};
  const std::string lines = text(facts(here));
  EXPECT_NE(lines.find("Made-up CPU, 64 cores, limited to the time of 1.5, loops for "),
            std::string::npos)
      << lines;
  EXPECT_NE(lines.find("64.0 GiB of 64.0 GiB available, the control group allows 2.0 GiB\n"),
            std::string::npos)
      << lines;
}

TEST(Doctor, ProxiesHurtOnlyHostsThatNoProxyLeavesOut) {
  MadeUp here;
  const Needs needs{.hosts = {"10.0.0.1", "node2"}};
  here.environment = {{"http_proxy", "p:1"}};
  EXPECT_EQ(heads(needs, here),
            "note: http_proxy set, and no_proxy does not cover 10.0.0.1,node2\n");
  EXPECT_EQ(heads({}, here),
            "note: http_proxy set, and no_proxy does not cover localhost,127.0.0.1\n");

  here.environment["ALL_PROXY"] = "p:2";
  here.environment["no_proxy"] = "localhost, 10.0.0.0/8";
  EXPECT_EQ(heads(needs, here),
            "warning: http_proxy, ALL_PROXY set, and no_proxy does not cover node2\n");
  const Finding finding = examine(needs, here).front();
  EXPECT_NE(finding.why.find("takes http_proxy and https_proxy out"), std::string::npos);
  EXPECT_TRUE(finding.why.ends_with("but not ALL_PROXY")) << finding.why;
  EXPECT_EQ(finding.fix,
            "export no_proxy=\"${no_proxy:+$no_proxy,}node2\" "
            "NO_PROXY=\"${NO_PROXY:+$NO_PROXY,}node2\"");

  here.environment["NO_PROXY"] = "node2";
  EXPECT_EQ(heads(needs, here), "");
}

TEST(Doctor, NoProxyKnowsNetworksEndingsAndStars) {
  MadeUp here;
  here.names["a.lab.org"] = here.names["b.lab.org"] = found({"10.0.0.9"});
  const auto covered = [&](const std::string& no_proxy, const std::string& host) {
    here.environment = {{"https_proxy", "p"}, {"no_proxy", no_proxy}};
    return heads({.hosts = {host}}, here).empty();
  };
  EXPECT_TRUE(covered("*", "node2"));
  EXPECT_TRUE(covered(".lab.org", "a.lab.org"));
  EXPECT_TRUE(covered("lab.org", "a.lab.org"));
  EXPECT_TRUE(covered("*.lab.org", "a.lab.org"));
  EXPECT_FALSE(covered("b.lab.org,ab.org,", "a.lab.org"));
  EXPECT_TRUE(covered("0.0.0.0/0", "10.0.0.2"));
  EXPECT_TRUE(covered("10.0.0.2/32", "10.0.0.2"));
  EXPECT_FALSE(covered("10.0.1.0/24", "10.0.0.2"));
}

TEST(Doctor, ProxiesDoNotHurtArgosyItself) {
  MadeUp here;
  here.environment = {{"ALL_PROXY", "p"}};
  EXPECT_TRUE(heads({.command = {"bin/argosy", "infer"}}, here).starts_with("note: ALL_PROXY"));
}

TEST(Doctor, KnowsTheTrapOfALoopbackHostName) {
  MadeUp here;
  here.names["node1"] = found({"127.0.1.1"});
  EXPECT_EQ(heads({.hosts = {"127.0.0.1"}}, here), "") << "alone it does no harm";
  EXPECT_EQ(heads({.hosts = {"10.0.0.1", "node2"}}, here),
            "warning: node1, the name of this machine, resolves to 127.0.1.1, which is loopback\n");
  EXPECT_EQ(heads({.hosts = {"node1", "node2"}}, here),
            "error: node1 resolves to 127.0.1.1, in a job of several machines\n");
  EXPECT_EQ(heads({.hosts = {"127.0.0.1", "node2"}}, here),
            "error: 127.0.0.1 is in a job of several machines\n"
            "warning: node1, the name of this machine, resolves to 127.0.1.1, which is loopback\n");
  EXPECT_EQ(first_fix({.hosts = {"node1", "node2"}}, here),
            "sudo sed -i -E \"/^127/s/\\snode1(\\s|\\$)/ /; 1i $(hostname -I | cut -d' ' -f1) "
            "node1\" /etc/hosts");
}

TEST(Doctor, SaysWhichNamesDoNotResolveAndWhichAreSlow) {
  MadeUp here;
  here.names["node2"] = {.outcome = LookUp::Outcome::slow};
  EXPECT_EQ(heads({.hosts = {"node1", "node2", "node3"}}, here),
            "error: node3 does not resolve: Name or service not known\n"
            "warning: looking up node2 is slow, it was given up after 100 ms\n");
  here.names.erase("node1");
  EXPECT_EQ(heads({}, here),
            "note: node1, the name of this machine, does not resolve: Name or service not known\n");
  EXPECT_TRUE(heads({.hosts = {"10.0.0.2"}}, here).starts_with("warning: node1, the name"));
}

TEST(Doctor, AsksForNamesOnceAndNeverForAddresses) {
  MadeUp here;
  std::vector<std::string> asked;
  const auto inner = here.look_up;
  here.look_up = [&](const std::vector<std::string>& names, Deadline deadline) {
    EXPECT_LE(deadline, std::chrono::steady_clock::now() + 100ms);
    asked = names;
    return inner(names, deadline);
  };
  examine({.listen = {{"node2", 0}, {"::1", 0}}, .hosts = {"node2", "10.0.0.2", "node1"}}, here);
  EXPECT_EQ(asked, (std::vector<std::string>{"node2", "node1"}));
}

TEST(Doctor, SaysWhoHoldsAPort) {
  MadeUp here;
  here.listen_error = EADDRINUSE;
  const Needs needs{.listen = {{"node1", 6170}, {"node1", 0}}};
  here.owner = PortOwner{.pid = 4711, .command = "nginx -g"};
  EXPECT_EQ(heads(needs, here), "error: 10.0.0.1:6170 is taken by process 4711 (nginx -g)\n");
  EXPECT_EQ(first_fix(needs, here), "kill 4711");
  here.owner = std::nullopt;
  EXPECT_EQ(heads(needs, here),
            "error: 10.0.0.1:6170 is taken by a process that cannot be seen from here\n");
  EXPECT_EQ(first_fix(needs, here), "sudo ss -ltnp 'sport = :6170'");
}

TEST(Doctor, SaysThatAnAddressIsNotOfThisMachine) {
  MadeUp here;
  here.listen_error = EADDRNOTAVAIL;
  EXPECT_EQ(heads({.listen = {{"10.0.0.9", 6170}}}, here),
            "error: 10.0.0.9 is no address of this machine (127.0.0.1, 10.0.0.1)\n");
  here.listen_error = ENOBUFS;
  EXPECT_EQ(heads({.listen = {{"10.0.0.9", 6170}}}, here),
            "error: cannot listen on 10.0.0.9:6170: No buffer space available\n");
}

TEST(Doctor, WarnsOfPortsThatOutgoingConnectionsTake) {
  MadeUp here;
  here.reserved_ports = "40000-40002,50000";
  const Needs needs{.listen = {{"10.0.0.1", 6170},
                               {"10.0.0.1", 32768},
                               {"10.0.0.1", 40001},
                               {"10.0.0.1", 40003},
                               {"10.0.0.1", 50000},
                               {"10.0.0.1", 61000}}};
  EXPECT_EQ(heads(needs, here),
            "warning: port 32768,40003 is one of those for outgoing connections (32768 to "
            "60999)\n");
  EXPECT_EQ(first_fix(needs, here),
            "sudo sysctl -w net.ipv4.ip_local_reserved_ports=40000-40002,50000,32768,40003");
}

TEST(Doctor, LoopbackHasToWork) {
  MadeUp here;
  here.try_loopback = [] { return "cannot bind 127.0.0.1: down"; };
  EXPECT_EQ(heads({}, here), "error: loopback does not work: cannot bind 127.0.0.1: down\n");
}

TEST(Doctor, CountsFilesForConnections) {
  MadeUp here;
  const Needs needs{.processes = 10, .servers = 600, .workers = 600};
  EXPECT_EQ(heads(needs, here), "error: a process may open 1024 files, the job needs 2464\n");
  EXPECT_EQ(first_fix(needs, here), "ulimit -n 2464");
  here.most_open_files = 2000;
  EXPECT_EQ(first_fix(needs, here), "sudo prlimit --pid $$ --nofile=2464:2464");
  here.open_files = std::nullopt;
  EXPECT_EQ(heads(needs, here), "");
}

TEST(Doctor, CountsProcessesAndThreads) {
  MadeUp here;
  here.cores = 12;
  here.user_processes = 100;
  EXPECT_EQ(heads({.processes = 5}, here), "");
  EXPECT_EQ(heads({.processes = 6}, here),
            "warning: this user may have 100 processes and threads, the job may have 120\n");
  here.user_processes = std::nullopt;
  here.group.processes_left = 5;
  EXPECT_EQ(heads({.processes = 6}, here),
            "error: the control group has room for 5 processes and threads, the job may have "
            "120\n");
}

TEST(Doctor, WeighsMemoryAgainstProcesses) {
  MadeUp here;
  here.memory_available = 256 * kMebibyte;
  EXPECT_EQ(heads({.processes = 2}, here), "");
  EXPECT_EQ(heads({.processes = 4}, here), "warning: 256.0 MiB of memory left, for 4 processes\n");
  EXPECT_EQ(heads({.processes = 17}, here), "error: 256.0 MiB of memory left, for 17 processes\n");
  here.memory_available = 64 * kGibibyte;
  here.group.memory_left = 100 * kMebibyte;
  EXPECT_EQ(heads({}, here),
            "warning: 100.0 MiB of memory left to the control group, for 1 process\n");
  here.group.memory_left = std::nullopt;
  here.commit_left = kGibibyte;
  EXPECT_EQ(heads({.processes = 2}, here), "");
  EXPECT_EQ(heads({.processes = 3}, here),
            "warning: overcommit is forbidden and 1.0 GiB are left, for 3 processes\n");
  here.commit_left = std::nullopt;
  here.address_space = 100 * kMebibyte;
  EXPECT_EQ(heads({}, here), "warning: a process may have 100.0 MiB of addresses\n");
}

TEST(Doctor, LooksAtSharedMemory) {
  MadeUp here;
  here.folders["/dev/shm"] = {.existing = "/dev", .free_bytes = kGibibyte};
  EXPECT_EQ(heads({}, here), "note: /dev/shm is missing\n");
  here.folders["/dev/shm"] = {
      .existing = "/dev/shm", .problem = "Permission denied", .free_bytes = kGibibyte};
  EXPECT_EQ(heads({}, here), "note: /dev/shm cannot be written to\n");
  here.folders["/dev/shm"] = {.existing = "/dev/shm", .free_bytes = kMebibyte};
  EXPECT_EQ(heads({}, here), "note: /dev/shm has 1.0 MiB left\n");
}

TEST(Doctor, LooksAtFoldersAndTheirDisks) {
  MadeUp here;
  const Needs needs{.folders = {"a b/log"}};
  FolderState& state = here.folders["a b/log"];
  state = {.existing = "a b", .free_bytes = 100 * kMebibyte};
  EXPECT_EQ(heads(needs, here), "warning: the disk of a b/log has 100.0 MiB left\n");
  EXPECT_EQ(first_fix(needs, here), "df -h 'a b'");
  state.free_bytes = 1000;
  EXPECT_EQ(heads(needs, here), "error: the disk of a b/log has 1000 bytes left\n");
  state = {.existing = "a b", .free_bytes = kGibibyte, .free_inodes = 999};
  EXPECT_EQ(heads(needs, here), "warning: the disk of a b/log has room for 999 more files\n");
  state.free_inodes = 0;
  EXPECT_EQ(heads(needs, here), "error: the disk of a b/log has room for 0 more files\n");
  state = {.existing = "a b", .problem = "Permission denied"};
  EXPECT_EQ(heads(needs, here), "error: a b/log cannot be written to: a b: Permission denied\n");
  state.read_only = true;
  EXPECT_EQ(heads(needs, here),
            "error: a b/log cannot be written to: the file system of a b is read-only\n");
}

TEST(Doctor, NotesMoreProcessesThanCores) {
  MadeUp here;
  here.cores = 4;
  EXPECT_EQ(heads({.processes = 4}, here), "");
  EXPECT_EQ(heads({.processes = 5}, here), "note: 5 processes on 4 cores\n");
  here.group.cores = 2.5;
  EXPECT_EQ(heads({.processes = 4}, here), "note: 4 processes on 2.5 cores\n");
}

TEST(Doctor, KnowsWhatOldKernelsLack) {
  MadeUp here;
  const auto with = [&](const char* kernel) {
    here.kernel = kernel;
    return heads({}, here);
  };
  EXPECT_EQ(with("5.9.0"), "");
  EXPECT_EQ(with("10.0-rc1"), "");
  EXPECT_EQ(with("5.4.0-100-generic"),
            "warning: kernel 5.4.0-100-generic has no close_range, which came with 5.9\n");
  EXPECT_EQ(with("4.19.0"), "warning: kernel 4.19.0 has no pidfd_open, which came with 5.3\n");
}

TEST(Doctor, TheCommandHasToBeThere) {
  MadeUp here;
  EXPECT_EQ(heads({.command = {"nosuch"}}, here), "error: nosuch is nowhere\n");
  EXPECT_EQ(first_fix({.command = {"nosuch"}}, here), "");
  here.programs["./nosuch"] = {.path = "./nosuch", .exists = true};
  EXPECT_EQ(first_fix({.command = {"nosuch"}}, here), "./nosuch");
  here.programs["bin/x"] = {.path = "bin/x", .problem = "bin/x is not executable", .exists = true};
  EXPECT_EQ(first_fix({.command = {"bin/x"}}, here), "chmod +x bin/x");
}

TEST(Doctor, AScriptNeedsPython) {
  MadeUp here;
  EXPECT_EQ(heads({.command = {"train.py"}}, here), "error: ./train.py is nowhere\n");
  here.programs["./train.py"] = {
      .path = "./train.py", .problem = "./train.py is not executable", .exists = true};
  EXPECT_EQ(heads({.command = {"train.py"}}, here), "");
  here.programs.erase("python3");
  EXPECT_EQ(heads({.command = {"train.py"}}, here), "error: python3 is nowhere\n");
}

TEST(Doctor, RunsTheCheckOfATrainingForAllWorkers) {
  MadeUp here;
  const Needs needs{
      .servers = 1, .workers = 3, .command = {"bin/argosy", "train", "-m", "c", "-o", "a=b c"}};
  EXPECT_EQ(heads(needs, here), "");
  EXPECT_EQ(here.ran,
            (std::vector<std::vector<std::string>>{
                {"bin/argosy", "train", "--check", "--workers=3", "-m", "c", "-o", "a=b c"}}));
  here.child = {.ending = Ending{W_EXITCODE(1, 0)},
                .output = "a warning\nargosy: c: no such file\n"};
  EXPECT_EQ(heads(needs, here), "error: c: no such file\n");
  EXPECT_EQ(first_fix(needs, here), "bin/argosy train --check --workers=3 -m c -o 'a=b c'");
  here.child = {.ending = Ending{W_EXITCODE(106, 0)},
                .output = "-m is required\nRun with --help\n"};
  EXPECT_EQ(heads(needs, here), "error: -m is required\n");
  here.child = {.ending = Ending{W_EXITCODE(0, SIGKILL)}};
  EXPECT_EQ(heads(needs, here), "error: killed by signal 9 (Killed)\n");
}

TEST(Doctor, ACheckThatTakesTooLongIsNoError) {
  MadeUp here;
  here.child = {};
  EXPECT_EQ(heads({.command = {"argosy", "train", "-m", "c"}}, here),
            "note: the check of the model and its data did not finish within the time\n");
}

TEST(Doctor, RunsNothingElse) {
  MadeUp here;
  here.programs["./argosy.py"] = here.programs["sh"] = {.path = "x", .exists = true};
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"argosy"}, {"argosy", "infer"}, {"argosy.py", "train"}, {"sh", "train"}})
    EXPECT_EQ(heads({.command = command}, here), "");
  EXPECT_TRUE(here.ran.empty());
}

TEST(Doctor, GivesTheChildWhatIsLeftOfTheBudget) {
  MadeUp here;
  const auto latest = std::chrono::steady_clock::now() + 1h;
  here.run = [&](const std::vector<std::string>&, Deadline deadline) {
    EXPECT_GE(deadline, latest);
    EXPECT_LE(deadline, std::chrono::steady_clock::now() + 1h);
    return here.child;
  };
  examine({.command = {"argosy", "train"}, .budget = 1h}, here);
}

TEST(Doctor, ACheckThatFailsIsAFindingAndTheOthersGoOn) {
  MadeUp here;
  here.now = 0;
  here.look_up = [](const auto&, Deadline) -> std::vector<LookUp> {
    fail<IoError>("cannot start a process: Resource temporarily unavailable");
  };
  EXPECT_EQ(heads({}, here),
            "error: cannot start a process: Resource temporarily unavailable\n"
            "warning: the clock is before 2024\n");
}

TEST(Doctor, KnowsWhichHostsAreThisMachine) {
  MadeUp here;
  for (const char* host : {"localhost", "127.0.0.1", "127.1.2.3", "::1", "node1", "10.0.0.1"})
    EXPECT_TRUE(is_here(host, here)) << host;
  EXPECT_FALSE(is_here("node2", here));
  here.environment["POD_IP"] = "node2";
  EXPECT_TRUE(is_here("node2", here));
}

TEST(Doctor, ExaminesThisMachine) {
  const Surroundings here = this_surroundings();
  const Needs needs{.listen = {{"127.0.0.1", 0}}, .hosts = {"127.0.0.1"}, .processes = 1};
  const Findings findings = examine(needs, here);
  EXPECT_FALSE(has_errors(findings)) << text(findings);
  EXPECT_GT(here.memory_available, 0U);
  EXPECT_GT(here.cores, 0);
  EXPECT_TRUE(std::ranges::count(here.addresses, "127.0.0.1")) << text(facts(here));
}

}  // namespace
}  // namespace argosy
