#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb write_parameters() {
  return make_verb<WriteParameters>(
      Takes::moments, [](Server& server, const Asker& asker, const WriteParameters& verb) {
        server.alone([&] {
          server.shard().set_parameters(verb.values);
          server.set_step(verb.step);
        });
        return server.once_durable(asker, [] { return Done{}; });
      });
}

}  // namespace argosy::ps::verbs
