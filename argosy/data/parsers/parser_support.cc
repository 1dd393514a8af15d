#include "argosy/data/parsers/parser_support.h"

#include <charconv>

#include "argosy/base/error.h"

namespace argosy::parsers {
namespace {

const char* name(SlotKind kind) { return kind == SlotKind::ids ? "ids" : "floats"; }

}  // namespace

std::string expected(Scanner in, const SlotSpec& slot, std::string_view what) {
  return "slot '" + slot.name + "' at byte " + std::to_string(in.column()) + ": expected " +
         std::string(what) + ", found " + in.found();
}

std::vector<SlotSpec> fit_slots(const Call& spec, std::vector<SlotSpec> given,
                                std::vector<SlotSpec> format, std::string_view free_kind) {
  if (given.empty()) return format;
  check<ConfigError>(given.size() == format.size(), "'", spec.text(), "': gives ", format.size(),
                     " slots, ", given.size(), " were declared");
  for (size_t i = 0; i < given.size(); ++i) {
    const SlotSpec &mine = format[i], &theirs = given[i];
    const bool kind_fits = theirs.kind == mine.kind || mine.name == free_kind;
    const bool width_fits = theirs.width == mine.width || theirs.width == 0;
    check<ConfigError>(kind_fits && width_fits, "'", spec.text(), "': slot '", theirs.name,
                       "' holds ", name(mine.kind), " of width ", mine.width, ", declared were ",
                       name(theirs.kind), " of width ", theirs.width);
  }
  return given;
}

uint64_t whole_number(const Call& spec, std::string_view name, uint64_t otherwise, uint64_t least) {
  const std::string text = spec.word(name, std::to_string(otherwise));
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  check<ConfigError>(error == std::errc() && stop == end && value >= least, "'", spec.text(),
                     "': ", name, "=", text, ", expected a whole number of at least ", least);
  return value;
}

}  // namespace argosy::parsers
