#include "argosy/nn/merge_lookups.h"

#include <algorithm>
#include <optional>
#include <span>

#include "argosy/base/call.h"
#include "argosy/graph/replay.h"
#include "argosy/nn/layers.h"

namespace argosy::nn {
namespace {

/// A lookup of one slot, as embedding() records it.
struct Lookup {
  const Node* node = nullptr;
  std::string table, slot;
  int64_t dim = 0;
  EmbeddingOptions options = {};
  bool goes_with(const Lookup& other) const {
    return table == other.table && options.pool == other.options.pool &&
           options.padding == other.options.padding;
  }
};

/// Lookups that stand side by side in a concat.
struct Group {
  std::vector<Lookup> lookups;
  Var merged = {};  // once it is recorded
};

/// A lookup of a group; group -1: none.
struct Place {
  int group = -1;
  size_t number = 0;
  explicit operator bool() const { return group >= 0; }
};

class Search {
 public:
  explicit Search(const Program& program)
      : program_(program),
        maker_(program.vars.size()),
        uses_(program.vars.size()),
        looked_up_(program.vars.size()),
        concatenated_(program.vars.size()),
        absorbed_(program.vars.size()) {
    for (const Node& node : program.nodes) {
      for (const VarId id : node.out) maker_[id.index()] = &node;
      for (const VarId id : node.in) ++uses_[id.index()];
    }
    for (const Node& node : program.nodes)
      if (node.op->name == "concat" && is_last_axis(node)) add_groups(node);
  }

  std::vector<Group>& groups() { return groups_; }
  Group& group(const Place& place) { return groups_[static_cast<size_t>(place.group)]; }
  /// The place of a lookup's result, and of a concat's input.
  Place looked_up(VarId id) const { return looked_up_[id.index()]; }
  Place concatenated(VarId id) const { return concatenated_[id.index()]; }
  /// An input that only merged lookups needed.
  bool absorbed(VarId id) const { return absorbed_[id.index()]; }

 private:
  bool is_last_axis(const Node& concat) const {
    const int64_t axis = concat.attrs.integer("axis");
    return program_.var(concat.out[0]).type.shape.rank() == 2 && (axis == 1 || axis == -1);
  }

  /// The lookup whose rows, under another shape, this variable [batch, dim] is.
  std::optional<Lookup> find_lookup(VarId id) const {
    const Shape& shape = program_.var(id).type.shape;
    const Node* node = maker_[id.index()];
    while (node != nullptr && uses_[id.index()] == 1 && node->op->trait == OpTrait::view) {
      id = node->in[0];
      node = maker_[id.index()];
    }
    if (node == nullptr || uses_[id.index()] != 1 ||
        (node->op->name != "embedding" && node->op->name != "gather_pool"))
      return std::nullopt;
    const VarDesc& rows = program_.var(node->in[0]);
    const VarDesc& index = program_.var(node->in[1]);
    if (rows.kind != VarKind::rows || index.from.empty() || uses_[node->in[1].index()] != 1)
      return std::nullopt;
    const Call from(index.from);
    const std::vector<std::string> words = from.words();
    if (words.size() != 2 || shape.rank() != 2 || shape[1] != rows.type.shape[1])
      return std::nullopt;
    Lookup lookup{.node = node, .table = rows.name, .slot = words[1], .dim = shape[1]};
    lookup.options.init = rows.init;
    lookup.options.pool = node->attrs.text("pool");
    if (const std::string padding = from.word("padding", ""); !padding.empty())
      lookup.options.padding = std::stoull(padding);
    return lookup;
  }

  void add_groups(const Node& concat) {
    Group group;
    std::vector<VarId> members;
    const auto close = [&] {
      if (members.size() > 1) add(std::move(group), members);
      group = {};
      members.clear();
    };
    for (const VarId id : concat.in) {
      std::optional<Lookup> lookup = find_lookup(id);
      if (!lookup || (!group.lookups.empty() && !lookup->goes_with(group.lookups[0]))) close();
      if (!lookup) continue;
      group.lookups.push_back(*std::move(lookup));
      members.push_back(id);
    }
    close();
  }

  void add(Group group, std::span<const VarId> members) {
    const auto number = static_cast<int>(groups_.size());
    for (size_t i = 0; i < members.size(); ++i) {
      const Node& node = *group.lookups[i].node;
      concatenated_[members[i].index()] = looked_up_[node.out[0].index()] = {number, i};
      for (size_t input = 1; input < node.in.size(); ++input)
        absorbed_[node.in[input].index()] = true;
    }
    groups_.push_back(std::move(group));
  }

  const Program& program_;
  std::vector<const Node*> maker_;  // these five by variable
  std::vector<int> uses_;
  std::vector<Place> looked_up_, concatenated_;
  std::vector<bool> absorbed_;
  std::vector<Group> groups_;
};

Var merged_lookup(Builder& g, Group& group, const SourceLoc& at) {
  if (group.merged) return group.merged;
  std::vector<std::string> slots;
  slots.reserve(group.lookups.size());
  for (const Lookup& lookup : group.lookups) slots.push_back(lookup.slot);
  const Lookup& first = group.lookups[0];
  return group.merged = embedding(g, slots, first.table, first.dim, first.options, at);
}

/// The result of one lookup, in case its value is asked for; nothing else needs it.
Var slice_of(const Group& group, size_t number, const Shape& shape) {
  const int64_t dim = group.lookups[0].dim, start = static_cast<int64_t>(number) * dim;
  const Var slice = group.merged.g->apply("slice", {group.merged},
                                          {{"axes", std::vector<int64_t>{1}},
                                           {"starts", std::vector<int64_t>{start}},
                                           {"ends", std::vector<int64_t>{start + dim}}});
  return reshape(slice, {shape.begin(), shape.end()});
}

/// A concat with each group's lookups in one piece.
Var concat_merged(const Node& concat, Search& search, const Replay& replay) {
  std::vector<Var> parts;
  int last = -1;
  for (const VarId id : concat.in) {
    const Place place = search.concatenated(id);
    if (!place)
      parts.push_back(replay[id]);
    else if (place.group != last)
      parts.push_back(search.group(place).merged);
    last = place.group;
  }
  if (parts.size() == 1) return parts[0];
  return parts[0].g->apply_all("concat", parts, concat.attrs, concat.at)[0];
}

bool is_merged(const Node* node, const Search& search) {
  return node != nullptr && node->op->name == "concat" &&
         std::ranges::any_of(node->in, [&](VarId id) { return bool(search.concatenated(id)); });
}

}  // namespace

MergedLookups merge_lookups(const Program& program) {
  Search search(program);
  Builder g;
  Replay replay(program, g);
  while (!replay.at_end()) {
    const VarId id = replay.next();
    const VarDesc& desc = program.var(id);
    if (search.absorbed(id)) {
      replay.pass_over();
    } else if (const Place place = search.looked_up(id)) {
      merged_lookup(g, search.group(place), desc.at);
      replay.record_as(slice_of(search.group(place), place.number, desc.type.shape));
    } else if (is_merged(replay.node(), search)) {
      replay.record_as(concat_merged(*replay.node(), search, replay));
    } else {
      replay.record();
    }
  }
  for (const VarId id : program.outputs) g.output(replay[id]);
  replay_updates(program, replay, g);
  return {g.program(), replay.now()};
}

}  // namespace argosy::nn
