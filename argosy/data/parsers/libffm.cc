// libffm: "label field:index:value field:index:value ...". Slots: label, field, index, value; an
// instance may have no feature. The label is not converted.
#include "argosy/data/parsers/parser_support.h"

namespace argosy::parsers {
namespace {

constexpr size_t kLabel = 0, kField = 1, kIndex = 2, kValue = 3;

class LibFfm final : public Parser {
 public:
  using Parser::Parser;

 private:
  std::optional<std::string> add_instance(std::string_view line, Columns& out) const override {
    Scanner::Pad pad;
    Scanner in(line, pad);
    in.skip_blanks();
    if (!add_number(in, slots()[kLabel].kind, kLabel, out) || !in.skip_separator())
      return expected(in, slots()[kLabel], "a label");
    while (!in.at_end()) {
      if (!add_number(in, SlotKind::ids, kField, out) || !in.skip_if(':'))
        return expected(in, slots()[kField], "field:index:value");
      if (!add_number(in, SlotKind::ids, kIndex, out) || !in.skip_if(':'))
        return expected(in, slots()[kIndex], "index:value");
      if (!add_number(in, SlotKind::floats, kValue, out) || !in.skip_separator())
        return expected(in, slots()[kValue], "a finite number");
    }
    return std::nullopt;
  }
};

}  // namespace

std::unique_ptr<Parser> libffm(const Call& spec, std::vector<SlotSpec> slots) {
  spec.expect("parser", 0, {});
  return std::make_unique<LibFfm>(fit_slots(spec, std::move(slots),
                                            {{"label", SlotKind::floats, 1},
                                             {"field", SlotKind::ids, 0, EmptySlot::empty},
                                             {"index", SlotKind::ids, 0, EmptySlot::empty},
                                             {"value", SlotKind::floats, 0, EmptySlot::empty}},
                                            "label"));
}

}  // namespace argosy::parsers
