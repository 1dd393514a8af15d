#include "argosy/modes/ranks/buckets.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "argosy/base/error.h"

namespace argosy {
namespace {

constexpr double kMegabyte = 1 << 20;

/// A gradient and the node that makes it.
struct Final {
  const Edge* edge;
  size_t node;
};

std::vector<Final> in_order(const Plan& plan) {
  std::vector<size_t> maker(plan.worker.vars.size(), 0);
  for (size_t n = 0; n < plan.worker.nodes.size(); ++n)
    for (const VarId id : plan.worker.nodes[n].out) maker[id.index()] = n;
  std::vector<Final> all;
  for (const Edge& edge : plan.edges)
    if (edge.kind != VarKind::state) all.push_back({&edge, maker[edge.value.index()]});
  std::ranges::stable_sort(all, {}, &Final::node);
  return all;
}

/// Four buckets hide most of what can be hidden. Small ones cost more calls than they are worth,
/// and large ones end late.
size_t bucket_floats(const Plan& plan, const CollectiveStrategy& strategy) {
  check<ConfigError>(strategy.bucket_mb >= 0, "fuse_grad_size_in_MB is ", strategy.bucket_mb,
                     ", expected more than 0");
  if (!strategy.fuse) return 0;
  if (strategy.bucket_mb > 0)
    return static_cast<size_t>(strategy.bucket_mb * kMegabyte / sizeof(float));
  constexpr size_t kLeast = 256 * 1024 / sizeof(float), kMost = 32 * 1024 * 1024 / sizeof(float);
  size_t all = 0;
  for (const ps::ParameterSpec& spec : plan.parameters) all += spec.elements;
  return std::clamp(all / 4, kLeast, kMost);
}

size_t padded(size_t floats) { return (floats + kBucketHead - 1) / kBucketHead * kBucketHead; }

std::vector<bool> read_by_no_node(const Plan& plan) {
  std::vector<bool> read(plan.worker.vars.size());
  for (const Node& node : plan.worker.nodes)
    for (const VarId id : node.in) read[id.index()] = true;
  std::vector<bool> placed(plan.parameters.size());
  for (const Edge& edge : plan.edges)
    if (edge.kind == VarKind::param)
      placed[edge.target] =
          !read[edge.value.index()] && plan.worker.var(edge.value).kind == VarKind::temp;
  return placed;
}

}  // namespace

Buckets make_buckets(const Plan& plan, const CollectiveStrategy& strategy) {
  const size_t limit = bucket_floats(plan, strategy);
  Buckets result{.all = {},
                 .floats = kBucketHead,
                 .first_bucket = 0,
                 .of_parameter = std::vector<size_t>(plan.parameters.size()),
                 .of_table = std::vector<size_t>(plan.tables.size()),
                 .placed = read_by_no_node(plan)};
  struct Ended {
    Bucket bucket;
    size_t node;  // that ends it
  };
  std::vector<Ended> ended;
  Ended open{{.size = kBucketHead}, 0};
  for (const auto& [edge, node] : in_order(plan)) {
    if (edge->kind == VarKind::rows) {
      ended.push_back({{.rows = edge->target}, node});
      continue;
    }
    const size_t size = plan.parameters[edge->target].elements;
    if (!open.bucket.members.empty() && open.bucket.size + size > limit)
      ended.push_back(std::exchange(open, {{.begin = result.floats}, 0}));
    open.bucket.members.push_back({edge->target, result.floats, size});
    open.bucket.size += padded(size);
    open.node = node;
    result.floats += padded(size);
  }
  ended.push_back(std::move(open));
  std::ranges::stable_sort(ended, {}, &Ended::node);
  for (size_t i = 0; i < ended.size(); ++i) {
    const Bucket& bucket = ended[i].bucket;
    if (bucket.rows) result.of_table[*bucket.rows] = i;
    if (!bucket.rows && bucket.begin == 0) result.first_bucket = i;
    for (const Bucket::Member& member : bucket.members) result.of_parameter[member.parameter] = i;
    result.all.push_back(bucket);
  }
  return result;
}

std::string Buckets::text(const Plan& plan) const {
  std::string out;
  for (const Bucket& bucket : all) {
    if (bucket.rows) {
      out += fmt::format("rows of {}\n", plan.tables[*bucket.rows].name);
      continue;
    }
    out += fmt::format("bucket of {} floats:", bucket.size);
    for (const Bucket::Member& member : bucket.members)
      out += " " + plan.parameters[member.parameter].name;
    out += '\n';
  }
  return out;
}

}  // namespace argosy
