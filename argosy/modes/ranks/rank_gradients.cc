// Invariants:
//   1. memory_ begins with two floats per parameter (write_kinds); behind them are the gradients in
//      buckets, in parameter order. buckets_ is in sending order, which is the reverse, so the last
//      one sent lies next to the kinds and takes them along.
//   2. Every step sends all of buckets_, in that order, on every rank. sent_ counts those sent:
//      backward() sends full ones, never the last; reduce() sends the rest and sets it to 0.
//   3. After the last bucket all ranks read the same kinds, so they agree on what else to sum.
//   4. A parameter gets its place in a bucket in the first reduce() in which a rank has a whole
//      gradient for it, and keeps it: from then on its row gradients are sent whole, too.
#include "argosy/modes/ranks/rank_gradients.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/modes/ranks/agreement.h"

namespace argosy {
namespace {

std::string text_of(std::span<const RankGradients::Parameter> parameters,
                    const RankGradientOptions& options) {
  std::ostringstream text;
  text << "gradients of ranks: " << name(options.scale)
       << (options.deterministic ? " deterministic" : "")
       << (options.find_unused ? " find_unused" : "") << ", sent in " << options.last_bucket_bytes
       << " and " << options.bucket_bytes << " bytes\n";
  for (const auto& [name, value] : parameters)
    text << "parameter " << name << ' ' << value->data.shape() << '\n';
  return text.str();
}

/// Copies a gradient as a dense one; zeros if there is none.
void copy_whole(const dynamic::Value& value, float share, std::span<float> to) {
  if (!value.grad && !value.row_grad) {
    std::ranges::fill(to, 0.0F);
    return;
  }
  const Tensor grad = value.grad ? *value.grad : value.row_grad->dense(value.data.shape());
  const std::span<const float> from = std::as_const(grad).as<float>();
  for (size_t i = 0; i < to.size(); ++i) to[i] = from[i] * share;
}

Tensor copy_of(std::span<const float> from, const Shape& shape) {
  Tensor made = Tensor::uninitialized(shape, DType::f32);
  std::ranges::copy(from, made.as<float>().begin());
  return made;
}

/// All-gathers a vector, padded to `most` elements on each rank.
template <class T>
std::vector<T> gathered(comm::Group& group, std::vector<T> mine, size_t most) {
  mine.resize(most);
  std::vector<T> all(most * static_cast<size_t>(group.size()));
  group.all_gather(std::span<const T>(mine), std::span(all));
  return all;
}

}  // namespace

RankGradients::RankGradients(std::shared_ptr<comm::Group> group, std::vector<Parameter> parameters,
                             const RankGradientOptions& options)
    : group_(std::move(group)),
      parameters_(std::move(parameters)),
      options_(options),
      reduce_(options.deterministic ? comm::Reduce::sum : options.scale),
      placed_(parameters_.size()) {
  check<ConfigError>(options_.scale == comm::Reduce::avg || options_.scale == comm::Reduce::sum,
                     "gradients of ranks: ", name(options_.scale), ", expected avg or sum");
  for (const auto& [name, value] : parameters_)
    check<ConfigError>(value->data.dtype() == DType::f32, "parameter ", name, " is ",
                       value->data.dtype(), ", expected f32");
  check_same_text(*group_, text_of(parameters_, options_));
  for (const auto& [name, value] : parameters_) {
    group_->broadcast(value->data.as<float>(), 0);
    ++value->version;
  }
  overlaps_ = overlaps(*group_, options_.overlap);
  lay_out({});
  seen_ = times_reached();
}

size_t RankGradients::elements(size_t parameter) const {
  return static_cast<size_t>(value(parameter).data.numel());
}

uint64_t RankGradients::times_reached() const {
  uint64_t times = 0;
  for (const Parameter& parameter : parameters_) times += parameter.value->reached;
  return times;
}

void RankGradients::backward(const dynamic::ValuePtr& of, const std::optional<Tensor>& seed,
                             dynamic::Graph graph) {
  check<ConfigError>(
      sent_ == 0,
      "backward: an earlier one failed when some of its gradients were sent to other "
      "ranks, which wait for the rest");
  for (Bucket& bucket : buckets_) bucket.missing = bucket.members.size();
  if (!overlaps_) return dynamic::backward(of, seed, graph);
  dynamic::backward(of, seed, graph, [this](const dynamic::Value& leaf) { count_final(leaf); });
}

/// Sends full buckets, in the same order on every rank whatever order they fill in.
void RankGradients::count_final(const dynamic::Value& leaf) {
  const auto found = bucket_of_.find(&leaf);
  if (found == bucket_of_.end()) return;
  --buckets_[found->second].missing;
  // Leave the last one to reduce(): there is nothing left to overlap with.
  for (; sent_ + 1 < buckets_.size() && buckets_[sent_].missing == 0; ++sent_)
    group_->start(filled(buckets_[sent_]));
}

void RankGradients::reduce() {
  if (options_.activity == nullptr) return reduce_all();
  Activity& activity = *options_.activity;
  activity.begin(Doing::sending);
  reduce_all();
  activity.end_step(1, ++steps_, 0);
  activity.begin(Doing::computing);
}

void RankGradients::reduce_all() {
  for (; sent_ < buckets_.size(); ++sent_) group_->run(filled(buckets_[sent_]));
  sent_ = 0;
  const std::vector<Kind> kinds = agreed();
  for (const Bucket& bucket : buckets_) take(bucket, kinds);
  std::vector<size_t> whole, rows;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (placed_[i] || kinds[i] == Kind::none) continue;
    (kinds[i] == Kind::whole ? whole : rows).push_back(i);
  }
  sum_whole(whole);
  sum_rows(rows);
  seen_ = times_reached();
}

