// All little-endian:
//   u32 magic, u32 version, u64 dim, u64 floats per row, u64 floats per counted key (0: no counts),
//   u32 1 if rows begin with their unseen count, u32 1 if show and click follow;
//   rows, then counted keys, each as blocks in the order of the keys:
//     u32 n from 1 to 4096, n keys of u64 each, n times the floats of a row; a block of n = 0 ends;
//   u64 XXH3 of all bytes before it.
#include "argosy/ps/table_file.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "argosy/base/error.h"
#include "argosy/base/finite.h"
#include "argosy/base/hash.h"

namespace argosy::ps {
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

Header header_of(const RowRecipe& recipe) {
  return {.magic = kMagic,
          .version = kVersion,
          .dim = recipe.dim(),
          .row_floats = recipe.floats(Section::rows),
          .counted_floats = recipe.floats(Section::counted),
          .unseen = recipe.tracks_unseen() ? 1U : 0U,
          .scores = recipe.scores_rows() ? 1U : 0U};
}

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
void take_summed(ByteReader& in, std::span<T> values, RunningHash& sum) {
  const auto bytes = in.take(values.size_bytes());
  sum.add(bytes);
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
}

[[gnu::cold]] void refuse_rows(const RowRecipe& recipe, std::span<const Key> keys,
                               std::span<const float> rows) {
  const size_t width = recipe.floats(Section::rows);
  const auto bad = std::ranges::find_if(rows, [](float x) { return !std::isfinite(x); });
  fail<DataError>("table '", recipe.spec().name, "': not saved, its row ",
                  keys[static_cast<size_t>(bad - rows.begin()) / width], " holds ", *bad);
}

void save_section(RowTable& table, Section section, ByteSink& out) {
  RowImages& images = table.images();
  const std::vector<Key> all = images.keys(section);
  std::vector<Key> keys;
  std::vector<float> rows;
  for (size_t first = 0; first < all.size(); first += kBlock) {
    keys.clear();
    rows.clear();
    const size_t n = std::min<size_t>(kBlock, all.size() - first);
    images.read(section, std::span(all).subspan(first, n), keys, rows);
    if (keys.empty()) continue;  // erased meanwhile
    if (section == Section::rows && !all_finite(rows)) refuse_rows(table.recipe(), keys, rows);
    out.put(static_cast<uint32_t>(keys.size()));
    out.put_all(std::span<const Key>(keys));
    out.put_all(std::span<const float>(rows));
  }
  out.put(uint32_t{0});
}

}  // namespace

void save_table(RowTable& table, ByteSink& out) {
  SummedSink summed(out);
  summed.put(header_of(table.recipe()));
  save_section(table, Section::rows, summed);
  if (table.recipe().counts_keys()) save_section(table, Section::counted, summed);
  out.put(summed.digest());
}

void TableLoad::add(ByteReader& in, FunctionRef<bool(Key)> keep) {
  RunningHash sum;
  Header header{};
  take_summed(in, std::span(&header, 1), sum);
  check<DataError>(header.magic == kMagic, in.what(), ": not a sparse table");
  check<DataError>(header.version == kVersion, in.what(), ": version ", header.version,
                   " of a sparse table, expected ", kVersion);
  const Header own = header_of(recipe_);
  const size_t without_state = recipe_.weights_at() + recipe_.dim();
  check<DataError>(
      header.dim == own.dim &&
          (header.row_floats == own.row_floats || header.row_floats == without_state) &&
          header.counted_floats == own.counted_floats && header.unseen == own.unseen &&
          header.scores == own.scores,
      "table '", recipe_.spec().name, "': ", in.what(), " holds rows of ", header.dim,
      " weights in ", header.row_floats, " floats (unseen ", header.unseen, ", scores ",
      header.scores, ", counts ", header.counted_floats, "), expected ", own.dim, " in ",
      own.row_floats, " (unseen ", own.unseen, ", scores ", own.scores, ", counts ",
      own.counted_floats, ")");
  add_section(Section::rows, header.row_floats, in, sum, keep);
  if (recipe_.counts_keys()) add_section(Section::counted, header.counted_floats, in, sum, keep);
  check<DataError>(in.left() >= sizeof(uint64_t), in.what(), ": ends early, its checksum is gone");
  check<DataError>(in.get<uint64_t>() == sum.digest(), in.what(),
                   ": its checksum does not fit its bytes");
}

void TableLoad::add_section(Section section, size_t width, ByteReader& in, RunningHash& sum,
                            FunctionRef<bool(Key)> keep) {
  const size_t whole = recipe_.floats(section);
  std::optional<Key> last;
  std::vector<Key> keys;
  std::vector<float> rows;
  for (;;) {
    uint32_t n = 0;
    take_summed(in, std::span(&n, 1), sum);
    if (n == 0) return;
    check<DataError>(n <= kBlock, in.what(), ": a block of ", n, " rows, expected at most ",
                     kBlock);
    keys.resize(n);
    rows.resize(n * width);
    take_summed(in, std::span(keys), sum);
    take_summed(in, std::span(rows), sum);
    keys_.clear();
    images_.clear();
    for (size_t i = 0; i < n; ++i) {
      check<DataError>(!last || *last < keys[i], in.what(), ": key ", keys[i],
                       " does not come after ", last.value_or(0));
      last = keys[i];
      if (!keep(keys[i])) continue;
      keys_.push_back(keys[i]);
      const size_t at = images_.size();
      images_.resize(at + whole);
      std::copy_n(rows.data() + i * width, width, images_.data() + at);
      if (width < whole) recipe_.renew_state(images_.data() + at);
    }
    try {
      loading_->add(section, keys_, images_);
    } catch (const DataError& e) {
      fail<DataError>(in.what(), ": ", e.what());
    }
  }
}

void load_table(RowTable& table, ByteReader& in) {
  TableLoad load(table);
  load.add(in, [](Key) { return true; });
  load.finish();
}

}  // namespace argosy::ps
