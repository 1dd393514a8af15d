#include "argosy/config/proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/config/model_setup.h"
#include "argosy/config/runner.h"
#include "argosy/config/sources.h"
#include "argosy/data/batcher.h"
#include "argosy/modes/mode.h"
#include "argosy/modes/serve.h"

namespace argosy {
namespace {

constexpr int kSteps = 2;
const Strategy kSplit = {.mode = "sync"};  // the same bits as one process

/// Servers of one worker, in this process. Ends after its client.
class LoopbackServers {
 public:
  LoopbackServers(Env& env, const ps::Placement& placement, const Strategy& strategy)
      : transport_(tcp_transport()) {
    for (uint32_t i = 0; i < placement.servers; ++i) {
      servers_.push_back(ps::Server::make(
          env, placement, {.index = i, .workers = 1, .sync = mode(strategy.mode).sync}));
      endpoints_.push_back(transport_->listen({"127.0.0.1", 0}, servers_.back()->acceptor()));
    }
  }
  ~LoopbackServers() { transport_.reset(); }  // no event may find the servers gone
  LoopbackServers(const LoopbackServers&) = delete;
  LoopbackServers& operator=(const LoopbackServers&) = delete;

  Wires connect(Env& env, const ps::Placement& placement, const Strategy& strategy) {
    return connect_servers(env, *transport_, placement,
                           user_defined_role(RoleKind::worker, 0, 1, endpoints_), strategy);
  }

 private:
  std::unique_ptr<Transport> transport_;
  std::vector<std::shared_ptr<ps::Server>> servers_;
  std::vector<Endpoint> endpoints_;
};

/// Copies the fields that readers fill.
Batch copy_of(const Batch& batch) {
  Batch copy;
  copy.feeds = batch.feeds;
  copy.size = batch.size;
  copy.keys = batch.keys;
  return copy;
}

void train(Trainer& trainer, const Batch& batch) {
  Batch own = copy_of(batch);
  for (int step = 0; step < kSteps; ++step) trainer.step(own);
  trainer.communicator().drain();
}

/// "parameter 'w'", "optimizer state of 'w'", "the step".
std::string described(const std::string& name) {
  if (name == "@step") return "the step";
  const size_t at = name.rfind('@');
  if (at == std::string::npos) return "parameter '" + name + "'";
  return fmt::format("optimizer {} of '{}'", name.substr(at + 1), name.substr(0, at));
}

/// The first element whose bits differ.
std::optional<size_t> first_difference(std::span<const float> a, std::span<const float> b) {
  const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
  const auto [at, end] = std::ranges::mismatch(a, b, {}, bits, bits);
  if (at == a.end()) return std::nullopt;
  return static_cast<size_t>(at - a.begin());
}

std::string difference_text(size_t element, float whole, float split) {
  return fmt::format(" differs in element {}: {:.9g} whole, {:.9g} split", element, whole, split);
}

void compare_values(const Tensor& whole, const Tensor& split, const std::string& what) {
  check<DataError>(whole.shape() == split.shape() && whole.dtype() == split.dtype(), what,
                   " differs: ", whole.dtype(), whole.shape(), " whole, ", split.dtype(),
                   split.shape(), " split");
  if (whole.dtype() != DType::f32) {
    check<DataError>(std::memcmp(whole.data(), split.data(), whole.bytes()) == 0, what, " differs");
    return;
  }
  const auto a = whole.as<float>(), b = split.as<float>();
  if (const auto i = first_difference(a, b))
    fail<DataError>(what, difference_text(*i, a[*i], b[*i]));
}

void compare_keys(const std::vector<Key>& whole, const std::vector<Key>& split,
                  const std::string& table) {
  const auto [a, b] = std::ranges::mismatch(whole, split);
  if (a == whole.end() && b == split.end()) return;
  const bool in_whole = b == split.end() || (a != whole.end() && *a < *b);
  fail<DataError>("table '", table, "' differs: key ", in_whole ? *a : *b, " has a row only ",
                  in_whole ? "whole" : "split");
}

/// Ids of each slot are below this, as tables with a declared size demand; 0: any.
uint64_t id_limit(const std::string& slot, const Plan& plan, const TablesOptions& tables) {
  uint64_t limit = 0;
  for (size_t i = 0; i < plan.tables.size(); ++i) {
    const auto options = tables.find(plan.tables[i].name);
    if (options == tables.end() || options->second.size == 0) continue;
    for (const IndexFeed& lookup : plan.layout.indices)
      if (lookup.key_set == plan.key_sets[i] && std::ranges::count(lookup.slots, slot) > 0)
        limit = limit == 0 ? options->second.size : std::min(limit, options->second.size);
  }
  return limit;
}

/// Draws what slots hold, one number after the other.
class Draw {
 public:
  explicit Draw(uint64_t seed) : stream_(seed, 1) {}
  /// Half of them small, so that some come more than once.
  uint64_t id(uint64_t limit) {
    constexpr uint64_t kFrequent = 1000;
    if (limit == 0) limit = std::numeric_limits<uint64_t>::max();
    const bool frequent = below(2) == 0;
    return below(frequent ? std::min(limit, kFrequent) : limit);
  }
  uint64_t below(uint64_t n) { return stream_.below(next_++, n); }
  float real() { return static_cast<float>(stream_.uniform(next_++)); }

