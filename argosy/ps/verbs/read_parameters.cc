#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb read_parameters() {
  return make_verb<ReadParameters>(
      Takes::moments, [](Server& server, const Asker&, const ReadParameters&) {
        return ReadParameters::Result{server.step(), server.shard().parameters()};
      });
}

}  // namespace argosy::ps::verbs
