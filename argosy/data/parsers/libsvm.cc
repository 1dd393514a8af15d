// libsvm: "label index:value index:value ...". Slots: label, index, value; an instance may have no
// feature. A word that starts with # ends the line. The label is not converted.
#include "argosy/data/parsers/parser_support.h"

namespace argosy::parsers {
namespace {

constexpr size_t kLabel = 0, kIndex = 1, kValue = 2;

class LibSvm final : public Parser {
 public:
  using Parser::Parser;

 private:
  std::optional<std::string> add_instance(std::string_view line, Columns& out) const override {
    Scanner::Pad pad;
    Scanner in(line, pad);
    in.skip_blanks();
    if (!add_number(in, slots()[kLabel].kind, kLabel, out) || !in.skip_separator())
      return expected(in, slots()[kLabel], "a label");
    while (!in.at_end() && in.rest().front() != '#') {
      if (!add_number(in, SlotKind::ids, kIndex, out) || !in.skip_if(':'))
        return expected(in, slots()[kIndex], "index:value");
      if (!add_number(in, SlotKind::floats, kValue, out) || !in.skip_separator())
        return expected(in, slots()[kValue], "a finite number");
    }
    return std::nullopt;
  }
};

}  // namespace

std::unique_ptr<Parser> libsvm(const Call& spec, std::vector<SlotSpec> slots) {
  spec.expect("parser", 0, {});
  return std::make_unique<LibSvm>(fit_slots(spec, std::move(slots),
                                            {{"label", SlotKind::floats, 1},
                                             {"index", SlotKind::ids, 0, EmptySlot::empty},
                                             {"value", SlotKind::floats, 0, EmptySlot::empty}},
                                            "label"));
}

}  // namespace argosy::parsers
