// Processes of one host: the board and the arenas are memory that all of them have mapped.
#include <algorithm>

#include "argosy/comm/backends.h"
#include "argosy/comm/shared_backend.h"
#include "argosy/comm/shared_memory.h"

namespace argosy::comm {
namespace {

constexpr size_t kPage = 4096;
constexpr int kOffsetBits = 48;  // of a location; the arena's number is above

Patience patience_of(Peers& peers) {
  return {.env = peers.env(),
          .deadline = peers.options().deadline,
          .look = [&peers] { peers.look(); },
          .name = [&peers](int rank) { return peers.name(rank); }};
}

/// Base class, so that its members exist before the board does.
struct Host {
  explicit Host(std::unique_ptr<Peers> ranks) : peers(std::move(ranks)), memory(*peers) {}
  std::unique_ptr<Peers> peers;
  SharedMemory memory;
};

class Shm final : private Host, public SharedBackend {
 public:
  explicit Shm(std::unique_ptr<Peers> ranks)
      : Host(std::move(ranks)),
        SharedBackend(memory.make(Board::bytes_for(peers->size())), peers->rank(), peers->size(),
                      patience_of(*peers)) {}

  void run(const Collective& work) override {
    peers->begin(work.call);
    SharedBackend::run(work);
    peers->end();
  }
  std::span<std::byte> arena(const GroupCall& call) override {
    run({.call = call});
    const size_t each = std::max<size_t>(1, (call.count + kPage - 1) / kPage) * kPage;
    const Arena next{memory.make(each * static_cast<size_t>(size())), each};
    arenas_.push_back(next);
    return {own_part(next), call.count};
  }
  std::unique_ptr<Backend> sub_group(std::span<const int> ranks, uint64_t id) override {
    return shm_backend(peers->sub_group(ranks, id));
  }
  void abandon(const std::string& reason) noexcept override {
    SharedBackend::abandon(reason);
    peers->tell(reason);
  }

 private:
  struct Arena {
    std::shared_ptr<std::byte> memory;
    size_t each;  // bytes of a rank's part
  };
  std::byte* own_part(const Arena& arena) const {
    return arena.memory.get() + static_cast<size_t>(rank()) * arena.each;
  }

  Location location_of(const std::byte* memory) const override {
    for (size_t i = 0; i < arenas_.size(); ++i) {
      const std::byte* const own = own_part(arenas_[i]);
      if (memory >= own && memory < own + arenas_[i].each)
        return (i << kOffsetBits) | static_cast<Location>(memory - arenas_[i].memory.get());
    }
    return kStaged;
  }
  std::byte* seen(int, Location at) const override {
    return arenas_[at >> kOffsetBits].memory.get() + (at & ((Location{1} << kOffsetBits) - 1));
  }

  std::vector<Arena> arenas_;
};

}  // namespace

std::unique_ptr<Backend> shm_backend(std::unique_ptr<Peers> peers) {
  return std::make_unique<Shm>(std::move(peers));
}

}  // namespace argosy::comm
