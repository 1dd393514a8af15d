#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/modes/communicator.h"
#include "argosy/net/transport.h"

namespace argosy {

/// All that the rest of the system knows about a mode of training. Each file of communicators/
/// defines one, by a function with the file's name; docs/how-to/add-a-mode.md adds another.
struct Mode {
  enum class Needs : uint8_t { nothing, servers, ranks };
  /// Gradients: servers apply the plan's rules. Differences: the worker's own rules have been
  /// applied, and servers only add.
  enum class Pushes : uint8_t { gradients, differences };

  std::string name = {};  // its file's
  Needs needs = Needs::servers;
  bool threads_share_a_batch = false;  // a step of this process is one batch
  std::unique_ptr<Communicator> (*make)(const Plan& plan, const Strategy& strategy,
                                        const Wires& wires) = nullptr;

  // With servers:
  Pushes pushes = Pushes::gradients;
  bool sync = false;  // servers average the pushes of all workers, which wait for each other
  LinkOptions links = {};
  size_t exchanges = 1;  // per server, for a push and the next pull
  /// How many batches one push covers.
  int64_t (*batches_per_push)(const Strategy& strategy) = [](const Strategy&) {
    return int64_t{1};
  };
  uint64_t empty_pushes = 0;               // per worker, at the start of a pass
  std::string_view between_pushes = {};    // other traffic, in words
  std::string_view lost_with_worker = {};  // besides unpushed batches, in words

  /// The plan's specs, as servers hold them.
  struct Held {
    std::vector<ps::ParameterSpec> parameters;
    std::vector<ps::TableSpec> tables;
  };
  Held on_servers(const Plan& plan) const;
  /// "@GRAD" or "@DELTA": the suffix of what is pushed, in program texts.
  std::string_view pushed_ending() const;
};

/// For modes whose compute threads do not wait for their pushes: the transport's threads send the
/// larger frames.
inline constexpr LinkOptions kSendInBackground = {.inline_limit = 32 << 10};

/// Sorted by name.
const std::vector<Mode>& modes();
/// Throws ConfigError that names the nearest.
const Mode& mode(std::string_view name);

}  // namespace argosy
