#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argosy/comm/backend.h"

namespace argosy {

/// A library of others that moves data and adds: MPI, NCCL. One call at a time; none of these
/// waits for another rank. They throw IoError with the library's own words.
class Engine {
 public:
  virtual ~Engine() = default;
  /// Begins what call.step says, for at least one element. It is never avg, which is a sum that is
  /// divided afterwards, and the memory of all_to_all does not overlap. Kinds without data are not
  /// among them.
  virtual void start(const Collective& work) = 0;
  /// Whether that is over.
  virtual bool done() = 0;
  /// Others are lost: what was started will not end.
  virtual void give_up() noexcept = 0;
};

/// What one rank can tell all others while a group is made.
using Token = std::array<std::byte, 128>;

struct EngineOptions {
  int rank = 0, ranks = 1;
  std::string device = {};
  /// Everybody's, by rank; every rank calls it. Throws IoError as a call of a group does.
  std::function<std::vector<Token>(const Token&)> exchange = {};
  /// To be called now and then by who waits: throws IoError if there is no use in it.
  std::function<void()> look = {};
};

/// What libargosy_NAME.so gives. It links the library it is for, and nothing of argosy.
struct EngineModule {
  static constexpr uint32_t kInterface = 1;
  uint32_t interface = kInterface;
  uint64_t most_elements = 0;  // of a call
  std::unique_ptr<Engine> (*open)(const EngineOptions& options) = nullptr;
};

}  // namespace argosy

/// Defined by each module, found by this name.
extern "C" __attribute__((visibility("default"))) const argosy::EngineModule argosy_engine_module;