RankGradients::Kind RankGradients::kind(size_t parameter) const {
  const dynamic::Value& own = value(parameter);
  if (!own.trains) return Kind::none;
  return own.grad ? Kind::whole : own.row_grad ? Kind::rows : Kind::none;
}

/// For each parameter, whether this rank has a whole gradient, and whether it has any.
void RankGradients::write_kinds() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    memory_[2 * i] = kind(i) == Kind::whole ? 1 : 0;
    memory_[2 * i + 1] = kind(i) == Kind::none ? 0 : 1;
  }
}

/// The kind to sum for each parameter: the most general that any rank has. It was summed with the
/// last bucket.
std::vector<RankGradients::Kind> RankGradients::agreed() const {
  const float everybody = reduce_ == comm::Reduce::avg ? 1 : static_cast<float>(group_->size());
  std::vector<Kind> kinds;
  kinds.reserve(parameters_.size());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const float whole = memory_[2 * i], any = memory_[2 * i + 1];
    kinds.push_back(whole > 0 ? Kind::whole : any > 0 ? Kind::rows : Kind::none);
    check<ConfigError>(any == everybody || !value(i).trains || options_.find_unused,
                       parameters_[i].name, " got no gradient ",
                       kind(i) == Kind::none ? "here" : "on another rank",
                       ", so that there is no mean over ", group_->size(),
                       " ranks; find_unused_parameters=True takes zeros for it");
  }
  return kinds;
}

/// Gives these a place in a bucket too. The last parameters, whose gradients are final first, are
/// sent first; the last bucket also has the kinds of all gradients.
void RankGradients::lay_out(std::span<const size_t> more) {
  for (const size_t parameter : more) placed_[parameter] = true;
  size_t total = 2 * parameters_.size();
  buckets_ = {{.members = {}, .begin = total}};
  for (size_t i = 0; i < placed_.size(); ++i) {
    if (!placed_[i]) continue;
    const size_t most = !overlaps_             ? SIZE_MAX
                        : buckets_.size() <= 1 ? options_.last_bucket_bytes
                                               : options_.bucket_bytes;
    if (buckets_.back().elements * sizeof(float) >= most)
      buckets_.push_back({.members = {}, .begin = total});
    buckets_.back().members.push_back(i);
    buckets_.back().elements += elements(i);
    total += elements(i);
  }
  std::ranges::reverse(buckets_);
  for (size_t i = 0; i < buckets_.size(); ++i)
    for (const size_t member : buckets_[i].members) bucket_of_[parameters_[member].value.get()] = i;
  if (memory_.size() < total) {
    const std::span<std::byte> arena = group_->arena(total * sizeof(float));
    memory_ = {reinterpret_cast<float*>(arena.data()), total};
  }
}

