#include "argosy/doctor/surroundings.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "argosy/base/descriptor.h"
#include "argosy/base/test_support.h"
#include "argosy/doctor/probes.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

Deadline generous() { return std::chrono::steady_clock::now() + 60s; }

/// A made-up /proc and /sys.
struct MadeUpRoot : TestFolder {
  void file(const std::string& path, const std::string& content) const {
    fs::create_directories(fs::path(this->path() + path).parent_path());
    write(path.substr(1), content);
  }
};

TEST(Surroundings, ReadsMemoryPortsAndCpu) {
  const MadeUpRoot root;
  root.file("/proc/meminfo",
            "MemTotal:        1000 kB\nMemFree:  10 kB\nMemAvailable:     500 kB\n"
            "CommitLimit:      800 kB\nCommitted_AS:     300 kB\n");
  root.file("/proc/cpuinfo", "processor : 0\nmodel name\t: A: B\n\nmodel name\t: C\n");
  root.file("/proc/sys/vm/overcommit_memory", "0\n");
  root.file("/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n");
  root.file("/proc/sys/net/ipv4/ip_local_reserved_ports", "6170-6180,8000\n");
  const Surroundings here = this_surroundings(root.path());
  EXPECT_EQ(here.memory, 1000U * 1024);
  EXPECT_EQ(here.memory_available, 500U * 1024);
  EXPECT_FALSE(here.commit_left);
  EXPECT_EQ(here.cpu_model, "A: B");
  EXPECT_EQ(here.outgoing_ports, std::pair(uint16_t{32768}, uint16_t{60999}));
  EXPECT_EQ(here.reserved_ports, "6170-6180,8000");

  root.file("/proc/sys/vm/overcommit_memory", "2\n");
  root.file("/proc/sys/net/ipv4/ip_local_reserved_ports", "\n");
  const Surroundings strict = this_surroundings(root.path());
  EXPECT_EQ(strict.commit_left, 500U * 1024);
  EXPECT_EQ(strict.reserved_ports, "");
}

TEST(Surroundings, KnowNothingOfWhatIsNotThere) {
  const MadeUpRoot root;
  const Surroundings here = this_surroundings(root.path());
  EXPECT_EQ(here.memory, 0U);
  EXPECT_FALSE(here.outgoing_ports);
  EXPECT_FALSE(here.group.memory_left);
  EXPECT_FALSE(here.group.processes_left);
  EXPECT_FALSE(here.group.cores);
}

