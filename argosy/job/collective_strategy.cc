#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/call.h"
#include "argosy/base/error.h"
#include "argosy/job/fleet.h"

namespace argosy {
namespace {

/// A rule without and with weight decay.
struct RulePair {
  std::string decaying, plain;
};

RulePair lars_of(const LarsConfigs& configs, const std::string& rule) {
  const Call given(rule);
  check<ConfigError>(given.name() == "momentum", "strategy.lars: the optimizer is ", rule,
                     ", expected momentum");
  const auto text = [&](double decay) {
    return fmt::format("lars(mu={}, coeff={}, weight_decay={}, epsilon={})",
                       given.number(0, "mu", 0.9), configs.lars_coeff, decay, configs.epsilon);
  };
  return {text(configs.lars_weight_decay), text(0)};
}

RulePair lamb_of(const LambConfigs& configs, const std::string& rule) {
  const Call given(rule);
  check<ConfigError>(given.name() == "adam", "strategy.lamb: the optimizer is ", rule,
                     ", expected adam");
  const auto text = [&](double decay) {
    return fmt::format("lamb(beta1={}, beta2={}, epsilon={}, weight_decay={})",
                       given.number(0, "beta1", 0.9), given.number(1, "beta2", 0.999),
                       given.number(2, "epsilon", 1e-8), decay);
  };
  return {text(configs.lamb_weight_decay), text(0)};
}

/// docs/reference/strategies.md says what goes together.
void refuse_pairs(const DistributedStrategy& strategy) {
  const auto refuse = [](const char* a, bool a_is_on, const char* b, bool b_is_on,
                         const char* why) {
    check<ConfigError>(!a_is_on || !b_is_on, "strategy.", a, " and strategy.", b,
                       " do not go together: ", why);
  };
  refuse("lars", strategy.lars, "lamb", strategy.lamb, "each is a rule of its own");
  refuse("fuse_all_reduce_ops=false", !strategy.fuse_all_reduce_ops, "fuse_grad_size_in_MB",
         strategy.fuse_grad_size_in_MB.has_value(), "without buckets there is no size of them");
  refuse("use_hierarchical_allreduce", strategy.use_hierarchical_allreduce, "deterministic",
         strategy.deterministic, "sums inside of hosts are not in the order of ranks");
  refuse("use_hierarchical_allreduce", strategy.use_hierarchical_allreduce, "fp16_allreduce",
         strategy.fp16_allreduce, "half floats are added up by the rank that takes their slice");
  check<ConfigError>(strategy.hierarchical_allreduce_inter_nranks > 0,
                     "hierarchical_allreduce_inter_nranks is ",
                     strategy.hierarchical_allreduce_inter_nranks, ", expected 1 or more");
  check<ConfigError>(
      strategy.hierarchical_allreduce_inter_nranks == 1 || strategy.use_hierarchical_allreduce,
      "hierarchical_allreduce_inter_nranks is ", strategy.hierarchical_allreduce_inter_nranks,
      ", expected 1 where use_hierarchical_allreduce is false");
}

}  // namespace

void refuse_what_is_not_there(const DistributedStrategy& strategy) {
  const std::pair<const char*, bool> fields[] = {{"amp", strategy.amp},
                                                 {"recompute", strategy.recompute},
                                                 {"localsgd", strategy.localsgd},
                                                 {"adaptive_localsgd", strategy.adaptive_localsgd},
                                                 {"dgc", strategy.dgc},
                                                 {"sharding", strategy.sharding},
                                                 {"pipeline", strategy.pipeline},
                                                 {"tensor_parallel", strategy.tensor_parallel},
                                                 {"elastic", strategy.elastic},
                                                 {"asp", strategy.asp},
                                                 {"heter_ccl_mode", strategy.heter_ccl_mode},
                                                 {"adam_d2sum", strategy.adam_d2sum},
                                                 {"is_fl_ps_mode", strategy.is_fl_ps_mode},
                                                 {"with_coordinator", strategy.with_coordinator},
                                                 {"auto", strategy.auto_}};
  for (const auto& [name, is_on] : fields)
    check<ConfigError>(!is_on, "strategy.", name, " is not supported");
}

Strategy collective_strategy_of(const DistributedStrategy& strategy, int threads) {
  const GradientMergeConfigs& merge = strategy.gradient_merge_configs;
  check<ConfigError>(merge.k_steps > 0, "gradient_merge_configs.k_steps is ", merge.k_steps,
                     ", expected 1 or more");
  check<ConfigError>(strategy.gradient_scale == "avg" || strategy.gradient_scale == "sum",
                     "gradient_scale is '", strategy.gradient_scale, "', expected avg or sum");
  check<ConfigError>(!strategy.fuse_grad_size_in_MB || *strategy.fuse_grad_size_in_MB > 0,
                     "fuse_grad_size_in_MB is ", strategy.fuse_grad_size_in_MB.value_or(0),
                     ", expected more than 0");
  check<ConfigError>(
      strategy.fp16_allreduce_type == "bf16" || strategy.fp16_allreduce_type == "f16",
      "fp16_allreduce_type is '", strategy.fp16_allreduce_type, "', expected bf16 or f16");
  refuse_what_is_not_there(strategy);
  refuse_pairs(strategy);
  Strategy result;
  result.mode = "collective";
  result.threads = threads;
  if (strategy.gradient_merge) {
    result.accumulate = merge.k_steps;
    result.accumulate_mean = merge.avg;
  }
  CollectiveStrategy& own = result.collective;
  own.scale = strategy.gradient_scale == "avg" ? GradientScale::mean : GradientScale::sum;
  own.deterministic = strategy.deterministic;
  own.embedding = parse_embedding_mode(strategy.embedding_mode, "embedding_mode");
  own.fuse = strategy.fuse_all_reduce_ops;
  own.bucket_mb = strategy.fuse_grad_size_in_MB.value_or(0);
  if (strategy.fp16_allreduce) own.wire = strategy.fp16_allreduce_type;
  own.sync_batch_norm = strategy.sync_batch_norm;
  own.hierarchical = strategy.use_hierarchical_allreduce;
  if (strategy.hierarchical_allreduce_inter_nranks > 1)
    own.ranks_per_host = strategy.hierarchical_allreduce_inter_nranks;
  return result;
}

void apply_large_batch_rules(const DistributedStrategy& strategy,
                             std::span<const std::string> parameters, Optimizer& optimizer,
                             TablesOptions& tables) {
  if (!strategy.lars && !strategy.lamb) return;
  const RulePair rules = strategy.lars ? lars_of(strategy.lars_configs, optimizer.rule)
                                       : lamb_of(strategy.lamb_configs, optimizer.rule);
  optimizer.rule = rules.decaying;
  const std::vector<std::string>& excluded = strategy.lars
                                                 ? strategy.lars_configs.exclude_from_weight_decay
                                                 : strategy.lamb_configs.exclude_from_weight_decay;
  for (const std::string& name : parameters)
    if (std::ranges::any_of(excluded, [&](const std::string& part) {
          return name.find(part) != std::string::npos;
        }))
      tables[name].rule = rules.plain;
}

}  // namespace argosy
