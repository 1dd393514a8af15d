#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb mark() {
  return make_verb<Mark>(Takes::moments,
                         [](Server& server, const Asker&, const Mark&) { return server.mark(); });
}

}  // namespace argosy::ps::verbs
