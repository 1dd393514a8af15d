#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb milestone() {
  return make_verb<Milestone>(Takes::moments,
                              [](Server& server, const Asker& asker, const Milestone& verb) {
                                server.meet(asker, verb);
                                return std::optional<Milestone::Result>();
                              });
}

}  // namespace argosy::ps::verbs
