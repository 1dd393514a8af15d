#include <fmt/format.h>

#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb load() {
  return make_verb<Load>(
      Takes::long_time, [](Server& server, const Asker& asker, const Load& verb) {
        server.alone([&] { server.shard().load(server.env(), verb.folder, verb.files); });
        server.say(fmt::format("loaded {} tables from {}", server.shard().tables(), verb.folder));
        return server.once_durable(asker, [] { return Done{}; });
      });
}

}  // namespace argosy::ps::verbs
