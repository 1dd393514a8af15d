#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb trained_files() {
  return make_verb<TrainedFiles>(
      Takes::moments, [](Server& server, const Asker& asker, const TrainedFiles& verb) {
        const TrainedFiles::Result result{server.with_files(
            [&](FileQueue& files) { return files.trained(verb.pass, verb.numbers); })};
        return server.once_durable(asker, [result] { return result; });
      });
}

}  // namespace argosy::ps::verbs
