#include "argosy/data/batcher.h"

#include <algorithm>

#include "argosy/base/call.h"
#include "argosy/base/error.h"
#include "argosy/data/key_columns.h"

namespace argosy {
namespace {

size_t find_slot(std::span<const SlotSpec> slots, const std::string& name, const char* wanted) {
  const auto found = std::ranges::find(slots, name, &SlotSpec::name);
  if (found != slots.end()) return static_cast<size_t>(found - slots.begin());
  std::vector<std::string> names;
  names.reserve(slots.size());
  for (const SlotSpec& slot : slots) names.push_back(slot.name);
  const std::string near = nearest(name, names);
  fail<ConfigError>("the model wants ", wanted, " from a slot '", name,
                    "', which the data does not have",
                    near.empty() ? "" : ", did you mean " + near + "?");
}

int64_t width_of(const ColumnFeed& feed) {
  int64_t width = 1;
  for (int i = 1; i < feed.shape.rank(); ++i) width *= feed.shape[i];
  return width;
}

const char* kind_name(SlotKind kind) { return kind == SlotKind::ids ? "ids" : "floats"; }

/// Checks instances that were read before this was known to be a label.
void check_labels(const ColumnFeed& feed, const Tensor& labels) {
  const auto check_all = [&](auto values) {
    const auto bad = std::ranges::find_if(values, [](auto v) { return v != 0 && v != 1; });
    check<DataError>(bad == values.end(), "label '", feed.input, "' of instance ",
                     bad - values.begin(), " of a batch is ", bad == values.end() ? 0 : *bad,
                     ", expected 0 or 1 for log loss");
  };
  if (feed.dtype == DType::f32)
    check_all(labels.as<float>());
  else
    check_all(labels.as<int64_t>());
}

template <class From, class To>
void convert(std::span<const From> from, std::span<To> to) {
  for (size_t i = 0; i < from.size(); ++i) to[i] = static_cast<To>(from[i]);
}

}  // namespace

Batcher::Batcher(BatchLayout layout, std::span<const SlotSpec> slots)
    : layout_(std::move(layout)), numberings_(layout_.key_sets) {
  for (const ColumnFeed& feed : layout_.columns) {
    const size_t slot = find_slot(slots, feed.input, "an input");
    check<ConfigError>(feed.dtype == DType::f32 || feed.dtype == DType::i64, "input '", feed.input,
                       "' is ", feed.dtype, ", readers make f32 and i64");
    const std::string width =
        slots[slot].width == 0 ? "any number" : std::to_string(slots[slot].width);
    check<ConfigError>(width == std::to_string(width_of(feed)), "input '", feed.input, "' takes ",
                       width_of(feed), " values per instance, the slot has ", width);
    column_slots_.push_back(slot);
  }
  for (size_t i = 0; i < layout_.indices.size(); ++i) {
    const IndexFeed& feed = layout_.indices[i];
    Slots& numbers = index_slots_.emplace_back();
    for (const std::string& name : feed.slots) {
      const size_t slot = find_slot(slots, name, "ids");
      check<ConfigError>(slots[slot].kind == SlotKind::ids, "slot '", name, "' holds ",
                         kind_name(slots[slot].kind), ", a lookup needs ids");
      check<ConfigError>(
          slots[slot].width == 1 || !feed.offsets.empty(), "slot '", name, "' has ",
          slots[slot].width == 0 ? "any number of" : std::to_string(slots[slot].width),
          " ids per instance: its lookup needs a pooling");
      numbers.push_back(slot);
    }
    size_t same = 0;
    const auto equal = [&](const IndexFeed& other) {
      return other.key_set == feed.key_set && other.slots == feed.slots &&
             other.padding == feed.padding && other.offsets.empty() == feed.offsets.empty();
    };
    while (!equal(layout_.indices[same])) ++same;
    same_as_.push_back(same);
  }
}

void Batcher::fill(const Columns& columns, Batch& out) {
  out.size = columns.rows();
  out.keys.resize(layout_.key_sets);
  for (size_t i = 0; i < layout_.columns.size(); ++i)
    fill_column(layout_.columns[i], column_slots_[i], columns, out);
  for (size_t set = 0; set < layout_.key_sets; ++set) {
    size_t ids = 0;
    for (size_t i = 0; i < layout_.indices.size(); ++i)
      if (layout_.indices[i].key_set == set)
        for (size_t slot : index_slots_[i]) ids += columns.ids(slot).size();
    numberings_[set].begin(ids);
    out.keys[set].clear();
  }
  for (size_t i = 0; i < layout_.indices.size(); ++i) {
    const IndexFeed& feed = layout_.indices[i];
    if (same_as_[i] != i) {
      const IndexFeed& same = layout_.indices[same_as_[i]];
      const auto share = [&](const std::string& name, const std::string& as) {
        Tensor& from = out.feeds[as];
        out.feeds[name] = Tensor::wrap(from.data(), from.shape(), from.dtype());
      };
      share(feed.index, same.index);
      if (!feed.offsets.empty()) share(feed.offsets, same.offsets);
    } else if (feed.offsets.empty()) {
      fill_index(feed, index_slots_[i], columns, out);
    } else {
      fill_flat_index(feed, index_slots_[i], columns, out);
    }
  }
  fill_key_columns(layout_, out);
}

void Batcher::fill_column(const ColumnFeed& feed, size_t slot, const Columns& columns,
                          Batch& out) const {
  Tensor& to = out.feeds[feed.input];
  Shape shape = feed.shape;
  shape[0] = static_cast<int64_t>(columns.rows());
  to.renew(shape, feed.dtype);
  const auto from = [&](auto use) {
    if (columns.slots()[slot].kind == SlotKind::ids)
      use(columns.ids(slot));
    else
      use(columns.floats(slot));
  };
  if (feed.dtype == DType::f32)
    from([&](auto values) { convert(values, to.as<float>()); });
  else
    from([&](auto values) { convert(values, to.as<int64_t>()); });
  if (feed.binary) check_labels(feed, to);
}

void Batcher::fill_index(const IndexFeed& feed, const Slots& slots, const Columns& columns,
                         Batch& out) {
  const size_t rows = columns.rows(), n_slots = slots.size();
  Tensor& index = out.feeds[feed.index];
  index.renew({static_cast<int64_t>(rows), static_cast<int64_t>(n_slots)}, DType::i32);
  KeyNumbering& numbering = numberings_[feed.key_set];
  std::vector<Key>& keys = out.keys[feed.key_set];
  for (size_t s = 0; s < n_slots; ++s) {
    const std::span<const uint64_t> ids = columns.ids(slots[s]);
    int32_t* to = index.as<int32_t>().data() + s;
    for (size_t row = 0; row < rows; ++row, to += n_slots)
      *to = feed.padding == ids[row] ? -1 : numbering.number(ids[row], keys);
  }
}

void Batcher::fill_flat_index(const IndexFeed& feed, const Slots& slots, const Columns& columns,
                              Batch& out) {
  const size_t rows = columns.rows(), n_slots = slots.size();
  size_t ids = 0;
  for (size_t slot : slots) ids += columns.ids(slot).size();
  check<DataError>(ids <= INT32_MAX, "a batch holds ", ids, " ids, more than 2^31");
  Tensor& index = out.feeds[feed.index];
  index.renew({static_cast<int64_t>(ids)}, DType::i32);
  Tensor& offsets = out.feeds[feed.offsets];
  offsets.renew({static_cast<int64_t>(rows * n_slots + 1)}, DType::i32);
  KeyNumbering& numbering = numberings_[feed.key_set];
  std::vector<Key>& keys = out.keys[feed.key_set];
  int32_t* to = index.as<int32_t>().data();
  int32_t* start = offsets.as<int32_t>().data();
  const int32_t* const first = to;
  *start = 0;
  for (size_t row = 0; row < rows; ++row) {
    for (const size_t slot : slots) {
      const auto starts = columns.offsets(slot);
      const size_t width = columns.slots()[slot].width;
      const size_t from = width == 0 ? starts[row] : row * width;
      const size_t end = width == 0 ? starts[row + 1] : from + width;
      for (const Key id : columns.ids(slot).subspan(from, end - from))
        *to++ = feed.padding == id ? -1 : numbering.number(id, keys);
      *++start = static_cast<int32_t>(to - first);
    }
  }
}

}  // namespace argosy
