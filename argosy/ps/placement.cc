#include "argosy/ps/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "argosy/base/error.h"
#include "argosy/base/hash.h"
#include "argosy/ps/rule.h"

namespace argosy::ps {
namespace {

/// Sizes of the blocks of a parameter.
size_t block_size(const ParameterSpec& spec, uint32_t servers, const PlacementOptions& options) {
  if (!options.slice || make_rule(spec.rule)->whole_parameter()) return spec.elements;
  const size_t parts =
      std::clamp<size_t>(spec.elements / std::max<size_t>(options.min_block, 1), 1, servers);
  const size_t even = (spec.elements + parts - 1) / parts;
  return (even + spec.unit - 1) / spec.unit * spec.unit;
}

/// How the values of a parameter or a table begin and change.
template <class Spec>
std::string values_text(const Spec& spec) {
  std::string text = fmt::format("{} rule {} lr {} init {} seed {}", spec.name, spec.rule,
                                 spec.learning_rate, spec.init, spec.seed);
  if (!spec.regularizer.empty()) text += " regularizer " + spec.regularizer;
  if (!spec.clip.empty()) text += " clip " + spec.clip;
  return text;
}

}  // namespace

size_t Placement::slot_of(Key key) {
  return hash64(std::as_bytes(std::span(&key, 1))) & (kSlots - 1);
}

size_t Placement::key_set_count() const {
  size_t count = 0;
  for (const size_t set : key_sets) count = std::max(count, set + 1);
  return count;
}

std::vector<ParameterSpec> Placement::slices_of(uint32_t index) const {
  std::vector<ParameterSpec> held;
  for (const Slice& slice : slices) {
    if (slice.server != index) continue;
    ParameterSpec& part = held.emplace_back(parameters[slice.parameter]);
    part.first = slice.begin;
    part.of = part.elements;
    part.elements = slice.size();
  }
  return held;
}

std::string Placement::text() const {
  std::string out;
  auto line = std::back_inserter(out);
  for (size_t i = 0; i < parameters.size(); ++i) {
    fmt::format_to(line, "{} unit {}\n", values_text(parameters[i]), parameters[i].unit);
    for (const Slice& slice : slices)
      if (slice.parameter == i)
        fmt::format_to(line, "  {}..{} on server {}\n", slice.begin, slice.end, slice.server);
  }
  for (size_t i = 0; i < tables.size(); ++i) {
    const TableSpec& t = tables[i];
    fmt::format_to(line, "{} rows of {} by key set {} over {} servers{}{}\n", values_text(t), t.dim,
                   key_sets[i], servers, t.entry.empty() ? "" : " entry " + t.entry,
                   t.track_unseen ? " unseen" : "");
  }
  return out;
}

uint64_t Placement::hash() const { return hash64(text()); }

Placement place(std::vector<ParameterSpec> parameters, std::vector<TableSpec> tables,
                std::vector<size_t> key_sets, uint32_t servers, const PlacementOptions& options) {
  check<ConfigError>(servers > 0 && servers <= std::numeric_limits<uint16_t>::max(),
                     "there must be from 1 to 65535 servers, got ", servers);
  const bool by_name = options.dispatch == "hash_name";
  check<ConfigError>(by_name || options.dispatch == "round_robin", "dispatch '", options.dispatch,
                     "', expected round_robin or hash_name");
  Placement result;
  result.servers = servers;
  uint32_t next = 0;
  for (uint32_t parameter = 0; parameter < parameters.size(); ++parameter) {
    const ParameterSpec& spec = parameters[parameter];
    const size_t size = block_size(spec, servers, options);
    for (size_t begin = 0, block = 0; begin < spec.elements; begin += size, ++block) {
      const uint32_t server =
          by_name
              ? static_cast<uint32_t>(hash64(fmt::format("{}.block{}", spec.name, block)) % servers)
              : next++ % servers;
      result.slices.push_back({parameter, server, begin, std::min(spec.elements, begin + size)});
    }
  }
  result.owners.resize(Placement::kSlots);
  for (size_t slot = 0; slot < Placement::kSlots; ++slot)
    result.owners[slot] = static_cast<uint16_t>(slot % servers);
  result.parameters = std::move(parameters);
  result.tables = std::move(tables);
  result.key_sets = std::move(key_sets);
  return result;
}

}  // namespace argosy::ps
