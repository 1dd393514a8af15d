#include "argosy/job/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "argosy/base/bytes.h"
#include "argosy/base/error.h"
#include "argosy/base/memory_size.h"
#include "argosy/comm/group.h"
#include "argosy/device/devices.h"
#include "argosy/job/job.h"

namespace argosy {
namespace {

/// Servers may run in other folders.
std::string absolute(const std::string& dir) { return std::filesystem::absolute(dir).string(); }

std::vector<std::string> texts(const std::vector<Endpoint>& endpoints) {
  std::vector<std::string> result;
  result.reserve(endpoints.size());
  for (const Endpoint& endpoint : endpoints) result.push_back(endpoint.text());
  return result;
}

/// Refuses settings of ranks in jobs without ranks, rather than ignore them.
void refuse_of_ranks(const DistributedStrategy& strategy, const char* but) {
  const auto refuse = [but](const char* name, bool is_set) {
    check<ConfigError>(!is_set, "strategy.", name, " is for ranks that train without servers, ",
                       but);
  };
  refuse("gradient_merge", strategy.gradient_merge);
  refuse("gradient_scale", strategy.gradient_scale != "avg");
  refuse("fp16_allreduce", strategy.fp16_allreduce);
  refuse("fuse_all_reduce_ops=false", !strategy.fuse_all_reduce_ops);
  refuse("fuse_grad_size_in_MB", strategy.fuse_grad_size_in_MB.has_value());
  refuse("lars", strategy.lars);
  refuse("lamb", strategy.lamb);
  refuse("deterministic", strategy.deterministic);
  refuse("embedding_mode", strategy.embedding_mode != DistributedStrategy().embedding_mode);
  refuse("sync_batch_norm", strategy.sync_batch_norm);
  refuse("use_hierarchical_allreduce", strategy.use_hierarchical_allreduce);
  refuse("hierarchical_allreduce_inter_nranks", strategy.hierarchical_allreduce_inter_nranks != 1);
}

}  // namespace

Strategy strategy_of(const DistributedStrategy& strategy, int threads) {
  const ASyncConfigs& configs = strategy.a_sync_configs;
  check<ConfigError>(configs.k_steps >= 0, "a_sync_configs.k_steps is ", configs.k_steps,
                     ", expected 0 for async or the batches between two exchanges of geo");
  check<ConfigError>(strategy.a_sync || configs.k_steps == 0, "a_sync_configs.k_steps is ",
                     configs.k_steps, ", expected 0 where a_sync is false");
  check<ConfigError>(!configs.half_async || (strategy.a_sync && configs.k_steps == 0),
                     "a_sync_configs.half_async is true, expected false where ",
                     strategy.a_sync ? "k_steps is set" : "a_sync is false");
  check<ConfigError>(!configs.geo_sum || configs.k_steps > 0,
                     "a_sync_configs.geo_sum is true, expected false where k_steps is 0, as it is "
                     "for geo");
  check<ConfigError>(configs.max_merge_var_num > 0, "a_sync_configs.max_merge_var_num is ",
                     configs.max_merge_var_num, ", expected 1 or more");
  check<ConfigError>(configs.send_queue_size > 0, "a_sync_configs.send_queue_size is ",
                     configs.send_queue_size, ", expected 1 or more");
  refuse_what_is_not_there(strategy);
  refuse_of_ranks(strategy, "and there are servers");
  Strategy result;
  result.threads = threads;
  result.max_merge = configs.max_merge_var_num;
  result.send_queue = configs.send_queue_size;
  result.mode = !strategy.a_sync      ? "sync"
                : configs.half_async  ? "half_async"
                : configs.k_steps > 0 ? "geo"
                                      : "async";
  if (configs.k_steps > 0) result.geo_step = configs.k_steps;
  result.geo_mean = !configs.geo_sum;
  return result;
}

void DistributedOptimizer::minimize(Model model, TrainerOptions options) {
  options.optimizer = optimizer_;
  fleet_.minimize(std::move(model), std::move(options), strategy_);
}

Fleet::Fleet(Env& env, std::FILE* out) : env_(env), out_(out) {}
Fleet::~Fleet() = default;

void Fleet::init() { init(role_from_env(process_environment())); }

void Fleet::init(Collectively, Sums sums) {
  init();
  check<ConfigError>(role().servers.empty(), "init(is_collective): this process is ", role().text(),
                     ", expected no servers");
  collective_ = true;
  sums_ = sums;
}

void Fleet::init(Role role) {
  check<ConfigError>(trainer_ == nullptr, "init: comes before training, not after");
  role_ = std::move(role);
}

const Role& Fleet::role() const {
  check<ConfigError>(role_.has_value(), "fleet: init() comes before every other call");
  return *role_;
}

void Fleet::need_worker(std::string_view call) const {
  check<ConfigError>(!is_server(), call, ": this process is ", role().text(),
                     ", expected a worker");
}

void Fleet::need_server(std::string_view call) const {
  check<ConfigError>(is_server() || !shared(), call, ": this process is ", role().text(),
                     ", expected a server");
}

int Fleet::worker_index() const {
  need_worker("worker_index");
  return role().index;
}

int Fleet::server_index() const {
  need_server("server_index");
  return role().index;
}

std::vector<std::string> Fleet::worker_endpoints() const { return texts(role().workers); }
std::vector<std::string> Fleet::server_endpoints() const { return texts(role().servers); }

DistributedOptimizer Fleet::distributed_optimizer(Optimizer optimizer,
                                                  const DistributedStrategy& strategy) {
  return {*this, std::move(optimizer), strategy};
}

void Fleet::minimize(Model model, TrainerOptions options, const DistributedStrategy& strategy) {
  check<ConfigError>(trainer_ == nullptr, "minimize: comes before training, not after");
  if (!strategy.memory_limit.empty())
    options.memory_limit = parse_memory(strategy.memory_limit, "DistributedStrategy.memory_limit");
  if (collective()) {
    const uint64_t check_every = options.strategy.collective.check_every;
    options.strategy = collective_strategy_of(strategy, options.strategy.threads);
    if (strategy.lars || strategy.lamb) {
      std::vector<std::string> names;
      const Program program = record(model, options).plan.worker;
      for (const VarGrad& pair : program.grads) names.push_back(program.var(pair.var).name);
      apply_large_batch_rules(strategy, names, options.optimizer, options.tables);
    }
    options.strategy.collective.check_every = check_every;
    if (strategy.deterministic && sums_ != Sums::in_order_of_ranks) {
      check<ConfigError>(!met_,
                         "minimize: the ranks have met before, so that the "
                         "strategy's deterministic=true has to be told to init()");
      sums_ = Sums::in_order_of_ranks;
    }
  } else if (shared()) {
    const int accumulate = options.strategy.accumulate;
    options.strategy = strategy_of(strategy, options.strategy.threads);
    options.strategy.accumulate = accumulate;
    launch_barrier_ = strategy.a_sync_configs.launch_barrier;
  } else {
    refuse_what_is_not_there(strategy);
    refuse_of_ranks(strategy, "which init(is_collective) makes of this process");
    options.strategy.mode = "local";
  }
  model_ = std::move(model);
  options_ = std::move(options);
}

Job& Fleet::job() {
  if (job_ == nullptr) job_ = std::make_unique<Job>(env_, role(), JobOptions{.out = out_});
  return *job_;
}

comm::Group& Fleet::group() {
  CollectiveStrategy strategy = options_.strategy.collective;
  strategy.deterministic = sums_ == Sums::in_order_of_ranks;
  if (!std::exchange(met_, true) && role().is_rank()) {
    activity_ = std::make_shared<Activity>(env_);
    activity_->begin(Doing::meeting);
    status_ = job().report(*activity_);
    job().group(strategy);
    activity_->begin(Doing::computing);
  }
  return job().group(strategy);
}

void Fleet::init_server(const std::string& model_dir) {
  need_server("init_server");
  model_dir_ = model_dir;
}

void Fleet::run_server() {
  need_server("run_server");
  if (!shared()) return;
  check<ConfigError>(model_ != nullptr,
                     "run_server: minimize() comes first, it says what is to be served");
  const ps::Placement placement = placement_of(record(model_, options_).plan, options_.strategy,
                                               static_cast<uint32_t>(server_num()));
  ServeOptions options{.strategy = options_.strategy};
  if (!model_dir_.empty())
    options.before = [&](ps::Server& server) {
      load_part(env_, model_dir_, placement, static_cast<uint32_t>(role().index), server);
    };
  serve(job(), placement, std::move(options));
}

Trainer& Fleet::trainer() {
  need_worker("trainer");
  check<ConfigError>(model_ != nullptr,
                     "fleet: minimize() comes first, it says what is to be trained");
  if (trainer_ != nullptr) return *trainer_;
  if (collective()) take_device();
  if (collective()) group();
  trainer_ = make_trainer(job(), model_, options_);
  status_.reset();
  status_ = job().report(trainer_->activity());
  if (const uint64_t steps = job().trained().steps; steps > 0) {
    fmt::print(
        out_, "argosy: worker {} {}: the servers have {} batches of its data, {}\n", role().index,
        job().goes_on_from_journals() ? "goes on from the servers' journals" : "was started again",
        steps, replay_text(options_.strategy));
    std::fflush(out_);
  }
  return *trainer_;
}

uint64_t Fleet::last_step() {
  trainer();
  return job().trained().steps;
}

/// The device that the launcher gave this rank, if there is one; the log says which.
void Fleet::take_device() {
  const std::optional<int> selected = device::selected_device();
  if (!selected) return;
  const device::Devices devices = device::devices();
  std::string where = "the CPU: " + device::why_none();
  if (devices.count > 0 && options_.graph == GraphMode::eager) {
    where = "the CPU, as its graph is dynamic";
  } else if (devices.count > 0) {
    devices.expect(*selected);
    options_.device = *selected;
    where = devices.label(*selected);
  }
  std::fprintf(out_, "argosy: rank %d computes on %s\n", role().index, where.c_str());
  std::fflush(out_);
}

void Fleet::init_worker() {
  need_worker("init_worker");
  trainer();
  if (launch_barrier_) gather("init_worker", {});
}

void Fleet::barrier_worker() {
  need_worker("barrier_worker");
  gather("barrier_worker", {});
}

void Fleet::stop_worker() {
  need_worker("stop_worker");
  if (!shared() || std::exchange(left_, true) || trainer_ == nullptr) return;
  trainer_->leave();
}

std::vector<std::vector<std::byte>> Fleet::gather(const std::string& name,
                                                  std::span<const std::byte> mine) {
  need_worker(name);
  check<ConfigError>(!left_, name, ": this worker has left by stop_worker()");
  if (role().kind == RoleKind::worker) trainer();  // connects
  if (role().is_rank()) group();
  if (trainer_ != nullptr) trainer_->activity().begin(Doing::meeting);
  return job().gather(name, mine);
}

/// Runs once everything that workers have sent is applied; no worker continues before it is done.
/// False: an earlier incarnation of this worker has been here.
template <class Task>
bool Fleet::first_worker_does(const std::string& what, Task task) {
  need_worker(what);
  trainer().communicator().drain();
  constexpr uint64_t kGathers = 2;
  if (job().are_over(kGathers)) {
    job().skip(kGathers);
    return false;
  }
  gather(what, {});
  trainer().first_does(is_first_worker(), task);
  gather(what + " is done", {});
  return true;
}

void Fleet::save_persistables(const std::string& dir, const ResumePoint& resume) {
  first_worker_does("save_persistables", [&] { trainer().save(absolute(dir), resume); });
}

ResumePoint Fleet::load_model(const std::string& dir) {
  ResumePoint resume;
  const bool done =
      first_worker_does("load_model", [&] { resume = trainer().load(absolute(dir)); });
  if (!done && is_first_worker()) trainer().load_states(absolute(dir));
  if (!shared()) return resume;
  trainer().take_loaded();
  return {.epoch = static_cast<int>(util().all_reduce(resume.epoch, "max"))};
}

void Fleet::save_inference_model(const std::string& dir, std::vector<std::string> predictions) {
  first_worker_does("save_inference_model",
                    [&] { trainer().export_inference(dir, std::move(predictions)); });
}

size_t Fleet::shrink(uint32_t threshold) {
  size_t erased = 0;
  if (role().is_rank() && trainer().sharded() == nullptr)  // each has all rows
    return trainer().communicator().store().shrink(threshold);
  first_worker_does("shrink", [&] { erased = trainer().communicator().store().shrink(threshold); });
  return static_cast<size_t>(util().all_reduce(static_cast<double>(erased), "max"));
}

void Fleet::join(MetricTally& metrics) {
  if (!shared()) return;
  const auto parts = gather("metrics of an epoch", metrics.bytes());
  metrics.reset();
  for (const auto& part : parts) metrics.merge(part);
}

double Fleet::metric(std::string_view meter, const Observations& mine) {
  const auto all = make_meter(meter), part = make_meter(meter);
  part->add(mine);
  ByteBuffer saved;
  part->save(saved);
  for (const auto& bytes : gather(fmt::format("metric {}", meter), saved.bytes())) {
    ByteSource in(bytes, "a worker's meter");
    part->load(in);
    all->merge(*part);
  }
  return all->value();
}

double FleetUtil::all_reduce(double value, std::string_view mode) {
  return all_reduce(std::vector{value}, mode)[0];
}

std::vector<double> FleetUtil::all_reduce(std::vector<double> values, std::string_view mode) {
  check<ConfigError>(mode == "sum" || mode == "min" || mode == "max", "all_reduce: mode is '", mode,
                     "', expected sum, min or max");
  const auto parts = fleet_.gather("all_reduce", std::as_bytes(std::span(values)));
  std::vector<double> other(values.size());
  for (size_t part = 0; part < parts.size(); ++part) {
    check<DataError>(parts[part].size() == other.size() * sizeof(double),
                     "all_reduce: a worker gave ", parts[part].size() / sizeof(double),
                     " numbers, this one ", other.size());
    ByteSource(parts[part], "all_reduce").get_all(std::span(other));
    for (size_t i = 0; i < values.size(); ++i) {
      if (part == 0)
        values[i] = other[i];
      else if (mode == "sum")
        values[i] += other[i];
      else
        values[i] = mode == "min" ? std::min(values[i], other[i]) : std::max(values[i], other[i]);
    }
  }
  return values;
}

std::vector<double> FleetUtil::all_gather(double value) {
  std::vector<double> values;
  for (const auto& part : fleet_.gather("all_gather", std::as_bytes(std::span(&value, 1))))
    values.push_back(ByteSource(part, "all_gather").get<double>());
  return values;
}

void FleetUtil::barrier() { fleet_.gather("util.barrier", {}); }

std::vector<std::string> FleetUtil::get_file_shard(std::span<const std::string> files) const {
  return file_shard(files, fleet_.worker_index(), fleet_.worker_num());
}

void FleetUtil::print_on_rank(std::string_view message, int rank) const {
  if (fleet_.worker_index() != rank) return;
  fmt::print(fleet_.out_, "{}\n", message);
  std::fflush(fleet_.out_);
}

}  // namespace argosy
