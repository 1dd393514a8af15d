// Threads of one process: every rank sees all memory, and the board is plain memory.
#include <sys/mman.h>

#include <algorithm>
#include <map>

#include "argosy/base/error.h"
#include "argosy/base/mutex.h"
#include "argosy/comm/group.h"
#include "argosy/comm/shared_backend.h"

namespace argosy::comm {
namespace {

/// Takes no room before it is used.
std::shared_ptr<std::byte> zeroed(size_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check<IoError>(memory != MAP_FAILED, "no memory for ", bytes, " bytes");
  return {static_cast<std::byte*>(memory), [bytes](std::byte* last) { ::munmap(last, bytes); }};
}

/// The boards of all groups, by which threads find each other.
class World {
 public:
  std::shared_ptr<std::byte> board(uint64_t id, int ranks) {
    const Lock lock(mutex_);
    std::weak_ptr<std::byte>& known = boards_[id];
    std::shared_ptr<std::byte> memory = known.lock();
    if (memory == nullptr) known = memory = zeroed(Board::bytes_for(ranks));
    return memory;
  }

 private:
  Mutex mutex_;
  std::map<uint64_t, std::weak_ptr<std::byte>> boards_ GUARDED_BY(mutex_);
};

class Inproc final : public SharedBackend {
 public:
  Inproc(std::shared_ptr<World> world, std::shared_ptr<std::byte> board, int rank, int ranks,
         Env& env, Env::Duration deadline)
      : SharedBackend(std::move(board), rank, ranks, {.env = env, .deadline = deadline}),
        world_(std::move(world)),
        env_(env),
        deadline_(deadline) {}

  std::span<std::byte> arena(const GroupCall& call) override {
    run({.call = call});
    arenas_.push_back(zeroed(std::max<size_t>(call.count, 1)));
    return {arenas_.back().get(), call.count};
  }
  std::unique_ptr<Backend> sub_group(std::span<const int> ranks, uint64_t id) override {
    const auto own = std::ranges::find(ranks, rank());
    const int count = static_cast<int>(ranks.size());
    auto board = world_->board(id, count);
    // No rank may continue, and release the board, before every rank has it.
    auto group = std::make_unique<Inproc>(
        world_, std::move(board), static_cast<int>(own - ranks.begin()), count, env_, deadline_);
    group->run({.call = {.kind = CallKind::barrier}});
    return group;
  }

 private:
  Location location_of(const std::byte* memory) const override {
    return reinterpret_cast<Location>(memory);
  }
  std::byte* seen(int, Location at) const override { return reinterpret_cast<std::byte*>(at); }

  const std::shared_ptr<World> world_;
  Env& env_;
  const Env::Duration deadline_;
  std::vector<std::shared_ptr<std::byte>> arenas_;
};

}  // namespace

std::vector<std::unique_ptr<Group>> inproc_groups(Env& env, int ranks, Env::Duration deadline) {
  const auto world = std::make_shared<World>();
  const auto board = world->board(0, ranks);
  std::vector<std::unique_ptr<Group>> groups;
  groups.reserve(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    groups.push_back(std::make_unique<Group>(
        std::make_unique<Inproc>(world, board, rank, ranks, env, deadline)));
  return groups;
}

}  // namespace argosy::comm
