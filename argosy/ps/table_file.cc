// All little-endian:
//   u32 magic, u32 version, u64 dim, u64 floats per row, u64 floats per counted key (0: no counts),
//   u32 1 if rows begin with their unseen count, u32 1 if show and click follow;
//   rows, then counted keys, each as blocks in the order of the keys:
//     u32 n from 1 to 4096, n keys of u64 each, n times the floats of a row; a block of n = 0 ends;
//   u64 XXH3 of all bytes before it.
#include "argosy/ps/table_file.h"

#include <algorithm>
#include <cmath>

#include "argosy/base/error.h"
#include "argosy/base/finite.h"

namespace argosy::ps {
namespace {

constexpr uint32_t kMagic = 0x54505341;  // "ASPT"
constexpr uint32_t kVersion = 1;
constexpr uint32_t kBlock = 4096;           // rows
constexpr uint64_t kMostFloats = 1U << 20;  // of a row; a header that says more is damaged

struct Header {
  uint32_t magic, version;
  uint64_t dim, row_floats, counted_floats;
  uint32_t unseen, scores;
};
static_assert(sizeof(Header) == TableReader::kHeaderBytes);

[[gnu::cold]] void refuse_rows(const RowRecipe& recipe, std::span<const Key> keys,
                               std::span<const float> rows) {
  const size_t width = recipe.floats(Section::rows);
  const auto bad = std::ranges::find_if(rows, [](float x) { return !std::isfinite(x); });
  fail<DataError>("table '", recipe.spec().name, "': not saved, its row ",
                  keys[static_cast<size_t>(bad - rows.begin()) / width], " holds ", *bad);
}

void save_section(RowTable& table, Section section, TableWriter& out) {
  RowImages& images = table.images();
  const std::vector<Key> all = images.keys(section);
  std::vector<Key> keys;
  std::vector<float> rows;
  for (size_t first = 0; first < all.size(); first += kBlock) {
    keys.clear();
    rows.clear();
    const size_t n = std::min<size_t>(kBlock, all.size() - first);
    images.read(section, std::span(all).subspan(first, n), keys, rows);  // fewer: erased meanwhile
    if (section == Section::rows && !all_finite(rows)) refuse_rows(table.recipe(), keys, rows);
    out.add(section, keys, rows);
  }
}

}  // namespace

TableLayout layout_of(const RowRecipe& recipe) {
  return {.dim = recipe.dim(),
          .row_floats = recipe.floats(Section::rows),
          .counted_floats = recipe.floats(Section::counted),
          .unseen = recipe.tracks_unseen(),
          .scores = recipe.scores_rows()};
}

TableWriter::TableWriter(ByteSink& out, const TableLayout& layout) : out_(out), layout_(layout) {
  const Header header{.magic = kMagic,
                      .version = kVersion,
                      .dim = layout.dim,
                      .row_floats = layout.row_floats,
                      .counted_floats = layout.counted_floats,
                      .unseen = layout.unseen ? 1U : 0U,
                      .scores = layout.scores ? 1U : 0U};
  put(std::as_bytes(std::span(&header, 1)));
}

void TableWriter::put(std::span<const std::byte> bytes) {
  hash_.add(bytes);
  out_.write(bytes);
  sum_.bytes += bytes.size();
}

void TableWriter::put_block(std::span<const Key> keys, std::span<const float> images) {
  if (keys.empty()) return;
  const auto n = static_cast<uint32_t>(keys.size());
  put(std::as_bytes(std::span(&n, 1)));
  put(std::as_bytes(keys));
  put(std::as_bytes(images));
  if (section_ == Section::rows) sum_.rows += n;
}

void TableWriter::end_section() {
  put_block(keys_, images_);
  keys_.clear();
  images_.clear();
  constexpr uint32_t kEnd = 0;
  put(std::as_bytes(std::span(&kEnd, 1)));
}

void TableWriter::add(Section section, std::span<const Key> keys, std::span<const float> images) {
  if (section != section_) {
    end_section();
    section_ = section;
  }
  const size_t width = layout_.floats(section);
  while (!keys.empty()) {
    const size_t n = std::min<size_t>(keys.size(), kBlock - keys_.size());
    if (n == kBlock) {  // whole blocks are not copied
      put_block(keys.first(n), images.first(n * width));
      keys = keys.subspan(n);
      images = images.subspan(n * width);
      continue;
    }
    keys_.insert(keys_.end(), keys.begin(), keys.begin() + static_cast<ptrdiff_t>(n));
    images_.insert(images_.end(), images.begin(),
                   images.begin() + static_cast<ptrdiff_t>(n * width));
    keys = keys.subspan(n);
    images = images.subspan(n * width);
    if (keys_.size() < kBlock) continue;
    put_block(keys_, images_);
    keys_.clear();
    images_.clear();
  }
}

FileSum TableWriter::finish() {
  if (section_ == Section::rows && layout_.counted_floats > 0) add(Section::counted, {}, {});
  end_section();
  sum_.sum = hash_.digest();
  out_.put(sum_.sum);
  sum_.bytes += sizeof sum_.sum;
  return sum_;
}

TableReader::TableReader(ByteReader& in) : in_(in) {
  Header header{};
  take(std::span(&header, 1));
  check<DataError>(header.magic == kMagic, what(), ": not a sparse table");
  check<DataError>(header.version == kVersion, what(), ": version ", header.version,
                   " of a sparse table, expected ", kVersion);
  layout_ = {.dim = header.dim,
             .row_floats = header.row_floats,
             .counted_floats = header.counted_floats,
             .unseen = header.unseen != 0,
             .scores = header.scores != 0};
  check<DataError>(header.unseen <= 1 && header.scores <= 1 && layout_.dim <= kMostFloats &&
                       layout_.row_floats <= kMostFloats && layout_.counted_floats <= kMostFloats &&
                       layout_.weights_at() + layout_.dim <= layout_.row_floats,
                   what(), ": damaged, rows of ", layout_.row_floats, " floats for ", layout_.dim,
                   " weights");
}

template <Plain T>
void TableReader::take(std::span<T> values) {
  const auto bytes = in_.take(values.size_bytes());
  hash_.add(bytes);
  sum_.bytes += bytes.size();
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
}

std::optional<TableReader::Block> TableReader::next() {
  if (ended_) return std::nullopt;
  uint32_t n = 0;
  take(std::span(&n, 1));
  if (n == 0) {
    last_.reset();
    if (section_ == Section::rows && layout_.counted_floats > 0) {
      section_ = Section::counted;
      return next();
    }
    finish();
    return std::nullopt;
  }
  check<DataError>(n <= kBlock, what(), ": a block of ", n, " rows, expected at most ", kBlock);
  const size_t floats = n * layout_.floats(section_);
  check<DataError>(n * sizeof(Key) + floats * sizeof(float) <= in_.left(), what(), ": ends early, ",
                   n, " rows expected and ", in_.left(), " bytes left");
  keys_.resize(n);
  images_.resize(floats);
  take(std::span(keys_));
  take(std::span(images_));
  for (const Key key : keys_) {
    check<DataError>(!last_ || *last_ < key, what(), ": key ", key, " does not come after ",
                     last_.value_or(0));
    last_ = key;
  }
  if (section_ == Section::rows) sum_.rows += n;
  return Block{section_, keys_, images_};
}

void TableReader::finish() {
  ended_ = true;
  check<DataError>(in_.left() >= sizeof(uint64_t), what(), ": ends early, its checksum is gone");
  sum_.sum = in_.get<uint64_t>();
  sum_.bytes += sizeof sum_.sum;
  check<DataError>(sum_.sum == hash_.digest(), what(), ": its checksum does not fit its bytes");
}

FileSum save_table(RowTable& table, ByteSink& out) {
  TableWriter writer(out, layout_of(table.recipe()));
  save_section(table, Section::rows, writer);
  if (table.recipe().counts_keys()) save_section(table, Section::counted, writer);
  return writer.finish();
}

FileSum TableLoad::add(ByteReader& in, FunctionRef<bool(Key)> keep) {
  TableReader reader(in);
  const TableLayout& found = reader.layout();
  TableLayout expected = layout_of(recipe_);
  const TableLayout own = expected;
  if (found.state_floats() == 0) expected.row_floats = expected.weights_at() + expected.dim;
  check<DataError>(found == expected, "table '", recipe_.spec().name, "': ", in.what(),
                   " holds rows of ", found.dim, " weights in ", found.row_floats,
                   " floats (unseen ", found.unseen, ", scores ", found.scores, ", counts ",
                   found.counted_floats, "), expected ", own.dim, " in ", own.row_floats,
                   " (unseen ", own.unseen, ", scores ", own.scores, ", counts ",
                   own.counted_floats, ")");
  while (const auto block = reader.next()) add_block(*block, reader, keep);
  return reader.sum();
}

void TableLoad::add_block(const TableReader::Block& block, const TableReader& from,
                          FunctionRef<bool(Key)> keep) {
  const size_t width = from.layout().floats(block.section);
  const size_t whole = recipe_.floats(block.section);
  keys_.clear();
  images_.clear();
  for (size_t i = 0; i < block.keys.size(); ++i) {
    if (!keep(block.keys[i])) continue;
    keys_.push_back(block.keys[i]);
    const size_t at = images_.size();
    images_.resize(at + whole);
    std::copy_n(block.images.data() + i * width, width, images_.data() + at);
    if (width < whole) recipe_.renew_state(images_.data() + at);
  }
  try {
    loading_->add(block.section, keys_, images_);
  } catch (const DataError& e) {
    fail<DataError>(from.what(), ": ", e.what());
  }
}

void load_table(RowTable& table, ByteReader& in) {
  TableLoad load(table);
  load.add(in, [](Key) { return true; });
  load.finish();
}

}  // namespace argosy::ps
