#include "argosy/config/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "argosy/base/error.h"
#include "argosy/config/model_setup.h"
#include "argosy/config/runner.h"
#include "argosy/job/transpiler.h"
#include "argosy/modes/mode.h"
#include "argosy/modes/serve.h"
#include "argosy/net/frame.h"
#include "argosy/ps/entry.h"
#include "argosy/ps/row_table.h"
#include "argosy/ps/rule.h"
#include "argosy/ps/wire.h"
#include "argosy/train/trainer.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

std::string counted(uint32_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

size_t bytes_of(size_t floats) { return floats * sizeof(float); }

/// How many keys a batch may bring.
struct KeyBound {
  size_t slots = 0;
  bool pooled = false;  // a slot may hold more ids than one
  uint64_t ids = 0;     // that there are at all; 0: not known

  size_t most(size_t instances) const {
    const size_t keys = instances * slots;
    return ids > 0 ? std::min<size_t>(keys, ids) : keys;
  }
};

std::vector<KeyBound> key_bounds(const Plan& plan, const TablesOptions& tables) {
  std::vector<KeyBound> bounds(plan.layout.key_sets);
  for (size_t set = 0; set < bounds.size(); ++set) {
    KeyBound& bound = bounds[set];
    std::set<std::string> slots;
    for (const IndexFeed& feed : plan.layout.indices) {
      if (feed.key_set != set) continue;
      slots.insert(feed.slots.begin(), feed.slots.end());
      bound.pooled = bound.pooled || !feed.offsets.empty();
    }
    bound.slots = slots.size();
  }
  for (size_t i = 0; i < plan.tables.size(); ++i) {
    const auto options = tables.find(plan.tables[i].name);
    if (options == tables.end() || options->second.size == 0) continue;
    uint64_t& ids = bounds[plan.key_sets[i]].ids;
    ids = ids == 0 ? options->second.size : std::min(ids, options->second.size);
  }
  return bounds;
}

/// Zeros in the shapes of a full batch.
Feeds feeds_of(const Plan& plan, const std::vector<KeyBound>& bounds, size_t batch) {
  Feeds feeds;
  for (const VarDesc& desc : plan.worker.vars) {
    if (desc.kind == VarKind::temp) continue;
    Shape shape = desc.type.shape;
    for (int i = 0; i < shape.rank(); ++i)
      if (shape[i] == Shape::kAny) shape[i] = static_cast<int64_t>(batch);
    feeds.emplace(desc.name, Tensor(shape, desc.type.dtype));
  }
  for (const IndexFeed& feed : plan.layout.indices) {
    if (feed.offsets.empty()) continue;
    const auto ids = static_cast<int64_t>(batch * feed.slots.size());
    feeds[feed.index] = Tensor({ids}, DType::i32);
    feeds[feed.offsets] = Tensor({ids + 1}, DType::i32);
  }
  for (size_t i = 0; i < plan.tables.size(); ++i)
    feeds[plan.tables[i].name] = Tensor({static_cast<int64_t>(bounds[plan.key_sets[i]].most(batch)),
                                         static_cast<int64_t>(plan.tables[i].dim)});
  return feeds;
}

size_t dense_floats(const std::vector<ps::ParameterSpec>& parameters) {
  size_t floats = 0;
  for (const ps::ParameterSpec& spec : parameters) floats += spec.elements;
  return floats;
}

size_t state_floats(const std::vector<ps::ParameterSpec>& parameters) {
  size_t floats = 0;
  for (const ps::ParameterSpec& spec : parameters)
    floats += ps::make_rule(spec.rule)->state_size(spec.elements);
  return floats;
}

/// Key lists in one exchange. Gradients reuse the list they were pulled with; differences send
/// theirs.
size_t key_lists(const Mode& mode) { return mode.pushes == Mode::Pushes::differences ? 2 : 1; }

/// Writes the report, part by part.
class Report {
 public:
  Report(const Config& config, const Plan& plan, const TablesOptions& tables,
         const PlanOptions& options)
      : config_(config),
        plan_(plan),
        options_(options),
        batch_(static_cast<size_t>(config.runner.train_batch_size)),
        placement_(placement_of(plan, strategy_, options.servers, options.placement)),
        slots_(slots_by_server(placement_)),
        bounds_(key_bounds(plan, tables)) {
    for (uint32_t i = 0; i < options.servers; ++i) names_.push_back(fmt::format("server {}", i));
  }

  std::string text() {
    line("{}: {}, {}, {}, batch {}", config_.model.empty() ? "network" : config_.model,
         counted(options_.servers, "server"), counted(options_.workers, "worker"), strategy_.mode,
         batch_);
    line("\n== every worker");
    const auto workers = static_cast<int>(options_.workers);
    out_ += trainer_text(plan_, placement_, strategy_, workers, names_);
    for (uint32_t i = 0; i < options_.servers; ++i) {
      line("\n== {}", names_[i]);
      out_ += pserver_text(placement_, i, strategy_, workers);
    }
    add_tables();
    add_bytes();
    add_memory();
    return std::move(out_);
  }

 private:
  static Strategy strategy_of(const Config& config) {
    // A run without servers is planned as if it had some.
    const std::string& name = config.runner.sync_mode;
    Strategy strategy;
    strategy.mode = mode(name).needs == Mode::Needs::servers ? name : Runner().sync_mode;
    strategy.geo_step = static_cast<int>(config.runner.geo_step);
    return strategy;
  }
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  void add_tables() {
    line("\n== where parameters and tables live");
    for (size_t i = 0; i < placement_.parameters.size(); ++i) {
      const ps::ParameterSpec& spec = placement_.parameters[i];
      std::vector<std::string> places;
      for (const ps::Slice& slice : placement_.slices)
        if (slice.parameter == i)
          places.push_back(
              fmt::format("{} [{}..{}]", names_[slice.server], slice.begin, slice.end));
      line("{} {} floats: {}", spec.name, spec.elements, fmt::join(places, ", "));
    }
    std::vector<std::string> shares;
    for (uint32_t server = 0; server < options_.servers; ++server)
      shares.push_back(fmt::format("{} {} slots ({:.2f} %)", names_[server], slots_[server],
                                   100.0 * share_of(server)));
    for (const ps::TableSpec& spec : placement_.tables)
      line("{} rows of {} floats: {}", spec.name, spec.dim, fmt::join(shares, ", "));
  }

  double share_of(uint32_t server) const {
    return static_cast<double>(slots_[server]) / static_cast<double>(ps::Placement::kSlots);
  }

  /// Instances whose keys one exchange carries.
  size_t instances() const {
    return batch_ * static_cast<size_t>(mode_.batches_per_push(strategy_));
  }

  /// A server's part of the most keys, by key set.
  std::vector<size_t> keys_of(uint32_t server) const {
    std::vector<size_t> keys;
    for (const KeyBound& bound : bounds_)
      keys.push_back((bound.most(instances()) * slots_[server] + ps::Placement::kSlots - 1) /
                     ps::Placement::kSlots);
    return keys;
  }

  void add_bytes() {
    if (mode_.pushes == Mode::Pushes::differences)
      line("\n== bytes of an exchange of each worker, every {} steps",
           mode_.batches_per_push(strategy_));
    else
      line("\n== bytes of a step of each worker");
    WireBytes all;
    for (uint32_t server = 0; server < options_.servers; ++server) {
      const std::vector<size_t> none(bounds_.size());
      const WireBytes fixed = wire_bytes(placement_, mode_, server, none);
      const WireBytes most = wire_bytes(placement_, mode_, server, keys_of(server));
      const size_t dense = bytes_of(ps::ServerShape(placement_, server).dense_floats);
      line("{}: dense {} up {} down, rows of its share at most {} up {} down, heads {} up {} down",
           names_[server], dense, dense, most.up - fixed.up, most.down - fixed.down,
           fixed.up - dense, fixed.down - dense);
      all.up += most.up;
      all.down += most.down;
    }
    line("all servers: at most {} up {} down", all.up, all.down);
    if (options_.workers > 1)
      line("all servers and {} workers: at most {} up {} down", options_.workers,
           all.up * options_.workers, all.down * options_.workers);
    for (const ps::TableSpec& spec : placement_.tables)
      line("{}: {} bytes up {} down for each key", spec.name, bytes_of(spec.dim),
           bytes_of(spec.dim));
    for (size_t set = 0; set < bounds_.size(); ++set) add_bound(set);
    if (!mode_.between_pushes.empty() && !bounds_.empty())
      line("in between: {}", mode_.between_pushes);
  }

  void add_bound(size_t set) {
    const KeyBound& bound = bounds_[set];
    std::vector<std::string> tables;
    for (size_t i = 0; i < placement_.tables.size(); ++i)
      if (placement_.key_sets[i] == set) tables.push_back(placement_.tables[i].name);
    const bool all_ids = bound.ids > 0 && bound.ids < instances() * bound.slots;
    line("key set {} of {}: {} bytes up for each key, at most {} keys, {}{}", set,
         fmt::join(tables, ", "), sizeof(Key) * key_lists(mode_), bound.most(instances()),
         all_ids ? "all ids there are"
                 : fmt::format("{} instances x {} slots", instances(), bound.slots),
         bound.pooled && !all_ids ? " if none holds more than one id" : "");
  }

  void add_memory() {
    line("\n== memory");
    for (uint32_t server = 0; server < options_.servers; ++server) {
      const std::vector<ps::ParameterSpec> held = placement_.slices_of(server);
      line("{}: parameters {} bytes, optimizer state {} bytes{}", names_[server],
           bytes_of(dense_floats(held)), bytes_of(state_floats(held)),
           bounds_.empty() ? "" : ", and its rows");
    }
    for (const ps::TableSpec& spec : placement_.tables) add_row(spec);
    Executor executor(plan_.worker);
    executor.prepare(feeds_of(plan_, bounds_, batch_));
    const MemoryReport memory = executor.memory();
    line("every worker: activations {} bytes planned, {} required by liveness", memory.planned,
         memory.required);
    const size_t parameters = bytes_of(dense_floats(plan_.parameters));
    if (mode_.pushes == Mode::Pushes::differences)
      line("every worker: parameters {} bytes, optimizer state {} bytes, rows as in local training",
           parameters, bytes_of(state_floats(plan_.parameters)));
    else
      line("every worker: parameters {} bytes for each batch under way", parameters);
  }

  void add_row(const ps::TableSpec& spec) {
    const size_t weights = bytes_of(spec.dim);
    const size_t state = bytes_of(ps::make_rule(spec.rule)->state_size(spec.dim));
    const bool scores = ps::Entry(spec.entry).kind() == ps::Entry::Kind::show_click;
    const size_t counters = bytes_of((spec.track_unseen ? 1 : 0) + (scores ? 2 : 0));
    line("a row of {}: {} bytes before padding: weights {}, optimizer state {}, key {}{}",
         spec.name, weights + state + sizeof(Key) + counters, weights, state, sizeof(Key),
         counters > 0 ? fmt::format(", counters {}", counters) : "");
  }

  const Config& config_;
  const Plan& plan_;
  const PlanOptions& options_;
  const size_t batch_;
  const Strategy strategy_ = strategy_of(config_);
  const Mode& mode_ = mode(strategy_.mode);
  const ps::Placement placement_;
  const std::vector<size_t> slots_;  // by server
  const std::vector<KeyBound> bounds_;
  std::vector<std::string> names_;
  std::string out_;
};

}  // namespace

