// The cost of fleetrun: until the first batch of a training, against the same processes started
// without it; after the last worker; while it waits; and while it shows what all processes print.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/own_folder.h"
#include "bench/bench.h"
#include "bench/processes.h"

namespace argosy::benches {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using Variables = std::map<std::string, std::string>;

constexpr int kServers = 2, kWorkers = 2;
constexpr size_t kLines = 200;  // that each process prints in a second
constexpr auto kLook = 1ms;
constexpr double kPatience = 60;  // seconds

constexpr const char* kConfig = R"(model: dnn
runner:
  train_data_dir: train
  reader: criteo
  sync_mode: async
  train_batch_size: 100
  epochs: 1
  print_interval: 1
  split_file_list: True
hyper_parameters:
  optimizer: {class: Adam, learning_rate: 0.001}
  sparse_feature_number: 100001
  sparse_feature_dim: 9
  fc_sizes: [64, 32]
)";

constexpr const char* kChatter = R"(
import sys, time
start, seconds, rate = time.time(), int(sys.argv[1]), int(sys.argv[2])
for n in range(seconds * rate):
    print("line", n, "of a process that has a lot to say about its training", flush=True)
    time.sleep(max(0, start + n / rate - time.time()))
)";

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// A line of a shell that runs in a folder, with its output in files there. It is killed with this.
class Program {
 public:
  Program(const fs::path& folder, const std::string& line, const Variables& variables = {}) {
    const std::string whole = "cd '" + folder.string() + "' && exec " + line;
    pid_ = ::fork();
    check<IoError>(pid_ >= 0, "cannot fork");
    if (pid_ != 0) return;
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    ::execl("/bin/sh", "sh", "-c", whole.c_str(), nullptr);
    ::_exit(127);
  }
  ~Program() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  bool running() {
    int status = 0;
    if (pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) != 0) {
      pid_ = -1;
      check<IoError>(status == 0, "a program of the benchmark failed");
    }
    return pid_ > 0;
  }
  /// Excludes children.
  double cpu_seconds() const {
    double nanoseconds = 0;
    std::ifstream("/proc/" + std::to_string(pid_) + "/schedstat") >> nanoseconds;
    return nanoseconds * 1e-9;
  }

 private:
  pid_t pid_;
};

void wait_until(const std::function<bool()>& condition) {
  const double deadline = seconds_now() + kPatience;
  while (!condition()) {
    check<IoError>(seconds_now() < deadline, "a program of the benchmark takes too long");
    std::this_thread::sleep_for(kLook);
  }
}

std::string program(const char* name) { return "'" + (own_folder() / name).string() + "' "; }
std::string train() { return program("argosy") + "train -m config.yaml"; }
std::string fleetrun() {
  return program("fleetrun") + "--server_num=2 --worker_num=2 --log_level=WARNING ";
}

struct Launched {
  double first_batch, stop;  // seconds
};

/// A training by fleetrun: until the first batch, and from the end of the last worker on.
Launched with_launcher(const fs::path& folder) {
  fs::remove_all(folder / "log");
  const double start = seconds_now();
  Program launcher(folder, fleetrun() + "--json " + train() + " >/dev/null 2>events");
  wait_until([&] {
    return content(folder / "log/workerlog.0").find("batch_id: 0,") != std::string::npos;
  });
  const double first_batch = seconds_now() - start;
  wait_until([&] {
    return occurrences(content(folder / "events"), R"("ended", "kind": "worker")") == kWorkers;
  });
  const double last_worker = seconds_now();
  wait_until([&] { return !launcher.running(); });
  return {first_batch, seconds_now() - last_worker};
}

