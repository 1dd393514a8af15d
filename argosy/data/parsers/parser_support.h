#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/data/parser.h"
#include "argosy/data/scanner.h"

namespace argosy::parsers {

/// "slot 'C3' at byte 17: expected an id, found 'abc'".
[[gnu::cold]] std::string expected(Scanner in, const SlotSpec& slot, std::string_view what);

/// The expectation named in the error for an unreadable number.
inline const char* number_wanted(SlotKind kind) {
  return kind == SlotKind::ids ? "an id of 64 bits" : "a finite number";
}

/// Reads one number of the slot's kind into it; false, adding nothing, if there is none.
inline bool add_number(Scanner& in, SlotKind kind, size_t slot, Columns& out) {
  if (kind == SlotKind::ids) {
    const auto value = in.id();
    if (value) *out.add_ids(slot, 1) = *value;
    return value.has_value();
  }
  const auto value = in.real();
  if (value) *out.add_floats(slot, 1) = *value;
  return value.has_value();
}

/// The caller's slots, checked against the format's, or the format's if none are given. The kind of
/// a slot in `free_kind` is the caller's choice.
std::vector<SlotSpec> fit_slots(const Call& spec, std::vector<SlotSpec> given,
                                std::vector<SlotSpec> format, std::string_view free_kind = "");

/// A whole number of at least `least` by name, else the default. Throws ConfigError.
uint64_t whole_number(const Call& spec, std::string_view name, uint64_t otherwise, uint64_t least);

}  // namespace argosy::parsers
