// slot_text: "click:0 dense_feature:0.1 dense_feature:0.2 1:737395 ...", a slot's name and a value,
// in any order and as often as there are values.
//   slot_text(unknown=skip)   leaves out slots that are not declared; default is unknown=error
#include <algorithm>
#include <numeric>

#include "argosy/base/error.h"
#include "argosy/data/parsers/parser_support.h"

namespace argosy::parsers {
namespace {

enum class Unknown : uint8_t { error, skip };

class SlotText final : public Parser {
 public:
  SlotText(std::vector<SlotSpec> slots, Unknown unknown)
      : Parser(std::move(slots)), unknown_(unknown), by_name_(this->slots().size()) {
    std::iota(by_name_.begin(), by_name_.end(), 0);
    std::ranges::sort(by_name_, {}, [this](size_t slot) { return name(slot); });
  }

 private:
  std::optional<std::string> add_instance(std::string_view line, Columns& out) const override {
    Scanner::Pad pad;
    Scanner in(line, pad);
    in.skip_blanks();
    size_t slot = 0;
    while (!in.at_end()) {
      const std::string_view word = in.rest();
      const size_t colon = word.find_first_of(": \t");
      if (colon == 0 || colon == std::string_view::npos || word[colon] != ':')
        return "at byte " + std::to_string(in.column()) + ": expected slot:value, found " +
               in.found();
      const auto found = find(word.substr(0, colon), slot);
      if (!found && unknown_ == Unknown::error)
        return "at byte " + std::to_string(in.column()) + ": no slot " +
               quoted(word.substr(0, colon)) + " is declared";
      if (!found) {
        in.skip(std::min(word.size(), word.find_first_of(" \t")));
        in.skip_blanks();
        continue;
      }
      slot = *found;
      in.skip(colon + 1);
      if (!add_number(in, slots()[slot].kind, slot, out) || !in.skip_separator())
        return expected(in, slots()[slot], number_wanted(slots()[slot].kind));
    }
    return std::nullopt;
  }

  std::string_view name(size_t slot) const { return slots()[slot].name; }

  /// Mostly the slot of the value before or the next one, so these are tried first.
  std::optional<size_t> find(std::string_view wanted, size_t last) const {
    if (name(last) == wanted) return last;
    if (last + 1 < slots().size() && name(last + 1) == wanted) return last + 1;
    const auto at =
        std::ranges::lower_bound(by_name_, wanted, {}, [this](size_t slot) { return name(slot); });
    if (at == by_name_.end() || name(*at) != wanted) return std::nullopt;
    return *at;
  }

  Unknown unknown_;
  std::vector<size_t> by_name_;  // slots in the order of their names
};

Unknown unknown_of(const Call& spec) {
  const std::string word = spec.word("unknown", "error");
  check<ConfigError>(word == "error" || word == "skip", "'", spec.text(), "': unknown=", word,
                     ", expected error or skip");
  return word == "skip" ? Unknown::skip : Unknown::error;
}

}  // namespace

std::unique_ptr<Parser> slot_text(const Call& spec, std::vector<SlotSpec> slots) {
  spec.expect("parser", 0, {"unknown"});
  check<ConfigError>(!slots.empty(), "'", spec.text(), "': the slots to read must be declared");
  return std::make_unique<SlotText>(std::move(slots), unknown_of(spec));
}

}  // namespace argosy::parsers
