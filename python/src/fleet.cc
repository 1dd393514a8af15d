#include "argosy/job/fleet.h"

#include <nanobind/stl/shared_ptr.h>

#include "argosy/comm/group.h"
#include "argosy/modes/ranks/group_sum.h"
#include "ranks.h"
#include "training.h"

namespace argosy::python {

using namespace nb::literals;

namespace {

using FleetPtr = std::shared_ptr<Fleet>;

template <class T>
void set(const nb::dict& dict, const char* name, T& field) {
  if (dict.contains(name)) field = nb::cast<T>(dict[name]);
}

void set_large_batch(const nb::dict& dict, DistributedStrategy& strategy) {
  set(dict, "lars", strategy.lars);
  set(dict, "lamb", strategy.lamb);
  if (dict.contains("lars_configs")) {
    const auto configs = nb::cast<nb::dict>(dict["lars_configs"]);
    set(configs, "lars_coeff", strategy.lars_configs.lars_coeff);
    set(configs, "lars_weight_decay", strategy.lars_configs.lars_weight_decay);
    set(configs, "epsilon", strategy.lars_configs.epsilon);
    set(configs, "exclude_from_weight_decay", strategy.lars_configs.exclude_from_weight_decay);
  }
  if (dict.contains("lamb_configs")) {
    const auto configs = nb::cast<nb::dict>(dict["lamb_configs"]);
    set(configs, "lamb_weight_decay", strategy.lamb_configs.lamb_weight_decay);
    set(configs, "exclude_from_weight_decay", strategy.lamb_configs.exclude_from_weight_decay);
  }
}

void set_of_ranks(const nb::dict& dict, DistributedStrategy& strategy) {
  set(dict, "gradient_scale", strategy.gradient_scale);
  set(dict, "gradient_merge", strategy.gradient_merge);
  if (dict.contains("gradient_merge_configs")) {
    const auto configs = nb::cast<nb::dict>(dict["gradient_merge_configs"]);
    set(configs, "k_steps", strategy.gradient_merge_configs.k_steps);
    set(configs, "avg", strategy.gradient_merge_configs.avg);
  }
  set(dict, "deterministic", strategy.deterministic);
  set(dict, "embedding_mode", strategy.embedding_mode);
  set(dict, "fp16_allreduce", strategy.fp16_allreduce);
  set(dict, "fuse_all_reduce_ops", strategy.fuse_all_reduce_ops);
  set(dict, "fuse_grad_size_in_MB", strategy.fuse_grad_size_in_MB);
  set(dict, "sync_batch_norm", strategy.sync_batch_norm);
  set(dict, "use_hierarchical_allreduce", strategy.use_hierarchical_allreduce);
  set(dict, "hierarchical_allreduce_inter_nranks", strategy.hierarchical_allreduce_inter_nranks);
  set_large_batch(dict, strategy);
}

/// The strategy of a script's dict: a_sync_configs are its keys beside a_sync.
DistributedStrategy strategy_of(const nb::dict& dict) {
  DistributedStrategy strategy;
  set_of_ranks(dict, strategy);
  ASyncConfigs& configs = strategy.a_sync_configs;
  set(dict, "memory_limit", strategy.memory_limit);
  set(dict, "a_sync", strategy.a_sync);
  set(dict, "k_steps", configs.k_steps);
  set(dict, "geo_sum", configs.geo_sum);
  set(dict, "max_merge_var_num", configs.max_merge_var_num);
  set(dict, "send_queue_size", configs.send_queue_size);
  set(dict, "half_async", configs.half_async);
  set(dict, "launch_barrier", configs.launch_barrier);
  return strategy;
}

std::vector<Endpoint> endpoints(const std::vector<std::string>& texts) {
  std::vector<Endpoint> result;
  for (const std::string& text : texts) result.push_back(parse_endpoint(text));
  return result;
}

/// A call that waits for other processes.
template <class Work>
void waiting(const FleetPtr& fleet, Work work) {
  long_call([fleet, work](const StopAsked&) mutable { work(*fleet); });
}

/// As above, with a result.
template <class Work>
auto result_of(const FleetPtr& fleet, Work work) {
  const auto result = std::make_shared<std::invoke_result_t<Work, Fleet&>>();
  long_call([fleet, work, result](const StopAsked&) { *result = work(*fleet); });
  return *result;
}

/// Sums over the ranks of a fleet, which lives as long as what needs them.
class FleetSumOverRanks final : public SumOverRanks {
 public:
  explicit FleetSumOverRanks(FleetPtr fleet) : fleet_(std::move(fleet)), sum_(fleet_->group()) {}
  void add_up(std::span<double> numbers) override { sum_.add_up(numbers); }

 private:
  FleetPtr fleet_;
  GroupSumOverRanks sum_;
};

/// A fleet, and where its program's variables are now.
struct PyFleet {
  FleetPtr fleet = std::make_shared<Fleet>(engine_env());
  std::vector<VarId> now = {};
  SlotLimits limits = {};
  std::shared_ptr<Training> training = {};
  std::shared_ptr<SumOverRanks> sum_of_ranks = {};

  void minimize(const Recorder& recorder, const nb::dict& spec, const nb::dict& strategy) {
    TrainingSpec made = training_spec(recorder, spec);
    const Optimizer optimizer = made.options.optimizer;
    fleet->distributed_optimizer(optimizer, strategy_of(strategy))
        .minimize(std::move(made.recorded.model), std::move(made.options));
    now = std::move(made.recorded.now);
    limits = std::move(made.limits);
  }

