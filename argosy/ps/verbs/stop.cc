#include <fmt/format.h>

#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb stop() {
  return make_verb<Stop>(Takes::moments, [](Server& server, const Asker& asker, const Stop&) {
    server.say(fmt::format("worker {} says stop", asker.worker));
    server.stop();
    return Done{};
  });
}

}  // namespace argosy::ps::verbs
