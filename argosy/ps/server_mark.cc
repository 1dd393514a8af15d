#include "argosy/ps/server_mark.h"

#include <fmt/format.h>

#include <sstream>

#include "argosy/base/error.h"

namespace argosy::ps {

std::string ServerMark::text() const {
  std::string out = std::to_string(step);
  for (const uint64_t sequence : applied) out += fmt::format(" {}", sequence);
  if (trained.empty()) return out;
  out += " trained";
  for (const Trained& one : trained)
    out += fmt::format(" {} {} {}", one.pass, one.batches, one.steps);
  return out;
}

ServerMark ServerMark::parse(const std::string& text) {
  std::istringstream words(text);
  ServerMark mark;
  words >> mark.step;
  for (uint64_t sequence = 0; words >> sequence;) mark.applied.push_back(sequence);
  std::string word;
  if (!words.eof()) words.clear();
  if (words >> word && word == "trained")
    for (Trained one; words >> one.pass >> one.batches >> one.steps;) mark.trained.push_back(one);
  check<DataError>(words.eof() && !mark.applied.empty() &&
                       (word.empty() || mark.trained.size() == mark.applied.size()),
                   "'", text,
                   "': expected a step, the exchanges of each worker, and how far it is");
  return mark;
}

}  // namespace argosy::ps