/// Copies a bucket's gradients to memory that ranks share, to be summed there.
comm::Collective RankGradients::filled(const Bucket& bucket) {
  const float share = reduce_ == options_.scale ? 1 : 1 / static_cast<float>(group_->size());
  size_t begin = bucket.begin;
  for (const size_t member : bucket.members) {
    copy_whole(value(member), share, memory_.subspan(begin, elements(member)));
    begin += elements(member);
  }
  if (&bucket != &buckets_.back())
    return comm::calls::all_reduce(memory_.subspan(bucket.begin, bucket.elements), reduce_);
  write_kinds();
  return comm::calls::all_reduce(memory_.first(bucket.begin + bucket.elements), reduce_);
}

/// Copies the sums to new gradient tensors: others may still hold the previous ones.
void RankGradients::take(const Bucket& bucket, std::span<const Kind> kinds) {
  size_t begin = bucket.begin;
  for (const size_t member : bucket.members) {
    dynamic::Value& to = value(member);
    if (kinds[member] != Kind::none) {
      to.grad = copy_of(memory_.subspan(begin, elements(member)), to.data.shape());
      to.row_grad.reset();
    }
    begin += elements(member);
  }
}

/// Sums whole gradients of parameters that are in no bucket, and gives them places in buckets.
void RankGradients::sum_whole(std::span<const size_t> members) {
  if (members.empty()) return;
  lay_out(members);
  Bucket all{.members = {}, .begin = 2 * parameters_.size()};
  for (const size_t member : members) {
    all.members.push_back(member);
    all.elements += elements(member);
  }
  group_->run(filled(all));
  take(all, std::vector(parameters_.size(), Kind::whole));
}

void RankGradients::sum_rows(std::span<const size_t> members) {
  if (members.empty()) return;
  std::vector<int64_t> counts;
  counts.reserve(members.size());
  for (const size_t member : members)
    counts.push_back(value(member).row_grad ? value(member).row_grad->rows.numel() : 0);
  const std::vector<int64_t> all = gathered(*group_, counts, counts.size());
  std::vector<int64_t> of_table(static_cast<size_t>(group_->size()));
  for (size_t table = 0; table < members.size(); ++table) {
    for (size_t rank = 0; rank < of_table.size(); ++rank)
      of_table[rank] = all[rank * members.size() + table];
    value(members[table]).row_grad = sum_rows(value(members[table]), of_table);
  }
}

/// counts: rows of each rank.
dynamic::RowGradient RankGradients::sum_rows(const dynamic::Value& value,
                                             std::span<const int64_t> counts) const {
  const auto most = static_cast<size_t>(std::ranges::max(counts));
  const int64_t dim = value.data.shape()[1];
  const size_t width = static_cast<size_t>(dim);
  const float share =
      options_.scale == comm::Reduce::avg ? 1 / static_cast<float>(group_->size()) : 1.0F;
  std::vector<int64_t> rows;
  std::vector<float> floats;
  if (value.row_grad) {
    const auto own = std::as_const(value.row_grad->rows).as<int64_t>();
    rows.assign(own.begin(), own.end());
    for (const float number : std::as_const(value.row_grad->values).as<float>())
      floats.push_back(number * share);
  }
  rows = gathered(*group_, std::move(rows), most);
  floats = gathered(*group_, std::move(floats), most * width);
  std::vector<dynamic::RowGradient> parts;
  for (size_t rank = 0; rank < counts.size(); ++rank) {
    const auto count = static_cast<size_t>(counts[rank]);
    const std::span<const int64_t> keys = std::span(rows).subspan(rank * most, count);
    parts.push_back(
        {.rows = Tensor::of<int64_t>({counts[rank]}, keys),
         .values = copy_of(std::span(floats).subspan(rank * most * width, count * width),
                           {counts[rank], dim})});
  }
  return sum_of(parts);
}

}  // namespace argosy
