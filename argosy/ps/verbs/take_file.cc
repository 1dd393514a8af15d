#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb take_file() {
  return make_verb<TakeFile>(
      Takes::moments, [](Server& server, const Asker& asker, const TakeFile& verb) {
        return server.with_files([&](FileQueue& files) {
          TakeFile::Result result;
          if (const auto file = files.take({asker.worker, verb.lane, verb.lanes}, verb.pass,
                                           verb.taken, verb.stealing))
            result.file.push_back(*file);
          return result;
        });
      });
}

}  // namespace argosy::ps::verbs
