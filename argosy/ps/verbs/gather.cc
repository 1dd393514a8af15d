#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb gather() {
  return make_verb<Gather>(Takes::moments,
                           [](Server& server, const Asker& asker, const Gather& verb) {
                             server.meet(asker, verb);
                             return std::optional<Gather::Result>();
                           });
}

}  // namespace argosy::ps::verbs
