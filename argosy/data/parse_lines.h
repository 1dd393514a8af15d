#pragma once

#include "argosy/data/line_tally.h"
#include "argosy/data/lines.h"
#include "argosy/data/parser.h"

namespace argosy {

/// Reads instances until `out` has `rows` of them or the lines end; false at the end. Bad lines are
/// counted and skipped, headers only skipped. Adds the number of each good line to `numbers`, if
/// there is one.
bool parse_lines(Lines& lines, const Parser& parser, size_t rows, Columns& out, LineTally& tally,
                 std::vector<uint64_t>* numbers = nullptr);

}  // namespace argosy
