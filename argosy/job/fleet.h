#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/data/file_dataset.h"
#include "argosy/plan/role.h"
#include "argosy/train/meter.h"
#include "argosy/train/trainer.h"

// Distributed training in the words of Paddle's Fleet. By servers and workers:
//
//   Fleet fleet(*env);
//   fleet.init();
//   fleet.distributed_optimizer({.rule = "sgd"}, strategy).minimize(model);
//   if (fleet.is_server()) {
//     fleet.init_server();
//     fleet.run_server();
//   } else {
//     fleet.init_worker();
//     fleet.trainer().fit(data, {.join = [&](MetricTally& metrics) { fleet.join(metrics); }});
//     fleet.stop_worker();
//   }
//
// By ranks without servers, or by one process alone:
//
//   fleet.init(is_collective);
//   fleet.distributed_optimizer({.rule = "adam"}).minimize(model);
//   fleet.trainer().fit(data, {.join = [&](MetricTally& metrics) { fleet.join(metrics); }});
namespace argosy {

struct ASyncConfigs {
  int k_steps = 0;            // 0: async; above: geo, batches between two exchanges
  bool geo_sum = false;       // geo: the sum of the workers' differences, not their mean
  int max_merge_var_num = 1;  // async: gradients summed for one push
  int send_queue_size = 16;   // async: exchanges in flight
  int thread_pool_size = 1;   // of no effect: sending takes no threads but the transport's
  bool independent_recv_thread = false;   // of no effect: no thread that computes receives
  int min_send_grad_num_before_recv = 1;  // of no effect: the answer to a push brings parameters
  bool half_async = false;                // the threads of a worker end each step together
  bool launch_barrier = true;             // init_worker returns when all workers have come
};

struct GradientMergeConfigs {
  int k_steps = 1;  // batches that make a step
  bool avg = true;  // their mean; false: their sum
};

struct LarsConfigs {
  double lars_coeff = 0.001, lars_weight_decay = 0.0005, epsilon = 0;
  std::vector<std::string> exclude_from_weight_decay = {};  // parts of parameters' names
};

struct LambConfigs {
  double lamb_weight_decay = 0.01;
  std::vector<std::string> exclude_from_weight_decay = {};  // parts of parameters' names
};

/// How to distribute. By default async with servers, the mean of gradients between ranks.
struct DistributedStrategy {
  /// Bytes, as 2G or 512M, that the rows of all tables may take in the memory of each process that
  /// has them; the rest is on its disk. Empty: no limit.
  std::string memory_limit = {};
  // With servers; ignored in a process without a job.
  bool a_sync = true;  // false: all workers end each step together
  ASyncConfigs a_sync_configs = {};

  // Between ranks; refused with servers.
  std::string gradient_scale = "avg";  // or sum
  bool gradient_merge = false;
  GradientMergeConfigs gradient_merge_configs = {};
  bool fp16_allreduce = false;
  std::string fp16_allreduce_type = "bf16";  // or f16
  bool fuse_all_reduce_ops = true;
  std::optional<double> fuse_grad_size_in_MB = {};  // none: chosen by the sizes of gradients
  bool lars = false;                                // momentum becomes lars
  LarsConfigs lars_configs = {};
  bool lamb = false;  // adam becomes lamb
  LambConfigs lamb_configs = {};
  std::string embedding_mode = "replicated";  // or sharded: each rank has a part of every table
  /// Sums in rank order: the same bits on every backend and, with no other setting, those of one
  /// process that accumulates all ranks' batches.
  bool deterministic = false;
  bool sync_batch_norm = false;                 // statistics of a batch over all ranks
  bool use_hierarchical_allreduce = false;      // sums inside of hosts, then between them
  int hierarchical_allreduce_inter_nranks = 1;  // above 1: what every host must have

  // Not implemented: switching one on is an error that says so.
  bool amp = false, recompute = false, localsgd = false, adaptive_localsgd = false, dgc = false,
       sharding = false, pipeline = false, tensor_parallel = false, elastic = false, asp = false,
       heter_ccl_mode = false, adam_d2sum = false, is_fl_ps_mode = false, with_coordinator = false,
       auto_ = false;
};
/// Throws ConfigError naming a switched-on field that docs/reference/strategies.md says is refused.
void refuse_what_is_not_there(const DistributedStrategy& strategy);
/// With servers. Throws ConfigError naming the fields that do not go together.
Strategy strategy_of(const DistributedStrategy& strategy, int threads = 1);
/// Between ranks.
Strategy collective_strategy_of(const DistributedStrategy& strategy, int threads = 1);
/// Changes the optimizer and the parameters' own rules for lars and lamb. Throws ConfigError for an
/// optimizer that they do not apply to.
void apply_large_batch_rules(const DistributedStrategy& strategy,
                             std::span<const std::string> parameters, Optimizer& optimizer,
                             TablesOptions& tables);

class Fleet;
class Job;
class StatusReport;

/// For Fleet::init(is_collective).
enum class Collectively : uint8_t {};
inline constexpr Collectively is_collective{};
/// Order of sums over ranks on several hosts that no strategy governs; on one host it is always
/// rank order.
enum class Sums : uint8_t { in_any_order, in_order_of_ranks };

/// An optimizer that knows its fleet.
class DistributedOptimizer {
 public:
  /// Sets what the job trains; the same in every process. The fleet overrides the optimizer, the
  /// mode and the connection of the options.
  void minimize(Model model, TrainerOptions options = {});

 private:
  friend class Fleet;
  DistributedOptimizer(Fleet& fleet, Optimizer optimizer, DistributedStrategy strategy)
      : fleet_(fleet), optimizer_(std::move(optimizer)), strategy_(std::move(strategy)) {}

