// How a sparse table is saved, all little-endian:
//   u32 magic, u32 version, u64 dim, u64 floats per row, u64 floats per counted key (0: no counts),
//   u32 1 if rows begin with their unseen count, u32 1 if show and click follow;
//   rows, then counted keys, each as blocks in the order of the keys:
//     u32 n from 1 to 4096, n keys of u64 each, n times the floats of a row; a block of n = 0 ends;
//   u64 XXH3 of all bytes before it.
#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/base/hash.h"
#include "argosy/ps/sparse_table.h"

namespace argosy {
namespace {

constexpr uint32_t kMagic = 0x54505341;  // "ASPT"
constexpr uint32_t kVersion = 1;
constexpr uint32_t kBlock = 4096;  // rows

struct Header {
  uint32_t magic, version;
  uint64_t dim, row_floats, counted_floats;
  uint32_t unseen, scores;
};
static_assert(sizeof(Header) == 40);

class SummedSink final : public ByteSink {
 public:
  explicit SummedSink(ByteSink& out) : out_(out) {}
  void write(std::span<const std::byte> bytes) override {
    sum_.add(bytes);
    out_.write(bytes);
  }
  uint64_t digest() const { return sum_.digest(); }

 private:
  ByteSink& out_;
  RunningHash sum_;
};

template <Plain T>
std::vector<T> take_summed(ByteSource& in, size_t n, RunningHash& sum) {
  check<DataError>(n <= in.left() / sizeof(T), in.what(), ": ends early, ", n * sizeof(T),
                   " bytes expected and ", in.left(), " left");
  const auto bytes = in.take(n * sizeof(T));
  sum.add(bytes);
  std::vector<T> values(n);
  if (n > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace

void SparseTable::save(ByteSink& out) const {
  SummedSink summed(out);
  summed.put(Header{.magic = kMagic,
                    .version = kVersion,
                    .dim = spec_.dim,
                    .row_floats = floats(Section::rows),
                    .counted_floats = floats(Section::counted),
                    .unseen = spec_.track_unseen ? 1U : 0U,
                    .scores = scoring() ? 1U : 0U});
  save_section(Section::rows, summed);
  if (counting()) save_section(Section::counted, summed);
  out.put(summed.digest());
}

std::vector<Key> SparseTable::sorted_keys(Section section) const {
  std::vector<Key> all;
  all.reserve(size());
  for (const Shard& shard : shards_) {
    const Lock lock(shard.mutex);
    (*shard.stores)[section].for_each([&](Key key, const float*) { all.push_back(key); });
  }
  std::ranges::sort(all);
  return all;
}

void SparseTable::save_section(Section section, ByteSink& out) const {
  const std::vector<Key> all = sorted_keys(section);
  const size_t width = floats(section);
  std::vector<Key> keys;
  std::vector<float> rows;
  for (size_t first = 0; first < all.size(); first += kBlock) {
    keys.clear();
    rows.clear();
    for (const Key key :
         std::span(all).subspan(first, std::min<size_t>(kBlock, all.size() - first))) {
      const uint64_t hash = RowStore::hash(key);
      const Shard& shard = shards_[hash % shards_.size()];
      const Lock lock(shard.mutex);
      const float* const row = (*shard.stores)[section].find(key, hash);
      if (row == nullptr) continue;  // erased meanwhile
      keys.push_back(key);
      rows.insert(rows.end(), row, row + width);
    }
    if (keys.empty()) continue;
    out.put(static_cast<uint32_t>(keys.size()));
    out.put_all(std::span<const Key>(keys));
    out.put_all(std::span<const float>(rows));
  }
  out.put(uint32_t{0});
}

void SparseTable::load(ByteSource& in) {
  load(std::span(&in, 1), [](Key) { return true; });
}

void SparseTable::load(std::span<ByteSource> parts, FunctionRef<bool(Key)> keep) {
  auto part = parts.begin();
  const auto give = [&](TakePart take) {
    if (part == parts.end()) return false;
    take(*part++);
    return true;
  };
  load_parts(give, keep);
}

void SparseTable::load_parts(FunctionRef<bool(TakePart)> give, FunctionRef<bool(Key)> keep) {
  const auto arena = std::make_shared<Arena>();
  Fresh fresh;
  for (size_t i = 0; i < shards_.size(); ++i)
    fresh.push_back(std::make_unique<Stores>(*this, arena));
  const auto take = [&](ByteSource& in) { load_part(in, keep, fresh); };
  while (give(take)) continue;
  for (size_t i = 0; i < shards_.size(); ++i) {
    const Lock lock(shards_[i].mutex);
    shards_[i].stores.swap(fresh[i]);
    ++shards_[i].generation;
  }
}

void SparseTable::load_part(ByteSource& in, FunctionRef<bool(Key)> keep, Fresh& fresh) const {
  RunningHash sum;
  const Header header = take_summed<Header>(in, 1, sum)[0];
  check<DataError>(header.magic == kMagic, in.what(), ": not a sparse table");
  check<DataError>(header.version == kVersion, in.what(), ": version ", header.version,
                   " of a sparse table, expected ", kVersion);
  check<DataError>(
      header.dim == spec_.dim &&
          (header.row_floats == floats(Section::rows) ||
           header.row_floats == weights_at_ + spec_.dim) &&
          header.counted_floats == floats(Section::counted) &&
          header.unseen == (spec_.track_unseen ? 1U : 0U) && header.scores == (scoring() ? 1U : 0U),
      "table '", spec_.name, "': ", in.what(), " holds rows of ", header.dim, " weights in ",
      header.row_floats, " floats (unseen ", header.unseen, ", scores ", header.scores, ", counts ",
      header.counted_floats, "), expected ", spec_.dim, " in ", floats(Section::rows), " (unseen ",
      spec_.track_unseen, ", scores ", scoring(), ", counts ", floats(Section::counted), ")");
  load_section(Section::rows, header.row_floats, in, sum, keep, fresh);
  if (counting()) load_section(Section::counted, header.counted_floats, in, sum, keep, fresh);
  check<DataError>(in.left() >= sizeof(uint64_t), in.what(), ": ends early, its checksum is gone");
  const auto stored = in.get<uint64_t>();
  check<DataError>(stored == sum.digest(), in.what(), ": its checksum does not fit its bytes");
}

void SparseTable::load_section(Section section, size_t width, ByteSource& in, RunningHash& sum,
                               FunctionRef<bool(Key)> keep, Fresh& fresh) const {
  std::optional<Key> last;
  for (;;) {
    const uint32_t n = take_summed<uint32_t>(in, 1, sum)[0];
    if (n == 0) return;
    check<DataError>(n <= kBlock, in.what(), ": a block of ", n, " rows, expected at most ",
                     kBlock);
    const auto keys = take_summed<Key>(in, n, sum);
    const auto rows = take_summed<float>(in, n * width, sum);
    for (size_t i = 0; i < n; ++i) {
      check<DataError>(!last || *last < keys[i], in.what(), ": key ", keys[i],
                       " does not come after ", last.value_or(0));
      last = keys[i];
      if (!keep(keys[i])) continue;
      const uint64_t hash = RowStore::hash(keys[i]);
      RowStore& store = (*fresh[hash % fresh.size()])[section];
      check<DataError>(store.find(keys[i], hash) == nullptr, in.what(), ": key ", keys[i],
                       " is in another part as well");
      float* const row = store.insert(keys[i], hash);
      std::copy_n(rows.data() + i * width, width, row);
      // Rows that were saved without optimizer state, as of geo mode, begin a new one.
      if (section == Section::rows && width < floats(section))
        rule_->init({row + weights_at_ + spec_.dim, state_size_});
    }
  }
}

}  // namespace argosy
