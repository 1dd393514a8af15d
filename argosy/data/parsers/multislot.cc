// multislot: for every slot, in order, a count and that many values, separated by blanks.
// "2 17 4 1 0.5 1 1" is two ids, one float and one id. Names are not in the text.
#include "argosy/data/parsers/parser_support.h"

#include "argosy/base/error.h"

namespace argosy::parsers {
namespace {

class MultiSlot final : public Parser {
 public:
  using Parser::Parser;

 private:
  std::optional<std::string> add_instance(std::string_view line, Columns& out) const override {
    Scanner::Pad pad;
    Scanner in(line, pad);
    in.skip_blanks();
    const size_t count = slots().size();
    for (size_t slot = 0; slot < count; ++slot) {
      const SlotSpec& spec = slots()[slot];
      const auto values = read_count(in);
      if (!values) return expected(in, spec, "a count");
      if (!count_fits(*values, spec, in)) return wrong_count(in, spec, *values);
      if (!(spec.kind == SlotKind::ids ? read_ids(in, out.add_ids(slot, *values), *values)
                                       : read_floats(in, out.add_floats(slot, *values), *values)))
        return expected(in, spec, number_wanted(spec.kind));
    }
    if (!in.at_end()) return expected(in, slots().back(), "the end of the line");
    return std::nullopt;
  }

  static std::optional<uint64_t> read_count(Scanner& in) {
    auto values = in.small_count();
    if (!values) values = in.id();
    if (!values || !in.skip_separator()) return std::nullopt;
    return values;
  }

  /// A value takes at least two bytes, so a count that the line cannot hold is never allocated.
  static bool count_fits(uint64_t values, const SlotSpec& spec, const Scanner& in) {
    if (values == 0) return spec.empty != EmptySlot::error;
    return values <= (in.left() + 1) / 2 && (spec.width == 0 || values == spec.width);
  }

  static bool read_ids(Scanner& in, uint64_t* into, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      const auto value = in.id();
      if (!value || !in.skip_separator()) return false;
      into[i] = *value;
    }
    return true;
  }

  static bool read_floats(Scanner& in, float* into, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      const auto value = in.real();
      if (!value || !in.skip_separator()) return false;
      into[i] = *value;
    }
    return true;
  }

  [[gnu::cold]] static std::string wrong_count(Scanner in, const SlotSpec& spec, uint64_t values) {
    const std::string at = "slot '" + spec.name + "' before byte " + std::to_string(in.column());
    const std::string found = "found a count of " + std::to_string(values);
    if (spec.width != 0 && values != spec.width)
      return at + ": expected " + std::to_string(spec.width) + " values, " + found;
    if (values == 0) return at + ": expected at least 1 value, " + found;
    return at + ": " + found + ", but only " + std::to_string(in.left()) + " bytes follow";
  }
};

}  // namespace

std::unique_ptr<Parser> multislot(const Call& spec, std::vector<SlotSpec> slots) {
  spec.expect("parser", 0, {});
  check<ConfigError>(!slots.empty(), "'", spec.text(),
                     "': the text does not name its slots, so they must be declared");
  return std::make_unique<MultiSlot>(std::move(slots));
}

}  // namespace argosy::parsers
