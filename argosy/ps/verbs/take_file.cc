#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb take_file() {
  return make_verb<TakeFile>(
      Takes::moments,
      [](Server& server, const Asker& asker,
         const TakeFile& verb) -> std::optional<TakeFile::Result> {
        TakeFile::Result result;
        server.with_files([&](FileQueue& files) {
          if (const auto file = files.take({asker.worker, verb.lane, verb.lanes}, verb.pass,
                                           verb.taken, verb.stealing))
            result.file.push_back(*file);
        });
        // The first pass of fixed shares is the same again whatever becomes of this server.
        if (verb.stealing == Stealing::off && verb.pass.number == 0) return result;
        return server.once_durable(asker, [result] { return result; });
      });
}

}  // namespace argosy::ps::verbs