/// Until the first batch when nobody but this starts the processes.
double without_launcher(const fs::path& folder) {
  fs::remove_all(folder / "alone");
  fs::create_directories(folder / "alone");
  std::vector<int> sockets;
  std::vector<Endpoint> servers(kServers);
  std::string list;
  for (Endpoint& at : servers) {
    sockets.push_back(listening_socket(at));
    list += (list.empty() ? "" : ",") + at.text();
  }
  const double start = seconds_now();
  std::vector<std::unique_ptr<Program>> programs;
  for (int i = 0; i < kServers + kWorkers; ++i) {
    const bool server = i < kServers;
    const int index = server ? i : i - kServers;
    Variables variables = {{"PADDLE_PSERVERS_IP_PORT_LIST", list},
                           {"PADDLE_TRAINERS_NUM", std::to_string(kWorkers)},
                           {"TRAINING_ROLE", server ? "PSERVER" : "TRAINER"}};
    if (server)
      variables.insert({{"POD_IP", "127.0.0.1"},
                        {"PADDLE_PORT", std::to_string(servers[static_cast<size_t>(i)].port)},
                        {"ARGOSY_LISTEN_FD", std::to_string(sockets[static_cast<size_t>(i)])}});
    else
      variables["PADDLE_TRAINER_ID"] = std::to_string(index);
    const std::string log = (server ? "server" : "worker") + std::to_string(index);
    programs.push_back(
        std::make_unique<Program>(folder, train() + " >alone/" + log + " 2>&1", variables));
  }
  for (const int socket : sockets) ::close(socket);
  wait_until(
      [&] { return content(folder / "alone/worker0").find("batch_id: 0,") != std::string::npos; });
  const double first_batch = seconds_now() - start;
  for (const auto& each : programs) wait_until([&] { return !each->running(); });
  return first_batch;
}

/// The share of a core that a launcher takes whose processes are silent.
double idle_share(const fs::path& folder) {
  Program launcher(folder, fleetrun() + "sleep 5 >/dev/null 2>&1");
  std::this_thread::sleep_for(1s);
  const double start = seconds_now(), cpu = launcher.cpu_seconds();
  std::this_thread::sleep_for(3s);
  const double share = (launcher.cpu_seconds() - cpu) / (seconds_now() - start);
  wait_until([&] { return !launcher.running(); });
  return share;
}

struct Chat {
  double seconds, cpu;
};

/// Servers and workers that have a lot to say.
Chat chat(const fs::path& folder, int64_t seconds, const std::string& flag) {
  const double start = seconds_now();
  Program launcher(folder, fleetrun() + flag + " python3 chatter.py " + std::to_string(seconds) +
                               " " + std::to_string(kLines) + " >shown 2>&1");
  double cpu = 0;
  wait_until([&] {
    cpu = std::max(cpu, launcher.cpu_seconds());
    return !launcher.running();
  });
  return {seconds_now() - start, cpu};
}

BenchResults run(const BenchFlags& flags) {
  const fs::path folder =
      fs::temp_directory_path() / ("argosy-bench-launch-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "config.yaml") << kConfig;
  std::ofstream(folder / "chatter.py") << kChatter;
  Program generator(
      folder,
      program("argosy") + "gen criteo --vocab 50 --rows 4000 --files 2 --out train >/dev/null");
  wait_until([&] { return !generator.running(); });
  std::vector<double> launched, alone, stops, beyond;
  for (int64_t round = 0; round < integer(flags, "rounds"); ++round) {
    const double before = without_launcher(folder);
    const Launched job = with_launcher(folder);
    alone.push_back((before + without_launcher(folder)) / 2);
    launched.push_back(job.first_batch);
    beyond.push_back(job.first_batch - alone.back());
    stops.push_back(job.stop);
  }
  const double idle = idle_share(folder);
  const int64_t seconds = integer(flags, "seconds");
  const Chat quiet = chat(folder, seconds, ""), loud = chat(folder, seconds, "--log-all");
  const size_t shown = occurrences(content(folder / "shown"), "\n");
  check<IoError>(shown == static_cast<size_t>(seconds) * kLines * (kServers + kWorkers),
                 "fleetrun --log-all has shown ", shown, " lines of the chatter, expected all");
  fs::remove_all(folder);
  return {{"first_batch_seconds", median(launched)},
          {"first_batch_seconds_without_launcher", median(alone)},
          {"start_cost_seconds", median(beyond)},
          {"stop_seconds", median(stops)},
          {"idle_share_of_a_core", idle},
          {"log_all_share_of_a_core", loud.cpu / loud.seconds},
          {"log_all_time_ratio", loud.seconds / quiet.seconds}};
}

}  // namespace

Bench launch() {
  return {.help = "what fleetrun costs: to start, to stop, while it waits and shows logs",
          .flags = {{"rounds", "5"}, {"seconds", "10"}},
          .run = run};
}

}  // namespace argosy::benches