 private:
  RandomStream stream_;
  uint64_t next_ = 0;
};

/// One batch as training would read it, or a made-up one.
Batch batch_for(Env& env, const Config& config, const Plan& plan, const TablesOptions& tables) {
  const std::string& folder = config.train.data_dir;
  if (folder.empty() || !std::filesystem::exists(folder)) return random_batch(config, plan, tables);
  Config reading = config;
  reading.train.type = "QueueDataset";
  reading.runner.shuffle = false;
  Batch batch;
  const auto data = make_train_data(env, reading, plan, tables);
  data->begin_epoch(static_cast<uint64_t>(config.runner.seed));
  check<DataError>(data->next(batch), folder, ": has no instance");
  return batch;
}

}  // namespace

size_t compare_stores(TableStore& whole, TableStore& split) {
  const std::vector<NamedTensor> a = whole.persistables(), b = split.persistables();
  check<DataError>(std::ranges::equal(a, b, {}, &NamedTensor::name, &NamedTensor::name),
                   "whole and split have other parameters");
  for (size_t i = 0; i < a.size(); ++i)
    compare_values(a[i].value, b[i].value, described(a[i].name));
  size_t rows = 0;
  for (const std::string& table : whole.sparse_tables()) {
    const TableRows ours = whole.rows(table), theirs = split.rows(table);
    compare_keys(ours.keys, theirs.keys, table);
    rows += ours.keys.size();
    const auto x = ours.rows.as<float>(), y = theirs.rows.as<float>();
    if (const auto i = first_difference(x, y)) {
      const size_t dim = x.size() / ours.keys.size();
      fail<DataError>("row ", ours.keys[*i / dim], " of table '", table, "'",
                      difference_text(*i % dim, x[*i], y[*i]));
    }
  }
  return rows;
}

Proof prove_split(Env& env, const Model& model, const TrainerOptions& options,
                  const ps::Placement& placement, const Batch& batch) {
  TrainerOptions local = options, sync = options;
  local.strategy = {};
  Trainer whole(env, model, local);
  train(whole, batch);

  sync.strategy = kSplit;
  LoopbackServers servers(env, placement, sync.strategy);
  Trainer split(env, model, sync, servers.connect(env, placement, sync.strategy));
  train(split, batch);

  Proof proof;
  proof.rows = compare_stores(whole.communicator().store(), split.communicator().store());
  proof.parameters = placement.parameters.size();
  split.leave();
  return proof;
}

Batch random_batch(const Config& config, const Plan& plan, const TablesOptions& tables) {
  constexpr uint64_t kMostIds = 3;  // in a slot that holds any number
  const std::vector<SlotSpec>& slots = config.inputs.columns;
  std::vector<uint64_t> limits;
  limits.reserve(slots.size());
  for (const SlotSpec& slot : slots) limits.push_back(id_limit(slot.name, plan, tables));
  Draw draw(static_cast<uint64_t>(config.runner.seed));
  Columns columns(slots);
  for (int64_t row = 0; row < config.runner.train_batch_size; ++row) {
    for (size_t slot = 0; slot < slots.size(); ++slot) {
      const SlotSpec& spec = slots[slot];
      const size_t count = spec.width > 0 ? spec.width : 1 + draw.below(kMostIds);
      if (spec.kind == SlotKind::ids)
        std::generate_n(columns.add_ids(slot, count), count, [&] { return draw.id(limits[slot]); });
      else if (spec.name == config.inputs.label)
        std::generate_n(columns.add_floats(slot, count), count,
                        [&] { return static_cast<float>(draw.below(2)); });
      else
        std::generate_n(columns.add_floats(slot, count), count, [&] { return draw.real(); });
    }
    if (const auto reason = columns.commit()) fail<Error>("a made-up instance: ", *reason);
  }
  Batch batch;
  Batcher(plan.layout, slots).fill(columns, batch);
  return batch;
}

Proof prove_plan(Env& env, const Config& config, const PlanOptions& options) {
  const ModelSetup setup = make_model(config);
  const TrainerOptions training = trainer_options(config, setup);
  const Plan plan = record(setup.model, training).plan;
  const ps::Placement placement = placement_of(plan, kSplit, options.servers, options.placement);
  return prove_split(env, setup.model, training, placement,
                     batch_for(env, config, plan, setup.tables));
}

}  // namespace argosy
