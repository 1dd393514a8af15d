// criteo: raw rows of Criteo's click log. 40 columns separated by tabs: the label, 13 integers and
// 26 categories. Integers become (x - min) / diff, without clipping; an empty one is 0. An empty
// category is hashed like any other. Slots: dense_input, C1 to C26, label.
//   criteo(hash=1000001)   size of the id range
//   criteo(min=0;-3;..., diff=20;603;...)   13 numbers each; the defaults are Paddle's reader's
#include <emmintrin.h>

#include <array>
#include <bit>

#include "argosy/base/error.h"
#include "argosy/data/feature_hash.h"
#include "argosy/data/parsers/parser_support.h"

namespace argosy::parsers {
namespace {

constexpr size_t kColumns = 40, kIntegers = 13, kCategories = 26, kFirstCategory = 14;
constexpr size_t kLabelSlot = kCategories + 1;
constexpr uint64_t kTableSize = 1000001;

using Scale = std::array<double, kIntegers>;
constexpr Scale kMin = {0, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
constexpr Scale kDiff = {20, 603, 100, 50, 64000, 500, 100, 50, 500, 10, 10, 10, 50};

/// Ends of the columns of a line; `found` counts those past the 40th as well.
struct Fields {
  std::array<uint32_t, kColumns> ends;
  size_t found = 0;
};

Fields split(std::string_view line) {
  Fields fields;
  const auto add_tabs = [&fields](const char* block, size_t offset) {
    uint64_t tabs = 0;
    for (size_t part = 0; part < 4; ++part) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 16 * part));
      const int equal = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t')));
      tabs |= static_cast<uint64_t>(static_cast<uint32_t>(equal)) << (16 * part);
    }
    for (; tabs != 0; tabs &= tabs - 1, ++fields.found)
      if (fields.found < kColumns)
        fields.ends[fields.found] =
            static_cast<uint32_t>(offset) + static_cast<uint32_t>(std::countr_zero(tabs));
  };
  constexpr size_t kBlock = 64;
  size_t at = 0;
  for (; at + kBlock <= line.size(); at += kBlock) add_tabs(line.data() + at, at);
  std::array<char, kBlock> tail{};
  std::copy(line.begin() + static_cast<ptrdiff_t>(at), line.end(), tail.begin());
  add_tabs(tail.data(), at);
  if (fields.found < kColumns) fields.ends[fields.found] = static_cast<uint32_t>(line.size());
  ++fields.found;
  return fields;
}

class Criteo final : public Parser {
 public:
  Criteo(std::vector<SlotSpec> slots, uint64_t table_size, const Scale& min, const Scale& diff)
      : Parser(std::move(slots)), min_(min), diff_(diff) {
    for (size_t i = 0; i < kCategories; ++i) hashes_.emplace_back(kFirstCategory + i, table_size);
  }

 private:
  std::optional<std::string> add_instance(std::string_view line, Columns& out) const override {
    if (line.size() > UINT32_MAX) return "expected less than 4 GB in a line";
    const Fields fields = split(line);
    if (fields.found != kColumns)
      return "expected 40 columns with tabs between them, found " + std::to_string(fields.found);
    Scanner::Pad pad;
    Scanner in(line, pad);
    const auto at_end_of = [&](size_t column) { return in.column() == fields.ends[column] + 1; };

    if (!add_number(in, slots()[kLabelSlot].kind, kLabelSlot, out) || !at_end_of(0))
      return expected(in, slots()[kLabelSlot], "a label");
    float* const dense = out.add_floats(0, kIntegers);
    for (size_t i = 0; i < kIntegers; ++i) {
      in.skip(1);
      dense[i] = 0.0F;
      if (at_end_of(i + 1)) continue;
      const auto value = read_integer(in, fields.ends[i + 1] + 1);
      if (!value) return expected(in, slots()[0], "a finite number");
      dense[i] = static_cast<float>((*value - min_[i]) / diff_[i]);
    }
    for (size_t i = 0; i < kCategories; ++i) {
      const uint32_t start = fields.ends[kFirstCategory + i - 1] + 1;
      const std::string_view value = line.substr(start, fields.ends[kFirstCategory + i] - start);
      *out.add_ids(1 + i, 1) = hashes_[i](value);
    }
    return std::nullopt;
  }

  /// Up to the byte `end`. Some files carry integers as 260.0.
  static std::optional<double> read_integer(Scanner& in, size_t end) {
    const size_t start = in.column();
    const bool negative = in.rest().front() == '-';
    if (const auto id = in.id(); id && in.column() == end)
      return negative ? -static_cast<double>(0 - *id) : static_cast<double>(*id);
    in.move_to(start);
    const auto value = in.real();
    if (!value || in.column() != end) return std::nullopt;
    return *value;
  }

  Scale min_, diff_;
  std::vector<FeatureHash> hashes_;
};

/// 13 numbers with ; between them.
Scale scale_of(const Call& spec, std::string_view name, const Scale& otherwise) {
  const std::string text = spec.word(name, "");
  if (text.empty()) return otherwise;
  Scale scale{};
  Scanner::Pad pad;
  Scanner in(text, pad);
  for (size_t i = 0; i < kIntegers; ++i) {
    const auto value = in.real();
    check<ConfigError>(value && (i + 1 == kIntegers ? in.at_end() : in.skip_if(';')), "'",
                       spec.text(), "': ", name, "=", text, ", expected 13 numbers with ; between");
    check<ConfigError>(name != "diff" || *value != 0, "'", spec.text(), "': diff must not be 0");
    scale[i] = *value;
  }
  return scale;
}

std::vector<SlotSpec> format_slots() {
  std::vector<SlotSpec> slots = {{"dense_input", SlotKind::floats, kIntegers}};
  for (size_t i = 1; i <= kCategories; ++i)
    slots.push_back({"C" + std::to_string(i), SlotKind::ids, 1});
  slots.push_back({"label", SlotKind::floats, 1});
  return slots;
}

}  // namespace

std::unique_ptr<Parser> criteo(const Call& spec, std::vector<SlotSpec> slots) {
  spec.expect("parser", 0, {"hash", "min", "diff"});
  return std::make_unique<Criteo>(fit_slots(spec, std::move(slots), format_slots(), "label"),
                                  whole_number(spec, "hash", kTableSize, 1),
                                  scale_of(spec, "min", kMin), scale_of(spec, "diff", kDiff));
}

}  // namespace argosy::parsers
