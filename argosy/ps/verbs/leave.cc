#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb leave() {
  return make_verb<Leave>(Takes::moments, [](Server& server, const Asker& asker, const Leave&) {
    server.leave(asker.worker);
    return Done{};
  });
}

}  // namespace argosy::ps::verbs
