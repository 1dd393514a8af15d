#include "argosy/train/session.h"

#include <algorithm>
#include <cstring>

#include "argosy/base/error.h"

namespace argosy {
namespace {

int64_t instances_of(const Fed& fed) {
  if (!fed.offsets.empty()) return static_cast<int64_t>(fed.offsets.size()) - 1;
  return fed.values.shape().rank() > 0 ? fed.values.shape()[0] : 1;
}

/// Only what readers make of ids: columns are fed as they are.
BatchLayout without_columns(BatchLayout layout) {
  layout.columns.clear();
  return layout;
}

void check_offsets(const std::string& name, const Fed& fed) {
  check<ConfigError>(std::ranges::is_sorted(fed.offsets) &&
                         fed.offsets.back() == static_cast<uint64_t>(fed.values.numel()),
                     "feed '", name, "': the offsets of its instances end at ", fed.offsets.back(),
                     ", it has ", fed.values.numel(), " values");
}

}  // namespace

Session::Session(Trainer& trainer, SlotLimits limits)
    : trainer_(trainer), limits_(std::move(limits)) {
  for (const IndexFeed& feed : trainer.plan().layout.indices)
    for (const std::string& slot : feed.slots)
      if (std::ranges::find(slots_, slot) == slots_.end()) slots_.push_back(slot);
}

/// One id for each instance has a width; anything else may have any number.
SlotSpec Session::slot_of(const std::string& name, const Fed& fed) const {
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

void Session::fill_slots(const FedByName& feeds) {
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
    batcher_.emplace(without_columns(trainer_.plan().layout), specs);
    columns_.emplace(specs);
  }
  columns_->clear();
  for (size_t i = 0; i < batch_.size; ++i) {
    for (size_t slot = 0; slot < fed.size(); ++slot) {
      const Fed& ids = *fed[slot];
      const size_t width = specs[slot].width;
      const size_t begin = ids.offsets.empty() ? i * width : ids.offsets[i];
      const size_t end = ids.offsets.empty() ? begin + width : ids.offsets[i + 1];
      const auto values = ids.values.as<int64_t>().subspan(begin, end - begin);
      std::memcpy(columns_->add_ids(slot, values.size()), values.data(), values.size_bytes());
    }
    if (const auto wrong = columns_->commit()) fail<DataError>("feed, instance ", i, ": ", *wrong);
  }
  batcher_->fill(*columns_, batch_);
}

void Session::fill(const FedByName& feeds) {
  check<ConfigError>(!feeds.empty() || slots_.empty(), "nothing is fed");
  batch_.size = 0;
  const std::string* sized_by = nullptr;
  for (const auto& [name, fed] : feeds) {
    const auto instances = static_cast<size_t>(instances_of(fed));
    if (std::ranges::find(slots_, name) == slots_.end()) {
      check<ConfigError>(fed.offsets.empty(), "feed '", name,
                         "': it has offsets, and is no variable that a table is looked up by");
      batch_.feeds.insert_or_assign(name, fed.values);
    } else {
      check<ConfigError>(sized_by == nullptr || instances == batch_.size, "feed: '", name, "' has ",
                         instances, " instances, '", sized_by == nullptr ? "" : *sized_by, "' has ",
                         batch_.size);
      sized_by = &name;
    }
    if (sized_by == &name || (sized_by == nullptr && batch_.size == 0)) batch_.size = instances;
  }
  if (!slots_.empty()) fill_slots(feeds);
}

std::vector<Tensor> Session::run(const FedByName& feeds, std::span<const VarId> fetch,
                                 Purpose purpose) {
  for (const std::string& name : fed_) batch_.feeds.erase(name);
  fed_.clear();
  for (const auto& [name, fed] : feeds) fed_.push_back(name);
  fill(feeds);
  std::vector<Tensor> values =
      purpose == Purpose::training ? trainer_.step(batch_, fetch) : trainer_.infer(batch_, fetch);
  for (Tensor& value : values) value = value.clone();
  return values;
}

}  // namespace argosy
