#include <fmt/format.h>

#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb save() {
  return make_verb<Save>(Takes::long_time, [](Server& server, const Asker&, const Save& verb) {
    server.saves(verb.folder, verb.generation);
    Save::Result result{server.shard().save(server.env(), verb.folder, verb.generation)};
    server.say(fmt::format("saved {} tables in {}", result.files.size(), verb.folder));
    return result;
  });
}

}  // namespace argosy::ps::verbs
