#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb progress() {
  return make_verb<Progress>(Takes::moments,
                             [](Server& server, const Asker& asker, const Progress&) {
                               return server.trained(asker.worker);
                             });
}

}  // namespace argosy::ps::verbs
