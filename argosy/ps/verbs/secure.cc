#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb secure() {
  return make_verb<Secure>(Takes::moments, [](Server& server, const Asker& asker, const Secure&) {
    return server.once_durable(asker, [] { return Done{}; });
  });
}

}  // namespace argosy::ps::verbs
