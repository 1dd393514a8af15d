#include <fmt/format.h>

#include "argosy/ps/server.h"

namespace argosy::ps::verbs {

Verb stats() {
  return make_verb<Stats>(Takes::moments, [](Server& server, const Asker&, const Stats&) {
    return Stats::Result{fmt::format("step {}\n{}", server.step(), server.shard().stats())};
  });
}

}  // namespace argosy::ps::verbs
