#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb join() {
  return make_verb<Join>(Takes::moments, [](Server& server, const Asker& asker, const Join& verb) {
    server.meet(asker, verb);
    return std::optional<Join::Result>();
  });
}

}  // namespace argosy::ps::verbs