WireBytes wire_bytes(const ps::Placement& placement, const Mode& mode, uint32_t server,
                     std::span<const size_t> keys) {
  const ps::ServerShape shape(placement, server);
  const size_t dense = bytes_of(shape.dense_floats);
  WireBytes bytes{.up = mode.exchanges * (sizeof(FrameHeader) + sizeof(ps::ExchangeHead)) + dense,
                  .down = mode.exchanges * (sizeof(FrameHeader) + sizeof(ps::ReplyHead)) + dense};
  if (keys.empty()) return bytes;
  // The number of the list that is pushed, and the keys of both lists by key set.
  bytes.up += sizeof(uint64_t) * (1 + 2 * shape.key_sets);
  for (const size_t count : keys) bytes.up += key_lists(mode) * count * sizeof(Key);
  for (size_t table = 0; table < shape.dims.size(); ++table) {
    const size_t rows = bytes_of(keys[shape.sets[table]] * shape.dims[table]);
    bytes.up += rows;
    bytes.down += rows;
  }
  return bytes;
}

std::string plan_report(const Config& config, const PlanOptions& options) {
  check<ConfigError>(options.workers > 0, "workers is 0, expected at least 1");
  const ModelSetup setup = make_model(config);
  const RecordedModel model = record(setup.model, trainer_options(config, setup));
  // Reject tables that no server could make.
  const std::unique_ptr<Env> env = real_env();
  const ps::TableHome home = ps::TableHome::temporary(*env);  // nothing is written there
  for (const ps::TableSpec& spec : model.plan.tables) static_cast<void>(make_row_table(spec, home));
  return Report(config, model.plan, setup.tables, options).text();
}

}  // namespace argosy
