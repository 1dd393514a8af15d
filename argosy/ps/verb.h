#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/plugins.h"
#include "argosy/ps/verbs.h"

namespace argosy::ps {

class Server;

/// A process of a worker that waits for the answer to a verb.
struct Asker {
  uint32_t worker = 0;
  uint64_t incarnation = 0, id = 0;
};

/// A result frame's payload; workers that met share one.
using SharedResult = std::shared_ptr<const std::vector<std::byte>>;

/// How a server performs a verb: a file of verbs/.
struct Verb {
  std::string name;
  bool takes_long = false;  // it is not performed on the thread that reads links
  /// The encoded answer; nothing: it comes later. Throws Error.
  std::function<std::optional<std::vector<std::byte>>(Server& server, const Asker& asker,
                                                      std::span<const std::byte> fields)>
      perform;
};

enum class Takes : uint8_t { moments, long_time };

/// `perform(server, asker, verb)` returns V::Result, or std::optional of it.
template <class V, class Perform>
Verb make_verb(Takes takes, Perform perform) {
  return {V::kName, takes == Takes::long_time,
          [perform](Server& server, const Asker& asker,
                    std::span<const std::byte> fields) -> std::optional<std::vector<std::byte>> {
            const std::optional<typename V::Result> result =
                perform(server, asker, decode_fields<V>(fields, V::kName));
            if (!result) return std::nullopt;
            return encode_fields(*result);
          }};
}

/// A file of verbs/.
using VerbPlugin = Plugin<Verb()>;
std::vector<VerbPlugin> builtin_verbs();

}  // namespace argosy::ps