  Fleet& fleet_;
  Optimizer optimizer_;
  DistributedStrategy strategy_;
};

/// Calls that workers make together: all of them, in the same order.
class FleetUtil {
 public:
  /// mode: sum, min or max. Every worker gets the same bits.
  double all_reduce(double value, std::string_view mode = "sum");
  std::vector<double> all_reduce(std::vector<double> values, std::string_view mode = "sum");
  /// By worker.
  std::vector<double> all_gather(double value);
  void barrier();
  /// This worker's share: contiguous, the first (files % workers) take one more.
  std::vector<std::string> get_file_shard(std::span<const std::string> files) const;
  void print_on_rank(std::string_view message, int rank) const;

 private:
  friend class Fleet;
  explicit FleetUtil(Fleet& fleet) : fleet_(fleet) {}
  Fleet& fleet_;
};

/// A Job in the terms of Paddle: built in main and passed down. Without roles in the environment
/// every call works locally, with this process as the only worker. Worker calls throw ConfigError
/// in a server and vice versa. A restarted worker makes the same calls from the beginning; those
/// that had completed before are not repeated, and return what they returned then. The environment
/// must outlive it. Not thread-safe.
class Fleet {
 public:
  explicit Fleet(Env& env, std::FILE* out = stdout);
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  /// Reads the role from the environment of the process; see role_from_env.
  void init();
  /// For training without servers: ConfigError if the environment lists some.
  void init(Collectively, Sums sums = Sums::in_any_order);
  void init(Role role);

  const Role& role() const;
  bool is_server() const { return role().is_server(); }
  bool is_worker() const { return role().is_worker(); }
  bool is_first_worker() const { return role().first_worker(); }
  int worker_index() const;
  int worker_num() const { return role().worker_num; }
  int server_index() const;
  int server_num() const { return static_cast<int>(role().servers.size()); }
  std::vector<std::string> worker_endpoints() const;  // empty where only their number is known
  std::vector<std::string> server_endpoints() const;

  /// The ranks of a job without servers, or this process alone. The first call meets them.
  comm::Group& group();
  /// Shown by `argosy status` for a rank without a trainer; null before group().
  std::shared_ptr<Activity> activity() const { return activity_; }

  /// Call its minimize() to set what is trained.
  DistributedOptimizer distributed_optimizer(Optimizer optimizer,
                                             const DistributedStrategy& strategy = {});

  // For servers.

  /// Loads this server's part of a save, made by any number of servers, before it serves: rows,
  /// parameters, optimizer state and the step. The epoch and the model's states (running means)
  /// come with a worker's load_model().
  void init_server(const std::string& model_dir = "");
  /// Prints "Server listening on IP:PORT" and serves until all workers have left, or until SIGTERM
  /// or SIGINT.
  void run_server();

  // For workers.

  /// Connects, and with launch_barrier waits for all workers. The trainer may be used before it:
  /// initial values come from the servers, whichever worker comes first.
  void init_worker();
  /// Trains what minimize() was given. The first call connects.
  Trainer& trainer();
  /// For a restarted worker: how many of its batches the servers already have. That many first
  /// steps of the trainer compute and change nothing, so that a program which reads the same data
  /// again continues where it was.
  uint64_t last_step();
  /// Waits for every worker.
  void barrier_worker();
  /// Leaves the job once everything sent has been applied; no process waits for this worker any
  /// more. A process that just exits leaves too, after ARGOSY_QUIET.
  void stop_worker();

  /// Worker 0 saves or loads the shared model; the others wait. The model's states (running means)
  /// are worker 0's. A job restores only the epoch of a ResumePoint: each worker has its own data.
  void save_persistables(const std::string& dir, const ResumePoint& resume = {});
  ResumePoint load_model(const std::string& dir);
  /// Trainer::export_inference by the first worker.
  void save_inference_model(const std::string& dir, std::vector<std::string> predictions = {});
  /// Drops rows that were not seen for so long and returns how many; see TableStore::shrink.
  size_t shrink(uint32_t threshold);

  FleetUtil util() { return FleetUtil(*this); }
  /// Merges the metrics of all workers into `metrics`, for FitOptions::join.
  void join(MetricTally& metrics);
  /// A meter's value over what all workers have observed: metric("auc", {predictions, labels}).
  double metric(std::string_view meter, const Observations& mine);
  /// The bytes of all workers, in worker order.
  std::vector<std::vector<std::byte>> gather(const std::string& name,
                                             std::span<const std::byte> mine);

 private:
  friend class DistributedOptimizer;
  friend class FleetUtil;

  bool shared() const { return role().kind != RoleKind::local; }
  bool collective() const { return role().is_rank() || collective_; }
  void need_worker(std::string_view call) const;
  void need_server(std::string_view call) const;
  void take_device();
  void minimize(Model model, TrainerOptions options, const DistributedStrategy& strategy);
  Job& job();
  template <class Task>
  bool first_worker_does(const std::string& what, Task task);

  Env& env_;
  std::FILE* out_;
  std::optional<Role> role_;
  Model model_;
  TrainerOptions options_;
  bool launch_barrier_ = true, left_ = false, collective_ = false,
       met_ = false;  // met_: with the ranks
  Sums sums_ = Sums::in_any_order;
  std::string model_dir_;             // of init_server
  std::unique_ptr<Job> job_;          // made when first used
  std::unique_ptr<Trainer> trainer_;  // talks over the job's wires
  std::shared_ptr<Activity> activity_;
  std::unique_ptr<StatusReport> status_;
};

/// Shuffles the loaded instances of all workers among all of them: each instance ends up in exactly
/// one. Every worker passes the same seed. Loads the data first if that has not happened.
void global_shuffle(InMemoryDataset& data, Fleet& fleet, uint64_t seed = 0);

}  // namespace argosy
