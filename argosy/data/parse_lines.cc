#include "argosy/data/parse_lines.h"

namespace argosy {

bool parse_lines(Lines& lines, const Parser& parser, size_t rows, Columns& out, LineTally& tally,
                 std::vector<uint64_t>* numbers) {
  while (out.rows() < rows) {
    const auto line = lines.next();
    if (!line) return false;
    if (lines.number() <= parser.header_lines()) continue;
    const auto reason = line->bad.empty() ? parser.parse(line->text, out) : line->bad;
    if (reason) [[unlikely]] {
      tally.bad(lines.name(), lines.number(), *reason);
      continue;
    }
    tally.good();
    if (numbers != nullptr) numbers->push_back(lines.number());
  }
  return true;
}

}  // namespace argosy
