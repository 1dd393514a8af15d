#pragma once

#include <optional>
#include <string>

#include "argosy/net/endpoint.h"

namespace argosy {

/// Where ranks that do not know each other's addresses find them: files, or texts that rank 0 keeps
/// for the others and serves by HTTP.
struct MeetingPlace {
  int ranks = 0;
  std::string folder = {};            // that all hosts see; "": by HTTP
  std::optional<Endpoint> http = {};  // where rank 0 serves
  std::string host = {};              // this rank's address; "": one of this machine's
};

}  // namespace argosy
