#include <fmt/format.h>

#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb load() {
  return make_verb<Load>(Takes::long_time, [](Server& server, const Asker&, const Load& verb) {
    server.shard().load(server.env(), verb.folder, verb.files);
    server.say(fmt::format("loaded {} tables from {}", server.shard().tables(), verb.folder));
    return Done{};
  });
}

}  // namespace argosy::ps::verbs
