#include "argosy/fleet/parcels.h"

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
  for (const TableSpec& spec : plan.tables) all += spec.elements;
  return std::clamp(all / 4, kLeast, kMost);
}

size_t padded(size_t floats) { return (floats + kParcelHead - 1) / kParcelHead * kParcelHead; }

std::vector<bool> read_by_no_node(const Plan& plan) {
  std::vector<bool> read(plan.worker.vars.size());
  for (const Node& node : plan.worker.nodes)
    for (const VarId id : node.in) read[id.index()] = true;
  std::vector<bool> placed(plan.tables.size());
  for (const Edge& edge : plan.edges)
    if (edge.kind == VarKind::param)
      placed[edge.target] =
          !read[edge.value.index()] && plan.worker.var(edge.value).kind == VarKind::temp;
  return placed;
}

}  // namespace

Parcels make_parcels(const Plan& plan, const CollectiveStrategy& strategy) {
  const size_t limit = bucket_floats(plan, strategy);
  Parcels result{.all = {},
                 .floats = kParcelHead,
                 .first_bucket = 0,
                 .of = std::vector<size_t>(plan.tables.size()),
                 .placed = read_by_no_node(plan)};
  struct Ended {
    Parcel parcel;
    size_t node;  // that ends it
  };
  std::vector<Ended> ended;
  Ended bucket{{.size = kParcelHead}, 0};
  for (const auto& [edge, node] : in_order(plan)) {
    if (edge->kind == VarKind::rows) {
      ended.push_back({{.rows = edge->target}, node});
      continue;
    }
    const size_t size = plan.tables[edge->target].elements;
    if (!bucket.parcel.members.empty() && bucket.parcel.size + size > limit)
      ended.push_back(std::exchange(bucket, {{.begin = result.floats}, 0}));
    bucket.parcel.members.push_back({edge->target, result.floats, size});
    bucket.parcel.size += padded(size);
    bucket.node = node;
    result.floats += padded(size);
  }
  ended.push_back(std::move(bucket));
  std::ranges::stable_sort(ended, {}, &Ended::node);
  for (size_t i = 0; i < ended.size(); ++i) {
    const Parcel& parcel = ended[i].parcel;
    if (parcel.rows) result.of[*parcel.rows] = i;
    if (!parcel.rows && parcel.begin == 0) result.first_bucket = i;
    for (const Parcel::Member& member : parcel.members) result.of[member.table] = i;
    result.all.push_back(parcel);
  }
  return result;
}

std::string Parcels::text(const Plan& plan) const {
  std::string out;
  for (const Parcel& parcel : all) {
    if (parcel.rows) {
      out += fmt::format("rows of {}\n", plan.tables[*parcel.rows].name);
      continue;
    }
    out += fmt::format("bucket of {} floats:", parcel.size);
    for (const Parcel::Member& member : parcel.members) out += " " + plan.tables[member.table].name;
    out += '\n';
  }
  return out;
}

}  // namespace argosy
