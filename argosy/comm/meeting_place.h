#pragma once

#include <optional>
#include <string>

#include "argosy/net/endpoint.h"

namespace argosy::comm {

/// How ranks find each other's addresses: through files, or through an HTTP store on rank 0.
struct MeetingPlace {
  int ranks = 0;
  std::string folder = {};            // that all hosts see; "": by HTTP
  std::optional<Endpoint> http = {};  // where rank 0 serves
  std::string host = {};              // this rank's address; "": one of this machine's
};

}  // namespace argosy::comm
