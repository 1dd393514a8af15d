#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb shrink() {
  return make_verb<Shrink>(
      Takes::long_time, [](Server& server, const Asker& asker, const Shrink& verb) {
        Shrink::Result result;
        server.alone([&] { result.erased = server.shard().shrink(verb.unseen); });
        return server.once_durable(asker, [result] { return result; });
      });
}

}  // namespace argosy::ps::verbs
