#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb cut() {
  return make_verb<Cut>(Takes::moments, [](Server& server, const Asker& asker, const Cut& verb) {
    return server.cut(asker, verb);
  });
}

}  // namespace argosy::ps::verbs
