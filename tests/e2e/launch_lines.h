#pragma once

#include <ostream>
#include <string>
#include <vector>

/// Every launch line of the documents that argosy answers to, and a script for them to run.
namespace argosy::e2e {

/// A launch line as printed, with the placeholders filled in.
struct LaunchLine {
  std::string name, flags;
  std::string cards = {};               // CUDA_VISIBLE_DEVICES
  std::vector<std::string> hosts = {};  // those to plan for, where there are several
  std::string script = "train.py";

  friend void PrintTo(const LaunchLine& line, std::ostream* out) { *out << line.name; }
};

inline const std::string kServers = R"(--servers="10.0.0.1:6170,10.0.0.2:6171" )";
inline const std::string kEightWorkers =
    R"(--workers="10.0.0.1:6172,10.0.0.1:6173,10.0.0.1:6174,10.0.0.1:6175,)"
    R"(10.0.0.2:6176,10.0.0.2:6177,10.0.0.2:6178,10.0.0.2:6179")";
inline const std::vector<std::string> kTwoHosts = {"10.0.0.1", "10.0.0.2"};

inline std::vector<LaunchLine> launch_lines() {
  return {
      {.name = "000_launch_ps", .flags = "--worker_num 2 --server_num 2"},
      {.name = "002_one_card", .flags = "--gpus=0"},
      {.name = "002_one_visible_card", .flags = "", .cards = "0"},
      {.name = "002_four_cards", .flags = "--gpus=0,1,2,3"},
      {.name = "002_four_visible_cards", .flags = "", .cards = "0,1,2,3"},
      {.name = "002_two_machines_with_cards",
       .flags = R"(--ips="10.0.0.1,10.0.0.2" --gpus=0,1,2,3)",
       .hosts = kTwoHosts},
      {.name = "002_two_machines_with_visible_cards",
       .flags = R"(--ips="10.0.0.1,10.0.0.2")",
       .cards = "0,1,2,3",
       .hosts = kTwoHosts},
      {.name = "002_two_machines", .flags = R"(--ips="10.0.0.1,10.0.0.2")", .hosts = kTwoHosts},
      {.name = "002_servers", .flags = "--server_num=1 --worker_num=4"},
      {.name = "002_servers_of_two_machines",
       .flags = kServers + R"(--workers="10.0.0.1,10.0.0.1,10.0.0.1,10.0.0.1,)"
                           R"(10.0.0.2,10.0.0.2,10.0.0.2,10.0.0.2")",
       .hosts = kTwoHosts},
      {.name = "002_servers_of_two_machines_with_ports",
       .flags = kServers + kEightWorkers,
       .hosts = kTwoHosts},
      {.name = "002_servers_with_cards",
       .flags = "--server_num=2 --worker_num=4",
       .cards = "0,1,2,3"},
      {.name = "002_servers_with_one_card", .flags = "--server_num=2 --worker_num=2", .cards = "0"},
      {.name = "002_servers_and_a_card_on_two_machines",
       .flags = kServers + R"(--workers="10.0.0.1:6172,10.0.0.2:6173")",
       .cards = "0",
       .hosts = kTwoHosts},
      {.name = "002_servers_and_four_cards_on_two_machines",
       .flags = kServers + kEightWorkers,
       .cards = "0,1,2,3",
       .hosts = kTwoHosts},
      {.name = "002_heterogeneous",
       .flags = "--server_num=2 --worker_num=2 --heter_worker_num=2",
       .cards = "0,1"},
      {.name = "003_ctr_app", .flags = "--server_num=1 --worker_num=2", .script = "ctr_app.py"},
      {.name = "004_servers",
       .flags = "--worker_num=1 --server_num=1",
       .script = "tools/static_ps_trainer.py -m models/rank/dnn/config.yaml"},
      {.name = "004_servers_of_two_machines",
       .flags =
           R"(--workers="10.0.0.1:6172,10.0.0.2:6173" --servers="10.0.0.1:6170,10.0.0.2:6171")",
       .hosts = kTwoHosts,
       .script = "tools/static_ps_trainer.py -m models/rank/dnn/config.yaml"},
      {.name = "004_dynamic", .flags = "", .script = "../../../tools/trainer.py -m config.yaml"},
      {.name = "004_static",
       .flags = "",
       .script = "../../../tools/static_trainer.py -m config.yaml"},
      {.name = "004_dynamic_of_two_machines",
       .flags = R"(--ips="10.0.0.1,10.0.0.2" --gpus 0,1,2,3,4,5,6,7)",
       .hosts = kTwoHosts,
       .script = "../../../tools/trainer.py -m config.yaml"},
      {.name = "004_static_of_two_machines",
       .flags = R"(--ips="10.0.0.1,10.0.0.2" --gpus 0,1,2,3,4,5,6,7)",
       .hosts = kTwoHosts,
       .script = "../../../tools/static_trainer.py -m config.yaml"},
  };
}

/// Everyone has a place and finds the others: workers reach every server, ranks reach rank 0, and
/// each over the socket that its peer has inherited.
inline constexpr const char* kTalkingScript = R"(
import os, socket
env = os.environ
def peers(name):
    return [(at.rsplit(":", 1)[0], int(at.rsplit(":", 1)[1])) for at in env[name].split(",") if at]
def answer(times):
    listening = socket.socket(fileno=int(env["ARGOSY_LISTEN_FD"]))
    for _ in range(times):
        listening.accept()[0].sendall(b"here")
def ask(at):
    assert socket.create_connection(at, 60).recv(4) == b"here"
role, workers = env.get("TRAINING_ROLE", "RANK"), peers("PADDLE_TRAINER_ENDPOINTS")
assert len(workers) == int(env["PADDLE_TRAINERS_NUM"])
if role == "RANK":
    assert peers("PADDLE_CURRENT_ENDPOINT") == [workers[int(env["PADDLE_TRAINER_ID"])]]
    if env["PADDLE_TRAINER_ID"] == "0": answer(len(workers) - 1)
    else: ask(workers[0])
elif role == "TRAINER":
    for at in peers("PADDLE_PSERVERS_IP_PORT_LIST") + peers("PADDLE_HETER_TRAINER_IP_PORT_LIST"): ask(at)
else:
    answer(len(workers))
print(role, env.get("FLAGS_selected_gpus"), env.get("CUDA_VISIBLE_DEVICES"))
)";

}  // namespace argosy::e2e