  std::shared_ptr<Training> use() {
    if (training == nullptr) {
      waiting(fleet, [](Fleet& f) { f.trainer().set_threads(1); });
      const bool waits = fleet->role().kind != RoleKind::local;
      training = std::make_shared<Training>(fleet, fleet->trainer(), now, limits, waits);
    }
    return training;
  }
};

}  // namespace

void bind_fleet(nb::module_& module) {
  nb::class_<PyFleet> type(module, "Fleet", "This process in its job.");
  type.def(nb::init<>())
      .def("init", [](PyFleet& self) { self.fleet->init(); })
      .def(
          "init_collective",
          [](PyFleet& self, bool deterministic) {
            self.fleet->init(is_collective,
                             deterministic ? Sums::in_order_of_ranks : Sums::in_any_order);
          },
          "deterministic"_a)
      .def(
          "group",
          [](PyFleet& self) {
            const auto group = result_of(self.fleet, [](Fleet& f) { return &f.group(); });
            return group_object({self.fleet, group}, self.fleet->activity());
          },
          "The ranks of the job; a call that comes first meets them.")
      .def(
          "init_role",
          [](PyFleet& self, bool server, int index, int workers,
             const std::vector<std::string>& servers) {
            self.fleet->init(
                with_handed_down(user_defined_role(server ? RoleKind::server : RoleKind::worker,
                                                   index, workers, endpoints(servers)),
                                 process_environment()));
          },
          "server"_a, "index"_a, "workers"_a, "servers"_a)
      .def(
          "sum_over_ranks",
          [](PyFleet& self) {
            if (self.sum_of_ranks == nullptr)
              long_call([&self](const StopAsked&) {
                self.sum_of_ranks = std::make_shared<FleetSumOverRanks>(self.fleet);
              });
            return self.sum_of_ranks;
          },
          "For operators of dynamic graphs; every rank makes the call.")
      .def("role", [](PyFleet& self) { return self.fleet->role().text(); })
      .def("is_local", [](PyFleet& self) { return self.fleet->role().kind == RoleKind::local; })
      .def("is_server", [](PyFleet& self) { return self.fleet->is_server(); })
      .def("is_worker", [](PyFleet& self) { return self.fleet->is_worker(); })
      .def("is_first_worker", [](PyFleet& self) { return self.fleet->is_first_worker(); })
      .def("worker_index", [](PyFleet& self) { return self.fleet->worker_index(); })
      .def("worker_num", [](PyFleet& self) { return self.fleet->worker_num(); })
      .def("server_index", [](PyFleet& self) { return self.fleet->server_index(); })
      .def("server_num", [](PyFleet& self) { return self.fleet->server_num(); })
      .def("worker_endpoints", [](PyFleet& self) { return self.fleet->worker_endpoints(); })
      .def("server_endpoints", [](PyFleet& self) { return self.fleet->server_endpoints(); })
      .def("last_step",
           [](PyFleet& self) {
             return result_of(self.fleet, [](Fleet& f) { return f.last_step(); });
           })
      .def("minimize", &PyFleet::minimize, "recorder"_a, "spec"_a, "strategy"_a)
      .def("training", &PyFleet::use)
      .def("init_server",
           [](PyFleet& self, const std::string& dir) { self.fleet->init_server(dir); })
      .def("run_server",
           [](PyFleet& self) { waiting(self.fleet, [](Fleet& f) { f.run_server(); }); })
      .def("init_worker",
           [](PyFleet& self) { waiting(self.fleet, [](Fleet& f) { f.init_worker(); }); })
      .def("barrier_worker",
           [](PyFleet& self) { waiting(self.fleet, [](Fleet& f) { f.barrier_worker(); }); })
      .def("stop_worker",
           [](PyFleet& self) { waiting(self.fleet, [](Fleet& f) { f.stop_worker(); }); })
      .def("save_persistables",
           [](PyFleet& self, const std::string& dir) {
             waiting(self.fleet, [dir](Fleet& f) { f.save_persistables(dir); });
           })
      .def("load_model",
           [](PyFleet& self, const std::string& dir) {
             waiting(self.fleet, [dir](Fleet& f) { f.load_model(dir); });
           })
      .def("save_inference_model",
           [](PyFleet& self, const std::string& dir, const std::vector<std::string>& predictions) {
             waiting(self.fleet, [=](Fleet& f) { f.save_inference_model(dir, predictions); });
           })
      .def("shrink",
           [](PyFleet& self, uint32_t threshold) {
             return result_of(self.fleet, [=](Fleet& f) { return f.shrink(threshold); });
           })
      .def("all_reduce",
           [](PyFleet& self, const std::vector<double>& values, const std::string& mode) {
             return result_of(self.fleet,
                              [=](Fleet& f) { return f.util().all_reduce(values, mode); });
           })
      .def("all_gather",
           [](PyFleet& self, double value) {
             return result_of(self.fleet, [=](Fleet& f) { return f.util().all_gather(value); });
           })
      .def("file_shard",
           [](PyFleet& self, const std::vector<std::string>& files) {
             return self.fleet->util().get_file_shard(files);
           })
      .def("global_shuffle",
           [](PyFleet& self, const std::shared_ptr<FileData>& data, uint64_t seed) {
             waiting(self.fleet, [=](Fleet& f) { global_shuffle(data->memory(), f, seed); });
           });
}

}  // namespace argosy::python
