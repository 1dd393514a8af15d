#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb shrink() {
  return make_verb<Shrink>(Takes::long_time, [](Server& server, const Asker&, const Shrink& verb) {
    return Shrink::Result{server.shard().shrink(verb.unseen)};
  });
}

}  // namespace argosy::ps::verbs
