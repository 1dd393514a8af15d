#include "argosy/data/feed_batcher.h"

#include <algorithm>
#include <cstring>

#include "argosy/base/error.h"

namespace argosy {
namespace {

int64_t instances_of(const Fed& fed) {
  if (!fed.offsets.empty()) return static_cast<int64_t>(fed.offsets.size()) - 1;
  return fed.values.shape().rank() > 0 ? fed.values.shape()[0] : 1;
}

void check_offsets(const std::string& name, const Fed& fed) {
  check<ConfigError>(std::ranges::is_sorted(fed.offsets) &&
                         fed.offsets.back() == static_cast<uint64_t>(fed.values.numel()),
                     "feed '", name, "': the offsets of its instances end at ", fed.offsets.back(),
                     ", it has ", fed.values.numel(), " values");
}

}  // namespace

FeedBatcher::FeedBatcher(BatchLayout layout, SlotLimits limits)
    : indices_(std::move(layout)), limits_(std::move(limits)) {
  indices_.columns.clear();
  for (const IndexFeed& feed : indices_.indices)
    for (const std::string& slot : feed.slots)
      if (!is_slot(slot)) slots_.push_back(slot);
}

bool FeedBatcher::is_slot(const std::string& name) const {
  return std::ranges::find(slots_, name) != slots_.end();
}

/// With offsets, instances may have any number of ids; else all have as many.
SlotSpec FeedBatcher::slot_of(const std::string& name, const Fed& fed) const {
  check<ConfigError>(fed.values.dtype() == DType::i64, "feed '", name, "': ids are int64, got ",
                     fed.values.dtype(), fed.values.shape());
  const auto limit = limits_.find(name);
  const uint64_t below = limit == limits_.end() ? 0 : limit->second;
  if (!fed.offsets.empty()) {
    check_offsets(name, fed);
    return {.name = name, .kind = SlotKind::ids, .empty = EmptySlot::empty, .limit = below};
  }
  const int64_t instances = instances_of(fed);
  const auto width = instances > 0 ? static_cast<size_t>(fed.values.numel() / instances) : 1;
  return {.name = name, .kind = SlotKind::ids, .width = width, .limit = below};
}

void FeedBatcher::fill_slots(const FedByName& feeds, Batch& batch) {
  std::vector<SlotSpec> specs;
  std::vector<const Fed*> fed;
  for (const std::string& slot : slots_) {
    const auto found = feeds.find(slot);
    check<ConfigError>(found != feeds.end(), "'", slot,
                       "' is not fed, expected the ids that a table is looked up by");
    specs.push_back(slot_of(slot, found->second));
    fed.push_back(&found->second);
  }
  const auto same_width = [](const SlotSpec& a, const SlotSpec& b) { return a.width == b.width; };
  if (!columns_ || !std::ranges::equal(columns_->slots(), specs, same_width)) {
    batcher_.emplace(indices_, specs);
    columns_.emplace(specs);
  }
  columns_->clear();
  for (size_t i = 0; i < batch.size; ++i) {
    for (size_t slot = 0; slot < fed.size(); ++slot) {
      const Fed& ids = *fed[slot];
      const size_t width = specs[slot].width;
      const size_t begin = ids.offsets.empty() ? i * width : ids.offsets[i];
      const size_t end = ids.offsets.empty() ? begin + width : ids.offsets[i + 1];
      const auto values = ids.values.as<int64_t>().subspan(begin, end - begin);
      uint64_t* const room = columns_->add_ids(slot, values.size());
      if (!values.empty()) std::memcpy(room, values.data(), values.size_bytes());
    }
    if (const auto wrong = columns_->commit()) fail<DataError>("feed, instance ", i, ": ", *wrong);
  }
  batcher_->fill(*columns_, batch);
}

void FeedBatcher::fill(const FedByName& feeds, Batch& batch) {
  for (const std::string& name : fed_) batch.feeds.erase(name);
  fed_.clear();
  batch.size = 0;
  const std::string* sized_by = nullptr;  // a slot, else the first array
  for (const auto& [name, fed] : feeds) {
    const auto instances = static_cast<size_t>(instances_of(fed));
    if (is_slot(name)) {
      check<ConfigError>(sized_by == nullptr || instances == batch.size, "feed: '", name, "' has ",
                         instances, " instances, '", sized_by == nullptr ? "" : *sized_by, "' has ",
                         batch.size);
      sized_by = &name;
      batch.size = instances;
      continue;
    }
    check<ConfigError>(fed.offsets.empty(), "feed '", name,
                       "': it has offsets, and is no variable that a table is looked up by");
    if (sized_by == nullptr && batch.size == 0) batch.size = instances;
  }
  for (const auto& [name, fed] : feeds) {
    if (!fed.offsets.empty()) continue;  // ids of any number are only looked up
    batch.feeds.insert_or_assign(name, fed.values);
    fed_.push_back(name);
  }
  if (!slots_.empty()) fill_slots(feeds, batch);
}

}  // namespace argosy
