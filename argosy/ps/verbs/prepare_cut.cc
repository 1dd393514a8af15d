#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb prepare_cut() {
  return make_verb<PrepareCut>(Takes::moments,
                               [](Server& server, const Asker& asker, const PrepareCut&) {
                                 server.prepare_cut(asker);
                                 return std::optional<PrepareCut::Result>();
                               });
}

}  // namespace argosy::ps::verbs
