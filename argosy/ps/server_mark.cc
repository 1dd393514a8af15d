#include "argosy/ps/server_mark.h"

#include <fmt/format.h>

#include <sstream>

#include "argosy/base/error.h"

namespace argosy {

std::string ServerMark::text() const {
  std::string out = std::to_string(step);
  for (const uint64_t sequence : applied) out += fmt::format(" {}", sequence);
  return out;
}

ServerMark ServerMark::parse(const std::string& text) {
  std::istringstream words(text);
  ServerMark mark;
  words >> mark.step;
  for (uint64_t sequence = 0; words >> sequence;) mark.applied.push_back(sequence);
  check<DataError>(words.eof() && !mark.applied.empty(), "'", text,
                   "': expected a step and the exchanges of each worker");
  return mark;
}

}  // namespace argosy
