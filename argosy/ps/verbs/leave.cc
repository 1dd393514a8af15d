#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb leave() {
  return make_verb<Leave>(Takes::moments, [](Server& server, const Asker& asker, const Leave&) {
    server.begin_leaving(asker.worker);
    return server.once_durable(asker, [&server, worker = asker.worker] {
      server.leave(worker);
      return Done{};
    });
  });
}

}  // namespace argosy::ps::verbs
