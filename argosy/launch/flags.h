#pragma once

#include <optional>
#include <string>
#include <vector>

namespace argosy::launch {

/// The command line of fleetrun as it was typed.
struct Flags {
  std::optional<int> server_num = {}, worker_num = {}, coordinator_num = {}, nproc_per_node = {},
                     http_port = {}, start_port = {}, nnodes = {}, rank = {};
  std::string heter_worker_num = {}, heter_devices = {};  // by stage: "2;2", "gpu;cpu"
  // "host:port,host:port"; those of workers may be missing, stages are separated by semicolons
  std::string servers = {}, workers = {}, heter_workers = {}, coordinators = {};
  std::string ips = {}, gpus = {}, backend = {}, run_mode = {}, master = {}, job_id = "default";
  std::string log_dir = "log", log_level = "INFO";
  bool log_all = false, json = false, dry_run = false;
  std::vector<std::string> env = {};  // "NAME=VALUE", for every process
  double timeout = 300, grace = 10;   // seconds
  int max_restart = 0;
  bool resume = false;
  std::string durability = {}, log_path = {};
  std::vector<std::string> command = {};
};

}  // namespace argosy::launch
