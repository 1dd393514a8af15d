#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb resume() {
  return make_verb<Resume>(Takes::moments,
                           [](Server& server, const Asker& asker, const Resume& verb) {
                             server.resume(verb.trained);
                             return server.once_durable(asker, [] { return Done{}; });
                           });
}

}  // namespace argosy::ps::verbs
