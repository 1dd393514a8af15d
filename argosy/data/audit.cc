#include "argosy/data/audit.h"

#include "argosy/base/error.h"

namespace argosy {

void Audit::delivered(const std::vector<Origin>& origins) {
  for (const auto& [file, line] : origins) {
    Lines& lines = delivered_[file];
    if (lines.size() <= line) lines.resize(line + 1 + line / 2);
    check<Error>(!lines[line], "audit: line ", line, " of file number ", file,
                 " was delivered twice");
    lines[line] = true;
  }
  n_delivered_ += origins.size();
}

void Audit::found(const std::vector<Origin>& origins) { n_found_ += origins.size(); }

std::string Audit::finish(size_t left_out) const {
  check<Error>(n_found_ == n_delivered_ + left_out, "audit: ", n_found_,
               " instances were read, and ", n_delivered_, " delivered");
  return "audit: " + std::to_string(n_delivered_) + " instances of " +
         std::to_string(delivered_.size()) + " files, each delivered once";
}

}  // namespace argosy
