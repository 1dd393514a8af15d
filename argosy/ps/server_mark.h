#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "argosy/base/trained.h"

namespace argosy::ps {

/// How far a server was when it made a save.
struct ServerMark {
  uint64_t step = 0;
  std::vector<uint64_t> applied = {};  // exchanges, by worker
  std::vector<Trained> trained = {};   // by worker; none in saves of the first releases

  template <class A>
  void fields(A& a) {
    a(step, applied, trained);
  }
  std::string text() const;
  static ServerMark parse(const std::string& text);  // throws DataError
};

}  // namespace argosy::ps
