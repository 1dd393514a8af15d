// The exchange of global_shuffle: in rounds of bounded size every worker sends instances for
// others, and picks its own from those that all have sent.
#include <algorithm>

#include "argosy/base/bytes.h"
#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/job/fleet.h"

namespace argosy {
namespace {

constexpr size_t kRoundBytes = 1 << 20;  // of one worker
constexpr size_t kPartRows = 1 << 20;    // instances in one set of columns

/// The place of a row's values in its slot.
struct Range {
  size_t first, count;
};

Range range_of(const Columns& from, size_t slot, size_t row) {
  const size_t width = from.slots()[slot].width;
  if (width != 0) return {row * width, width};
  const auto offsets = from.offsets(slot);
  return {offsets[row], offsets[row + 1] - offsets[row]};
}

void write_row(ByteSink& out, const Columns& from, size_t row) {
  for (size_t slot = 0; slot < from.slots().size(); ++slot) {
    const auto [first, count] = range_of(from, slot, row);
    if (from.slots()[slot].width == 0) out.put(static_cast<uint32_t>(count));
    if (from.slots()[slot].kind == SlotKind::ids)
      out.put_all(from.ids(slot).subspan(first, count));
    else
      out.put_all(from.floats(slot).subspan(first, count));
  }
}

void read_row(ByteSource& in, Columns& to) {
  for (size_t slot = 0; slot < to.slots().size(); ++slot) {
    const SlotSpec& spec = to.slots()[slot];
    const size_t count = spec.width != 0 ? spec.width : in.get<uint32_t>();
    const auto bytes =
        in.take(count * (spec.kind == SlotKind::ids ? sizeof(uint64_t) : sizeof(float)));
    if (bytes.empty()) continue;
    if (spec.kind == SlotKind::ids)
      std::memcpy(to.add_ids(slot, count), bytes.data(), bytes.size());
    else
      std::memcpy(to.add_floats(slot, count), bytes.data(), bytes.size());
  }
  const auto wrong = to.commit();
  check<DataError>(!wrong, in.what(), ": ", wrong.value_or(""));
}

/// Collects a worker's instances after the shuffle.
class Instances {
 public:
  explicit Instances(std::vector<SlotSpec> slots) : slots_(std::move(slots)) {}
  Columns& next() {
    if (parts_.empty() || parts_.back().rows() == kPartRows) parts_.emplace_back(slots_);
    return parts_.back();
  }
  std::vector<Columns> take() { return std::move(parts_); }

 private:
  std::vector<SlotSpec> slots_;
  std::vector<Columns> parts_;
};

/// A worker's instances before the shuffle, each with the worker it goes to.
class Departures {
 public:
  Departures(std::vector<Columns> from, const RandomStream& chance, uint32_t workers)
      : from_(std::move(from)), chance_(chance), workers_(workers) {}

  /// Those for others, as worker, row, worker, row ...; `mine` stay here. Empty: there are no more.
  ByteBuffer round(uint32_t self, Instances& mine) {
    ByteBuffer out;
    for (; file_ < from_.size() && out.bytes().size() < kRoundBytes; advance()) {
      if (row_ == from_[file_].rows()) continue;
      const auto to = static_cast<uint32_t>(chance_.below(number_++, workers_));
      if (to == self) {
        mine.next().append(from_[file_], row_);
        continue;
      }
      out.put(to);
      write_row(out, from_[file_], row_);
    }
    return out;
  }

 private:
  /// Moves to the next row; frees a file that is done.
  void advance() {
    if (row_ < from_[file_].rows() && ++row_ < from_[file_].rows()) return;
    from_[file_] = Columns(from_[file_].slots());
    ++file_;
    row_ = 0;
  }

  std::vector<Columns> from_;
  RandomStream chance_;
  uint32_t workers_;
  size_t file_ = 0, row_ = 0;
  uint64_t number_ = 0;
};

/// Passes over a row that goes to another worker.
void skip_row(ByteSource& in, const std::vector<SlotSpec>& slots) {
  for (const SlotSpec& spec : slots) {
    const size_t count = spec.width != 0 ? spec.width : in.get<uint32_t>();
    in.take(count * (spec.kind == SlotKind::ids ? sizeof(uint64_t) : sizeof(float)));
  }
}

}  // namespace

void global_shuffle(InMemoryDataset& data, Fleet& fleet, uint64_t seed) {
  const auto self = static_cast<uint32_t>(fleet.worker_index());
  const auto workers = static_cast<uint32_t>(fleet.worker_num());
  if (workers > 1) {
    std::vector<Columns> held = data.take_instances();
    const std::vector<SlotSpec> slots = held.at(0).slots();
    Instances mine(slots);
    Departures departures(std::move(held), RandomStream(seed, self), workers);
    for (bool more = true; more;) {
      const ByteBuffer out = departures.round(self, mine);
      const auto parts = fleet.gather("global_shuffle", out.bytes());
      more = std::ranges::any_of(parts, [](const auto& part) { return !part.empty(); });
      for (const auto& part : parts) {
        ByteSource in(part, "an instance of another worker");
        while (in.left() > 0) {
          if (in.get<uint32_t>() == self)
            read_row(in, mine.next());
          else
            skip_row(in, slots);
        }
      }
    }
    data.put_instances(mine.take());
  }
  data.local_shuffle(seed);
}

}  // namespace argosy
