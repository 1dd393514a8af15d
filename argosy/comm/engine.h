#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argosy/comm/backend.h"

namespace argosy::comm {

/// A third-party library that moves and adds data: MPI, NCCL. One call at a time. No function waits
/// for another rank; all throw IoError with the library's own message.
class Engine {
 public:
  virtual ~Engine() = default;
  /// Starts call.step on at least one element. Never a kind without data, never avg (a sum that is
  /// divided afterwards), and the memory of an all_to_all does not overlap.
  virtual void start(const Collective& work) = 0;
  /// Whether the started call is complete.
  virtual bool done() = 0;
  /// Ranks were lost: the started call will never complete.
  virtual void give_up() noexcept = 0;
};

/// The bytes a rank can send to all others while the group is made.
using Token = std::array<std::byte, 128>;

struct EngineOptions {
  int rank = 0, ranks = 1;
  std::string device = {};
  /// All tokens by rank; every rank calls it. Throws IoError like a call of the group.
  std::function<std::vector<Token>(const Token&)> exchange = {};
  /// Poll it while waiting: throws IoError once waiting is pointless.
  std::function<void()> look = {};
};

/// The symbol that libargosy_NAME.so exports. The module links its library and nothing of argosy.
struct EngineModule {
  static constexpr uint32_t kInterface = 1;
  uint32_t interface = kInterface;
  uint64_t most_elements = 0;  // of a call
  std::unique_ptr<Engine> (*open)(const EngineOptions& options) = nullptr;
};

}  // namespace argosy::comm

/// Defined by each module, found by this name.
extern "C" __attribute__((visibility("default")))
const argosy::comm::EngineModule argosy_engine_module;
