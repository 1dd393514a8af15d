#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb standing() {
  return make_verb<Standing>(Takes::moments,
                             [](Server& server, const Asker& asker, const Standing& verb) {
                               server.ask_standing(asker, verb.series);
                               return std::optional<Standing::Result>();
                             });
}

}  // namespace argosy::ps::verbs
