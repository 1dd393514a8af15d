#include "argosy/train/chunks.h"

#include <algorithm>
#include <cstring>

#include "argosy/base/error.h"
#include "argosy/base/isa.h"

namespace argosy {
namespace {

/// Instances begin to end of an input whose axis 0 is the batch.
Tensor part_of(const Tensor& whole, size_t begin, size_t end) {
  Shape shape = whole.shape();
  const size_t stride = shape[0] == 0 ? 0 : whole.bytes() / static_cast<size_t>(shape[0]);
  shape[0] = static_cast<int64_t>(end - begin);
  return Tensor::wrap(const_cast<std::byte*>(whole.data()) + begin * stride, shape, whole.dtype());
}

void copy_into(const Tensor& from, Tensor& to) {
  to.renew(from.shape(), from.dtype());
  if (from.numel() > 0) std::memcpy(to.data(), from.data(), from.bytes());
}

}  // namespace

ChunkedCompute::ChunkedCompute(const Plan& plan, const Measures& measures, size_t chunks,
                               size_t threads, const Executor::Options& options)
    : plan_(plan), measured_(measures.variables()), chunks_(chunks), team_(threads) {
  executors_.reserve(threads);
  for (size_t i = 0; i < threads; ++i) executors_.emplace_back(plan.worker, options);
  for (Chunk& chunk : chunks_) {
    chunk.offsets.resize(plan.layout.indices.size());
    chunk.values.resize(plan.edges.size());
    chunk.measured.resize(measured_.size());
  }
}

void ChunkedCompute::take_part(const Batch& batch, Chunk& chunk) const {
  const auto whole = [&](const std::string& name) -> const Tensor& {
    const auto feed = batch.feeds.find(name);
    check<ConfigError>(feed != batch.feeds.end(), "input '", name, "' is not fed");
    return feed->second;
  };
  for (const ps::ParameterSpec& spec : plan_.parameters) chunk.feeds[spec.name] = whole(spec.name);
  for (const ps::TableSpec& spec : plan_.tables) chunk.feeds[spec.name] = whole(spec.name);
  for (const VarDesc& state : plan_.states) chunk.feeds[state.name] = whole(state.name);
  for (const ColumnFeed& column : plan_.layout.columns)
    chunk.feeds[column.input] = part_of(whole(column.input), chunk.begin, chunk.end);
  for (size_t i = 0; i < plan_.layout.indices.size(); ++i) {
    const IndexFeed& lookup = plan_.layout.indices[i];
    if (lookup.offsets.empty()) {
      chunk.feeds[lookup.index] = part_of(whole(lookup.index), chunk.begin, chunk.end);
      continue;
    }
    const size_t slots = lookup.slots.size();
    const auto all =
        whole(lookup.offsets).as<int32_t>().subspan(chunk.begin * slots, chunk.size() * slots + 1);
    chunk.offsets[i].renew({static_cast<int64_t>(all.size())}, DType::i32);
    std::ranges::transform(all, chunk.offsets[i].as<int32_t>().begin(),
                           [&](int32_t offset) { return offset - all.front(); });
    chunk.feeds[lookup.offsets] = chunk.offsets[i];
    chunk.feeds[lookup.index] = part_of(whole(lookup.index), static_cast<size_t>(all.front()),
                                        static_cast<size_t>(all.back()));
  }
}

void ChunkedCompute::compute(Chunk& chunk, Executor& executor, const RunSeed& seed) const {
  executor.run(chunk.feeds, {}, seed);
  for (size_t i = 0; i < plan_.edges.size(); ++i)
    copy_into(executor.value(plan_.edges[i].value), chunk.values[i]);
  for (size_t i = 0; i < measured_.size(); ++i)
    copy_into(executor.value(measured_[i]), chunk.measured[i]);
}

/// Leaves the weighted sum of an edge's values in the first chunk that has instances.
void ChunkedCompute::add_up(size_t edge, size_t instances) {
  float* total = nullptr;
  for (Chunk& chunk : chunks_) {
    if (chunk.size() == 0) continue;
    const auto share = static_cast<float>(chunk.size()) / static_cast<float>(instances);
    const std::span<float> values = chunk.values[edge].as<float>();
    const bool first = total == nullptr;
    if (first) total = values.data();
    vectorized([=, from = values.data(), n = values.size()] {
      for (size_t i = 0; i < n; ++i) total[i] = (first ? 0.0F : total[i]) + from[i] * share;
    });
  }
}

void ChunkedCompute::run(Batch& batch, Lane& lane, const RunSeed& seed, MetricTally& metrics,
                         FiniteCheck& finite) {
  const size_t n = chunks_.size();
  for (size_t i = 0; i < n; ++i) {
    chunks_[i].begin = batch.size * i / n;
    chunks_[i].end = batch.size * (i + 1) / n;
  }
  team_.run(n, [&](size_t i, size_t thread) {
    if (chunks_[i].size() == 0) return;
    take_part(batch, chunks_[i]);
    compute(chunks_[i], executors_[thread], {seed.seed, seed.step * n + i});
  });
  team_.run(plan_.edges.size(), [&](size_t edge, size_t) { add_up(edge, batch.size); });

  const auto first =
      std::ranges::find_if(chunks_, [](const Chunk& chunk) { return chunk.size() > 0; });
  for (const Chunk& chunk : chunks_)
    for (size_t i = 0; chunk.size() > 0 && i < measured_.size(); ++i)
      finite.look(batch, measured_[i], chunk.measured[i], seed);
  for (size_t i = 0; i < plan_.edges.size(); ++i) {
    finite.look(batch, plan_.edges[i].value, first->values[i], seed);
    lane.deliver(batch, plan_.edges[i], first->values[i]);
  }
  for (const Chunk& chunk : chunks_) {
    if (chunk.size() == 0) continue;
    metrics.add(chunk.size(), [&](VarId id) -> const Tensor& {
      return chunk
          .measured[static_cast<size_t>(std::ranges::find(measured_, id) - measured_.begin())];
    });
  }
}

}  // namespace argosy
