#include "argosy/data/key_columns.h"

#include <algorithm>
#include <set>

#include "argosy/base/error.h"

namespace argosy {
namespace {

/// One number for each instance, as floats.
std::vector<float> values_of(const std::string& input, const Batch& batch) {
  const auto found = batch.feeds.find(input);
  check<ConfigError>(found != batch.feeds.end(), "input '", input,
                     "' is missing, which the entry of a table counts by");
  const Tensor& feed = found->second;
  check<ConfigError>(feed.numel() == static_cast<int64_t>(batch.size), "input '", input, "' has ",
                     feed.numel(), " values for ", batch.size,
                     " instances, expected one for each, as the entry of a table counts by it");
  std::vector<float> values(batch.size);
  const auto take = [&](auto numbers) {
    std::ranges::transform(numbers, values.begin(),
                           [](auto number) { return static_cast<float>(number); });
  };
  if (feed.dtype() == DType::f32)
    take(feed.as<float>());
  else if (feed.dtype() == DType::i64)
    take(feed.as<int64_t>());
  else
    fail<ConfigError>("input '", input, "' is ", feed.dtype(), ", expected f32 or i64");
  return values;
}

/// Calls use(instance, key number) for every id of an index that is not padding.
template <class Use>
void each_id(const IndexFeed& feed, const Batch& batch, const Use& use) {
  const auto index = batch.feeds.at(feed.index).as<int32_t>();
  if (feed.offsets.empty()) {
    const size_t slots = feed.slots.size();
    for (size_t i = 0; i < index.size(); ++i)
      if (index[i] >= 0) use(i / slots, static_cast<size_t>(index[i]));
    return;
  }
  const auto offsets = batch.feeds.at(feed.offsets).as<int32_t>();
  for (size_t bag = 0; bag + 1 < offsets.size(); ++bag)
    for (auto i = static_cast<size_t>(offsets[bag]); i < static_cast<size_t>(offsets[bag + 1]); ++i)
      if (index[i] >= 0) use(bag / feed.slots.size(), static_cast<size_t>(index[i]));
}

}  // namespace

void fill_key_columns(const BatchLayout& layout, Batch& batch) {
  batch.key_columns.resize(layout.key_columns.size());
  for (size_t set = 0; set < layout.key_columns.size(); ++set) {
    const KeyColumnsFeed& wanted = layout.key_columns[set];
    KeyColumns& columns = batch.key_columns[set];
    const size_t keys = batch.keys[set].size();
    const bool scores = !wanted.show.empty();
    columns.counts.assign(wanted.counts ? keys : 0, 0);
    columns.shows.assign(scores ? keys : 0, 0);
    columns.clicks.assign(scores ? keys : 0, 0);
    if (!wanted.counts) continue;
    std::vector<float> shows, clicks;
    if (scores) {
      shows = values_of(wanted.show, batch);
      clicks = values_of(wanted.click, batch);
    }
    std::set<std::vector<std::string>> seen;  // tables of a set look up the same slots: count once
    for (const IndexFeed& feed : layout.indices) {
      if (feed.key_set != set || !seen.insert(feed.slots).second) continue;
      each_id(feed, batch, [&](size_t instance, size_t key) {
        ++columns.counts[key];
        if (!scores) return;
        columns.shows[key] += shows[instance];
        columns.clicks[key] += clicks[instance];
      });
    }
  }
}

}  // namespace argosy
