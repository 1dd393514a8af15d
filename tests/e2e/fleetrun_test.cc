// fleetrun as a user runs it: the program itself, with small scripts as servers and workers.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "argosy/base/test_support.h"
#include "argosy/plan/role.h"
#include "tests/e2e/launched.h"
#include "tests/e2e/loopback.h"

namespace {

namespace fs = std::filesystem;
using namespace argosy::launched;
using Variables = std::map<std::string, std::string>;

/// The role that a process with these variables takes.
std::string role_of(const Variables& variables) {
  const auto get = [&](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(std::string(name));
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
  return argosy::role_from_env(get).text();
}

class Fleetrun : public testing::Test {
 protected:
  /// The script is what every process runs, as `sh script`; the folder is its own.
  Outcome run(const std::string& flags, const std::string& script) const {
    return Launch(folder_.path(), marker(), with_script(flags, script)).wait();
  }
  std::string with_script(const std::string& flags, const std::string& script) const {
    folder_.write("script", kFunctions + script);
    return flags + " sh script";
  }
  std::string file(const std::string& name) const { return content(folder_.path() + "/" + name); }
  bool exists(const std::string& name) const { return fs::exists(folder_.path() + "/" + name); }
  std::string marker() const { return fs::path(folder_.path()).filename().string(); }

  /// Variables as `env` has printed them.
  Variables variables(const std::string& log) const {
    Variables found;
    std::istringstream lines(file(log));
    for (std::string line; std::getline(lines, line);)
      if (const size_t equals = line.find('='); equals != std::string::npos)
        found[line.substr(0, equals)] = line.substr(equals + 1);
    return found;
  }

  std::string left_running() const { return argosy::launched::left_running(marker()); }
  /// Those that scripts have noted in files called *.pid, dead or alive.
  std::string not_reaped() const {
    std::string found;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      if (entry.path().extension() == ".pid" && ::kill(std::stoi(content(entry)), 0) == 0)
        found += entry.path().filename().string() + " ";
    return found;
  }

  /// Shell functions for scripts: their name, waiting for a file, staying with a child process.
  static constexpr const char* kFunctions = R"(
if [ $TRAINING_ROLE = PSERVER ]; then me=server; else me=worker$PADDLE_TRAINER_ID; fi
await() { until [ -e "$1" ]; do sleep 0.01; done; }
stay() {
  sleep 1000 & echo $! > $me.child.pid
  echo $$ > $me.pid
  touch $me.up
  wait
}
)";

  const argosy::TestFolder folder_;
};

TEST_F(Fleetrun, TellsEveryProcessWhoItIs) {
  ::setenv("http_proxy", "http://proxy", 1);
  ::setenv("https_proxy", "http://proxy", 1);
  const Outcome outcome = run("--server_num=2 --worker_num 2 --env EXTRA='a b'", "env");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(outcome.errors, "");
  const auto server = variables("log/serverlog.1"), worker = variables("log/workerlog.1");
  const std::string servers = server.at("PADDLE_PSERVERS_IP_PORT_LIST");
  EXPECT_EQ(server.at("TRAINING_ROLE"), "PSERVER");
  EXPECT_EQ(server.at("PADDLE_TRAINERS_NUM"), "2");
  EXPECT_EQ(server.at("POD_IP"), "127.0.0.1");
  EXPECT_TRUE(servers.ends_with(",127.0.0.1:" + server.at("PADDLE_PORT"))) << servers;
  EXPECT_EQ(server.at("ARGOSY_LISTEN_FD"), "3");
  EXPECT_FALSE(server.contains("PADDLE_TRAINER_ID"));
  EXPECT_EQ(server.at("ARGOSY_PROGRESS_FD"), "4");
  EXPECT_EQ(worker.at("TRAINING_ROLE"), "TRAINER");
  EXPECT_EQ(worker.at("PADDLE_TRAINER_ID"), "1");
  EXPECT_EQ(worker.at("PADDLE_TRAINERS_NUM"), "2");
  EXPECT_EQ(worker.at("PADDLE_PSERVERS_IP_PORT_LIST"), servers);
  EXPECT_TRUE(
      worker.at("PADDLE_TRAINER_ENDPOINTS").ends_with(",127.0.0.1:" + worker.at("PADDLE_PORT")));
  EXPECT_EQ(worker.at("PADDLE_TRAINER_ENDPOINTS"), server.at("PADDLE_TRAINER_ENDPOINTS"));
  EXPECT_EQ(worker.at("ARGOSY_PROGRESS_FD"), "4");
  EXPECT_FALSE(worker.contains("ARGOSY_LISTEN_FD"));
  EXPECT_EQ(role_of(server),
            "server 1 of 2 at 127.0.0.1:" + server.at("PADDLE_PORT") + ", 2 workers");
  EXPECT_EQ(role_of(worker),
            "worker 1 of 2 at 127.0.0.1:" + worker.at("PADDLE_PORT") + ", 2 servers");
  for (const auto& one : {server, worker}) {
    EXPECT_EQ(one.at("EXTRA"), "a b");
    EXPECT_FALSE(one.contains("http_proxy") || one.contains("https_proxy"));
  }
}

TEST_F(Fleetrun, ServersInheritTheSocketsThatWorkersConnectTo) {
  folder_.write("train.py", R"(
import os, socket, sys
if os.environ["TRAINING_ROLE"] == "PSERVER":
    listening = socket.socket(fileno=int(os.environ["ARGOSY_LISTEN_FD"]))
    assert listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    assert listening.getsockname() == (os.environ["POD_IP"], int(os.environ["PADDLE_PORT"]))
    for _ in range(int(os.environ["PADDLE_TRAINERS_NUM"])):
        listening.accept()[0].sendall(os.environ["PADDLE_PORT"].encode())
else:
    for server in os.environ["PADDLE_PSERVERS_IP_PORT_LIST"].split(","):
        host, port = server.split(":")
        answer = socket.create_connection((host, int(port)), 30).recv(100).decode()
        print(sys.argv[1:], answer == port)
)");
  const Outcome outcome =
      Launch(folder_.path(), marker(), "--server_num=2 --worker_num=2 train.py -m --servers=x")
          .wait();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(outcome.output, "['-m', '--servers=x'] True\n['-m', '--servers=x'] True\n");
  EXPECT_EQ(file("log/workerlog.1"), outcome.output);
}

TEST_F(Fleetrun, ShowsTheFirstWorkerAndKeepsFreshLogsOfAll) {
  fs::create_directories(folder_.path() + "/logs/here");
  folder_.write("logs/here/workerlog.1", "of an earlier job\n");
  const Outcome outcome =
      run("--log_dir logs/here --server_num=1 --worker_num=2", "echo I am $me; echo error >&2");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(outcome.output, "I am worker0\nerror\n");
  EXPECT_EQ(file("logs/here/workerlog.0"), "I am worker0\nerror\n");
  EXPECT_EQ(file("logs/here/workerlog.1"), "I am worker1\nerror\n");
  EXPECT_EQ(file("logs/here/serverlog.0"), "I am server\nerror\n");
}

TEST_F(Fleetrun, SaysThatALogIsLostAndGoesOn) {
  Launch launch(
      folder_.path(), marker(),
      with_script("--server_num=1 --worker_num=1", "[ $me = server ] || { echo up; await go; }"));
  await([&] { return launch.output() == "up\n"; }, "the worker");
  fs::remove(folder_.path() + "/log/workerlog.0");
  const std::string text =
      "log/workerlog.0 is no longer the file that worker 0 writes to: what it says from now on is "
      "lost; the job goes on\n";
  await([&] { return launch.errors().find(text) != std::string::npos; }, "what is said of it");
  folder_.write("go", "");
  const Outcome outcome = launch.wait();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(outcome.errors.find(text), outcome.errors.rfind(text)) << outcome.errors;
}

TEST_F(Fleetrun, TellsAllTheirJob) {
  const Outcome outcome = run("--job_id=night --server_num=1 --worker_num=1", "env");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_NE(role_of(variables("log/serverlog.0")).find(", job 'night'"), std::string::npos);
  EXPECT_NE(role_of(variables("log/workerlog.0")).find(", job 'night'"), std::string::npos);
}

TEST_F(Fleetrun, MergesTheProgressOfAllWorkers) {
  const Outcome outcome = run("--server_num=1 --worker_num=2", R"(
[ $me = server ] && exit
echo worker=$PADDLE_TRAINER_ID epoch=1 epochs=2 step=34$PADDLE_TRAINER_ID steps=1000 \
  samples=1000 seconds=2 loss=0.$((4 + 2 * PADDLE_TRAINER_ID)) >&$ARGOSY_PROGRESS_FD
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_TRUE(
      outcome.output.ends_with("epoch 1/2  step 340..341/1000  loss 0.5000  1,000 samples/s\n"))
      << outcome.output;
}

TEST_F(Fleetrun, FirstFailureStopsAllAndLeavesNoProcess) {
  const Outcome outcome = run("--server_num=1 --worker_num=3", R"(
[ $me = worker1 ] || stay
await server.up; await worker0.up; await worker2.up
echo first; echo the cause
exit 3
)");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.errors,
            "fleetrun: worker 1 failed: exit status 3; log/workerlog.1 ends with:\n"
            "  first\n  the cause\n");
  EXPECT_EQ(not_reaped(), "");
  EXPECT_EQ(left_running(), "");
}

TEST_F(Fleetrun, ServerThatFailsStopsTheWorkers) {
  const Outcome outcome = run("--server_num=1 --worker_num=1", R"(
[ $me = server ] || stay
await worker0.up; kill -SEGV $$
)");
  EXPECT_EQ(outcome.exit_code, 128 + SIGSEGV);
  EXPECT_NE(outcome.errors.find("server 0 failed: killed by signal 11"), std::string::npos)
      << outcome.errors;
  EXPECT_EQ(not_reaped(), "");
}

TEST_F(Fleetrun, KillsWhatDoesNotEndWithinTheGrace) {
  const Outcome outcome = run("--server_num=1 --worker_num=2 --grace 0.1", R"(
[ $me = worker0 ] && { await worker1.up; await server.up; exit 4; }
trap '' TERM
stay
while :; do sleep 0.01; done
)");
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_NE(outcome.errors.find("did not end in time, killed: server 0, worker 1\n"),
            std::string::npos)
      << outcome.errors;
  EXPECT_EQ(not_reaped(), "");
  EXPECT_EQ(left_running(), "");
}

TEST_F(Fleetrun, ServersThatStayAreEndedAfterTheWorkers) {
  const Outcome outcome = run("--server_num=1 --worker_num=2 --grace 0.2", R"(
[ $me = server ] && stay
await server.up
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(not_reaped(), "");
}

TEST_F(Fleetrun, PassesSignalsOn) {
  for (const int signal : {SIGTERM, SIGINT}) {
    for (const char* name : {"server.up", "worker0.up", "worker1.up"})
      fs::remove(folder_.path() + "/" + name);
    Launch launch(folder_.path(), marker(), with_script("--server_num=1 --worker_num=2", R"(
trap 'echo INT > $me.got; kill $(cat $me.child.pid); exit 0' INT
trap 'echo TERM > $me.got; kill $(cat $me.child.pid); exit 0' TERM
stay
)"));
    await([&] { return exists("server.up") && exists("worker0.up") && exists("worker1.up"); },
          "the processes");
    launch.signal(signal);
    const Outcome outcome = launch.wait();
    EXPECT_EQ(outcome.exit_code, 128 + signal) << outcome.errors;
    for (const char* name : {"server.got", "worker0.got", "worker1.got"})
      EXPECT_EQ(file(name), signal == SIGINT ? "INT\n" : "TERM\n") << name;
    EXPECT_EQ(not_reaped(), "");
    EXPECT_EQ(left_running(), "");
  }
}

TEST_F(Fleetrun, SecondSignalKills) {
  Launch launch(folder_.path(), marker(),
                with_script("--server_num=1 --worker_num=1 --grace=1000", R"(
trap 'touch $me.got' TERM
stay
while :; do sleep 0.01; done
)"));
  await([&] { return exists("server.up") && exists("worker0.up"); }, "the processes");
  launch.signal(SIGTERM);
  await([&] { return exists("server.got") && exists("worker0.got"); }, "the signal");
  launch.signal(SIGTERM);
  EXPECT_EQ(launch.wait().exit_code, 128 + SIGTERM);
  EXPECT_EQ(not_reaped(), "");
}

TEST_F(Fleetrun, LeavesNothingWhenItIsKilledItself) {
  Launch launch(folder_.path(), marker(), with_script("--server_num=1 --worker_num=1", "stay"));
  await([&] { return exists("server.up") && exists("worker0.up"); }, "the processes");
  EXPECT_NE(left_running(), "");
  launch.signal(SIGKILL);
  EXPECT_EQ(launch.wait().exit_code, -1);
  await([&] { return left_running().empty(); }, "the end of the processes");
}

TEST_F(Fleetrun, EndsWhatHasLeftItsGroup) {
  const std::string script = "setsid sh -c 'touch away.$0; exec sleep 1000' $me & await away.$me\n";
  const Outcome outcome = run("--server_num=1 --worker_num=1", script);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(left_running(), "");
  Launch launch(folder_.path(), marker(),
                with_script("--server_num=1 --worker_num=1", script + "stay"));
  await([&] { return exists("server.up") && exists("worker0.up"); }, "the processes");
  launch.signal(SIGKILL);
  EXPECT_EQ(launch.wait().signal, SIGKILL);
  await([&] { return left_running().empty(); }, "the end of the processes");
}

TEST_F(Fleetrun, EndsWithAnMpirunThatIsKilled) {
  Launch mpirun(folder_.path(), marker(), with_script("--server_num=1 --worker_num=1", "stay"),
                R"(env OMPI_COMM_WORLD_SIZE=1 sh -c '"$0" "$@" & wait')");
  await([&] { return exists("server.up") && exists("worker0.up"); }, "the processes");
  mpirun.signal(SIGKILL);
  EXPECT_EQ(mpirun.wait().signal, SIGKILL);
  await([&] { return left_running().empty(); }, "the end of the processes");
  EXPECT_NE(mpirun.errors().find("what started this launcher is gone, stopping"), std::string::npos)
      << mpirun.errors();
}

TEST_F(Fleetrun, SaysWhichAddressIsTaken) {
  const argosy::e2e::Loopback socket;
  const std::string taken = socket.address();
  const Outcome outcome =
      run("--servers=127.0.0.1:0," + taken + " --workers=127.0.0.1", "touch started");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(outcome.errors.starts_with("error: " + taken + " is taken by process " +
                                         std::to_string(::getpid())))
      << outcome.errors;
  EXPECT_FALSE(exists("started"));
}

TEST_F(Fleetrun, DryRunPrintsAndStartsNothing) {
  const Outcome outcome =
      Launch(folder_.path(), marker(),
             "--dry-run --server_num 2 --worker_num=2 --env A=1 --env 'B=a b' -- sh -c 'touch it'")
          .wait();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  const std::string& plan = outcome.output;
  EXPECT_TRUE(plan.starts_with("2 servers, 2 workers; logs in log/\nserver 0 > log/serverlog.0\n"))
      << plan;
  EXPECT_NE(plan.find("worker 1 > log/workerlog.1\n  A=1\n"), std::string::npos) << plan;
  EXPECT_NE(plan.find("  B='a b'\n"), std::string::npos) << plan;
  EXPECT_TRUE(plan.ends_with("/sh -c 'touch it'\n")) << plan;
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(Fleetrun, RefusesInOneLine) {
  const auto refusal = [&](const std::string& arguments) {
    const Outcome outcome = Launch(folder_.path(), marker(), arguments).wait();
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    return outcome.errors;
  };
  EXPECT_EQ(refusal("--server_num=1 --worker_num=1"),
            "fleetrun: no command, expected a program behind the flags\n");
  EXPECT_EQ(refusal("--servr_num=1 --worker_num=1 true"),
            "fleetrun: unknown flag --servr_num, did you mean --server_num?\n");
  EXPECT_EQ(refusal("--worker_num=1 true"),
            "fleetrun: no servers, expected --server_num or --servers\n");
  EXPECT_EQ(refusal("--server_num=1 --worker_num=1 --env PADDLE_PORT=1 true"),
            "fleetrun: --env PADDLE_PORT=1: fleetrun sets this one itself\n");
  folder_.write("log", "");
  EXPECT_EQ(refusal("--server_num=1 --worker_num=1 true"),
            "fleetrun: cannot make the folder log: Not a directory\n");
  EXPECT_EQ(refusal("--server_num=x --worker_num=1 true"),
            "fleetrun: Could not convert: --server_num = x\n");
  EXPECT_EQ(refusal("--server_num=1 --worker_num=1 absent.py"),
            "fleetrun: there is no script absent.py, expected a file, or one of argosy's tools: "
            "tools/trainer.py, tools/static_trainer.py, tools/static_ps_trainer.py\n");
  EXPECT_EQ(
      refusal("--elastic_server=a:1 true"),
      "fleetrun: --elastic_server has no meaning here: there is no etcd; --max_restart starts "
      "failed processes again\n");
  EXPECT_EQ(refusal("--servers=127.0.0.1:7000,127.0.0.1:7000 --worker_num=1 true"),
            "fleetrun: --servers: endpoints '127.0.0.1:7000,127.0.0.1:7000': 127.0.0.1:7000 comes "
            "twice, expected each once\n");
  EXPECT_EQ(refusal("--servers=127.0.0.1 --worker_num=1 true"),
            "fleetrun: --servers: endpoint '127.0.0.1': expected HOST:PORT, such as 10.0.0.1:7000, "
            "[::1]:7000 or name:7000\n");
  const std::string many = refusal("--server_num=1 --worker_num=20000 true");
  EXPECT_TRUE(many.starts_with("fleetrun: the job starts 20001 processes here, but this machine "))
      << many;
}

}  // namespace
