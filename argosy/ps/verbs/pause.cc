#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb pause() {
  return make_verb<Pause>(Takes::moments,
                          [](Server& server, const Asker& asker, const Pause& verb) {
                            server.pause(asker.worker, verb.pass);
                            return server.once_durable(asker, [] { return Done{}; });
                          });
}

}  // namespace argosy::ps::verbs
