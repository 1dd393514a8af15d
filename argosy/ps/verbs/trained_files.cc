#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb trained_files() {
  return make_verb<TrainedFiles>(
      Takes::moments, [](Server& server, const Asker&, const TrainedFiles& verb) {
        return server.with_files([&](FileQueue& files) {
          return TrainedFiles::Result{files.trained(verb.pass, verb.numbers)};
        });
      });
}

}  // namespace argosy::ps::verbs
