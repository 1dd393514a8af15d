#include "argosy/fleet/rank_gradients.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/fleet/agreement.h"

namespace argosy {
namespace {

std::string text_of(std::span<const RankGradients::Parameter> parameters,
                    const RankGradientOptions& options) {
  std::ostringstream text;
  text << "gradients of ranks: " << name(options.scale)
       << (options.deterministic ? " deterministic" : "")
       << (options.find_unused ? " find_unused" : "") << '\n';
  for (const auto& [name, value] : parameters)
    text << "parameter " << name << ' ' << value->data.shape() << '\n';
  return text.str();
}

size_t size_of(const dynamic::Value& value) { return static_cast<size_t>(value.data.numel()); }

/// A gradient as a whole: zeros where there is none.
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

/// What every rank has, each filled up to `most` elements.
template <class T>
std::vector<T> gathered(Group& group, std::vector<T> mine, size_t most) {
  mine.resize(most);
  std::vector<T> all(most * static_cast<size_t>(group.size()));
  group.all_gather(std::span<const T>(mine), std::span(all));
  return all;
}

}  // namespace

RankGradients::RankGradients(std::shared_ptr<Group> group, std::vector<Parameter> parameters,
                             const RankGradientOptions& options)
    : group_(std::move(group)), parameters_(std::move(parameters)), options_(options) {
  check<ConfigError>(options_.scale == Reduce::avg || options_.scale == Reduce::sum,
                     "gradients of ranks: ", name(options_.scale), ", expected avg or sum");
  for (const auto& [name, value] : parameters_)
    check<ConfigError>(value->data.dtype() == DType::f32, "parameter ", name, " is ",
                       value->data.dtype(), ", expected f32");
  check_same_text(*group_, text_of(parameters_, options_));
  for (const auto& [name, value] : parameters_) {
    group_->broadcast(value->data.as<float>(), 0);
    ++value->version;
  }
  seen_ = times_reached();
}

uint64_t RankGradients::times_reached() const {
  uint64_t times = 0;
  for (const Parameter& parameter : parameters_) times += parameter.value->reached;
  return times;
}

/// The parameters that train and that a rank has a gradient of, as the most general kind that there
/// is on any.
std::vector<RankGradients::Member> RankGradients::agreed() const {
  std::vector<Member> mine;
  for (const Parameter& parameter : parameters_) {
    const dynamic::Value& value = *parameter.value;
    if (!value.trains) continue;
    mine.push_back({&parameter, value.grad       ? Kind::whole
                                : value.row_grad ? Kind::rows
                                                 : Kind::none});
  }
  std::vector<int32_t> most, least;
  for (const Member& member : mine) most.push_back(static_cast<int32_t>(member.kind));
  for (const Member& member : mine) most.push_back(-static_cast<int32_t>(member.kind));
  group_->all_reduce(std::span(most), Reduce::max);
  for (size_t i = 0; i < mine.size(); ++i) least.push_back(-most[mine.size() + i]);
  check_all_reached(mine, least);
  for (size_t i = 0; i < mine.size(); ++i) mine[i].kind = static_cast<Kind>(most[i]);
  std::erase_if(mine, [](const Member& member) { return member.kind == Kind::none; });
  return mine;
}

void RankGradients::check_all_reached(std::span<const Member> mine,
                                      std::span<const int32_t> least) const {
  if (options_.find_unused) return;
  for (size_t i = 0; i < mine.size(); ++i)
    check<ConfigError>(least[i] != static_cast<int32_t>(Kind::none), mine[i].parameter->name,
                       " got no gradient ", mine[i].kind == Kind::none ? "here" : "on another rank",
                       ", so that there is no mean over ", group_->size(),
                       " ranks; find_unused_parameters=True takes zeros for it");
}

void RankGradients::reduce() {
  const std::vector<Member> members = agreed();
  sum_whole(members);
  sum_rows(members);
  seen_ = times_reached();
}

void RankGradients::sum_whole(std::span<const Member> members) {
  size_t total = 0;
  for (const Member& member : members)
    if (member.kind == Kind::whole) total += size_of(*member.parameter->value);
  if (total == 0) return;
  if (memory_.size() < total) {
    const std::span<std::byte> arena = group_->arena(total * sizeof(float));
    memory_ = {reinterpret_cast<float*>(arena.data()), total};
  }
  const bool divides = options_.deterministic && options_.scale == Reduce::avg;
  const float share = divides ? 1 / static_cast<float>(group_->size()) : 1;
  const auto each = [&](const auto& work) {
    size_t begin = 0;
    for (const Member& member : members) {
      if (member.kind != Kind::whole) continue;
      dynamic::Value& value = *member.parameter->value;
      work(value, memory_.subspan(begin, size_of(value)));
      begin += size_of(value);
    }
  };
  each([&](const dynamic::Value& value, std::span<float> place) {
    copy_whole(value, share, place);
  });
  group_->all_reduce(memory_.first(total), divides ? Reduce::sum : options_.scale);
  // Other values may share the memory of a gradient.
  each([](dynamic::Value& value, std::span<const float> sum) {
    value.grad = copy_of(sum, value.data.shape());
    value.row_grad.reset();
  });
}

void RankGradients::sum_rows(std::span<const Member> members) {
  std::vector<dynamic::Value*> tables;
  std::vector<int64_t> counts;
  for (const Member& member : members) {
    if (member.kind != Kind::rows) continue;
    tables.push_back(member.parameter->value.get());
    counts.push_back(tables.back()->row_grad ? tables.back()->row_grad->rows.numel() : 0);
  }
  if (tables.empty()) return;
  const std::vector<int64_t> all = gathered(*group_, counts, counts.size());
  std::vector<int64_t> of_table(static_cast<size_t>(group_->size()));
  for (size_t table = 0; table < tables.size(); ++table) {
    for (size_t rank = 0; rank < of_table.size(); ++rank)
      of_table[rank] = all[rank * tables.size() + table];
    tables[table]->row_grad = sum_rows(*tables[table], of_table);
  }
}

/// counts: rows of each rank.
dynamic::RowGradient RankGradients::sum_rows(const dynamic::Value& value,
                                             std::span<const int64_t> counts) const {
  const auto most = static_cast<size_t>(std::ranges::max(counts));
  const int64_t dim = value.data.shape()[1];
  const size_t width = static_cast<size_t>(dim);
  const float share = options_.scale == Reduce::avg ? 1 / static_cast<float>(group_->size()) : 1.0F;
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
