#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb read_rows() {
  return make_verb<ReadRows>(Takes::long_time,
                             [](Server& server, const Asker&, const ReadRows& verb) {
                               return server.shard().read_rows(verb);
                             });
}

}  // namespace argosy::ps::verbs