TEST(GroupLimits, OfVersion2TakeTheStrictestLevel) {
  const MadeUpRoot root;
  root.file("/proc/self/cgroup", "0::/job/part\n");
  root.file("/proc/self/mountinfo",
            "23 1 0:22 / /sys rw - sysfs sysfs rw\n"
            "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  const std::string outer = "/sys/fs/cgroup/job/", inner = outer + "part/";
  root.file(inner + "memory.max", "max\n");
  root.file(inner + "memory.current", "300\n");
  root.file(outer + "memory.max", "1000\n");
  root.file(outer + "memory.current", "900\n");
  root.file(outer + "memory.stat", "anon 100\ninactive_file 400\n");
  root.file(inner + "cpu.max", "150000 100000\n");
  root.file(outer + "cpu.max", "max 100000\n");
  root.file(inner + "pids.max", "10\n");
  root.file(inner + "pids.current", "4\n");
  root.file(outer + "pids.max", "9\n");
  root.file(outer + "pids.current", "8\n");
  const GroupLimits limits = read_group_limits(root.path());
  EXPECT_EQ(limits.memory_left, 500U);
  EXPECT_EQ(limits.cores, 1.5);
  EXPECT_EQ(limits.processes_left, 1U);
}

TEST(GroupLimits, OfVersion1AreFoundByController) {
  const MadeUpRoot root;
  root.file("/proc/self/cgroup",
            "9:name=systemd:/x\n4:memory:/docker/abc\n2:cpu,cpuacct:/\n0::/\n");
  root.file("/proc/self/mountinfo",
            "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
            "35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  // In a container the group itself is what is mounted.
  root.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n");
  root.file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "900\n");
  root.file("/sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 100\n");
  root.file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
  root.file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  GroupLimits limits = read_group_limits(root.path());
  EXPECT_EQ(limits.memory_left, 200U);
  EXPECT_EQ(limits.cores, 0.5);
  EXPECT_FALSE(limits.processes_left);

  root.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  limits = read_group_limits(root.path());
  EXPECT_FALSE(limits.memory_left);
  EXPECT_FALSE(limits.cores);
}

TEST(ShortChild, GivesStatusAndErrors) {
  const ShortChild child =
      run_command({"sh", "-c", "echo out; echo error >&2; exit 3"}, generous());
  ASSERT_TRUE(child.ending);
  EXPECT_EQ(child.ending->exit_code(), 3);
  EXPECT_EQ(child.output, "error\n");
  const ShortChild missing = run_command({"/nonexistent/program"}, generous());
  ASSERT_TRUE(missing.ending);
  EXPECT_EQ(missing.ending->exit_code(), 127);
}

TEST(ShortChild, DoesNotOutliveItsDeadline) {
  const TestFolder folder;
  // Until it has been killed it holds the pipe open, which is named by a file.
  const std::string fifo = folder.path() + "/held";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const Descriptor reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const ShortChild child = run_command({"sh", "-c", "sleep 1000 > " + fifo + " & wait"},
                                       std::chrono::steady_clock::now() + 100ms);
  EXPECT_FALSE(child.ending);
  // No writer is left: the end of the file, and not "try again".
  const Deadline deadline = generous();
  char byte = 0;
  ssize_t got = -1;
  while ((got = ::read(reader.get(), &byte, 1)) < 0 && errno == EAGAIN &&
         std::chrono::steady_clock::now() < deadline)
    ::usleep(1000);
  EXPECT_EQ(got, 0);
}

TEST(LookUpNames, TellsFoundFromUnknownFromSlow) {
  const std::vector<std::string> names = {"127.0.0.1", "a..b", "::1"};
  const std::vector<LookUp> found = look_up_names(names, generous());
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].outcome, LookUp::Outcome::found);
  EXPECT_EQ(found[0].addresses, std::vector<std::string>{"127.0.0.1"});
  EXPECT_EQ(found[1].outcome, LookUp::Outcome::unknown);
  EXPECT_FALSE(found[1].error.empty());
  EXPECT_EQ(found[2].addresses, std::vector<std::string>{"::1"});
  const std::vector<LookUp> late = look_up_names(names, std::chrono::steady_clock::now());
  for (const LookUp& each : late) EXPECT_EQ(each.outcome, LookUp::Outcome::slow);
  EXPECT_TRUE(look_up_names({}, generous()).empty());
}

TEST(LookUpNames, TakesMoreNamesThanThreads) {
  const std::vector<std::string> names(100, "127.0.0.1");
  for (const LookUp& each : look_up_names(names, generous()))
    EXPECT_EQ(each.outcome, LookUp::Outcome::found);
}

TEST(Probes, LoopbackWorksHere) { EXPECT_EQ(try_loopback(), ""); }

TEST(Probes, ListenOnlyWhereNobodyDoes) {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(at);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&at), size), 0);
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  ASSERT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
  EXPECT_EQ(try_to_listen("127.0.0.1", ntohs(at.sin_port)), EADDRINUSE);
  EXPECT_EQ(try_to_listen("127.0.0.1", 0), 0);
  EXPECT_EQ(try_to_listen("203.0.113.1", 0), EADDRNOTAVAIL);
}

TEST(Probes, AFolderThatIsMissingIsItsParent) {
  const TestFolder folder;
  const FolderState state = look_at_folder(folder.path() + "/a/b");
  EXPECT_EQ(state.existing, folder.path());
  EXPECT_EQ(state.problem, "");
  EXPECT_FALSE(state.read_only);
  EXPECT_GT(state.free_bytes, 0U);
  const std::string file = folder.write("file", "");
  EXPECT_EQ(look_at_folder(file + "/log").problem, "is not a folder");
}

TEST(Probes, FindProgramsAsAShellDoes) {
  EXPECT_TRUE(find_program("sh").path.ends_with("/sh"));
  EXPECT_EQ(find_program("no-such-program").problem, "no-such-program is in no folder of PATH");
  const TestFolder folder;
  EXPECT_EQ(find_program(folder.path()).problem, folder.path() + " is a folder");
  EXPECT_FALSE(find_program(folder.path() + "/x").exists);
  const std::string file = folder.write("x", "#!/bin/sh\n");
  const FoundProgram found = find_program(file);
  EXPECT_TRUE(found.exists);
  EXPECT_EQ(found.problem, file + " is not executable");
  fs::permissions(file, fs::perms::owner_all);
  EXPECT_EQ(find_program(file).problem, "");
}

}  // namespace
}  // namespace argosy
