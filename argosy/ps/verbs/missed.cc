#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb missed() {
  return make_verb<Missed>(
      Takes::moments, [](Server& server, const Asker&, const Missed&) { return server.missed(); });
}

}  // namespace argosy::ps::verbs
