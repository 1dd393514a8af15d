#include "argosy/ps/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <deque>
#include <new>
#include <thread>

namespace argosy::ps {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kFirstMapping = size_t{8} << 20;
constexpr size_t kMapping = size_t{64} << 20;
#ifdef MADV_COLLAPSE
constexpr int kCollapse = MADV_COLLAPSE;
#else
constexpr int kCollapse = 25;  // Linux 6.1; older ones refuse it, and the pages stay small
#endif

size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

/// Turns stretches of small pages into huge ones, in a thread of its own.
class Arena::Collapser {
 public:
  void add(std::byte* huge_page) {
    {
      const Lock lock(mutex_);
      waiting_.push_back({huge_page, kTries});
      ++added_;
    }
    changed_.notify_one();
  }

 private:
  struct Page {
    std::byte* start;
    int tries;  // that are left
  };
  static constexpr int kTries = 20;
  /// While pages are changed others cannot be faulted in: nothing is changed until the table has
  /// not grown by a huge page for so long, and between two changes there is a rest.
  static constexpr std::chrono::milliseconds kQuiet{300}, kRest{10};

  void run(const std::stop_token& stop) {
    const Lock lock(mutex_);
    while (changed_.wait(mutex_, stop, [&]() REQUIRES(mutex_) { return !waiting_.empty(); })) {
      const size_t before = added_;
      const auto added = [&]() REQUIRES(mutex_) { return added_ != before; };
      if (changed_.wait_for(mutex_, stop, grew_ ? kQuiet : kRest, added)) {
        grew_ = true;
        continue;
      }
      if (stop.stop_requested()) return;
      grew_ = false;
      Page page = waiting_.front();
      waiting_.pop_front();
      bool done = false;
      {
        const Unlocked unlocked(mutex_);
        done = collapse(page);
      }
      if (!done) waiting_.push_back(page);
    }
  }

  /// A wish; false if it should be tried again. Pages that were just touched are often refused.
  static bool collapse(Page& page) {
    return madvise(page.start, kHugePage, kCollapse) == 0 || errno != EAGAIN || --page.tries == 0;
  }

  Mutex mutex_;
  CondVar changed_;
  std::deque<Page> waiting_ GUARDED_BY(mutex_);
  size_t added_ GUARDED_BY(mutex_) = 0;
  bool grew_ GUARDED_BY(mutex_) = true;  // since the last change
  std::jthread thread_{[this](const std::stop_token& stop) { run(stop); }};  // last: ends first
};

Arena::Arena() = default;

Arena::~Arena() {
  collapser_.reset();  // before what it works on
  for (const Mapping& mapping : mappings_) munmap(mapping.start, mapping.size);
}

std::byte* Arena::take(size_t bytes) {
  bytes = round_up(bytes, kAlignment);
  const Lock lock(mutex_);
  if (bytes > left_) map(bytes);
  std::byte* const piece = next_;
  next_ += bytes;
  left_ -= bytes;
  for (; small_ != nullptr && next_ >= small_ + kHugePage; small_ += kHugePage)
    collapser_->add(small_);
  return piece;
}

void Arena::map(size_t bytes) {
  const bool first = mappings_.empty();
  const size_t usable = round_up(std::max(bytes, first ? kFirstMapping : kMapping), kHugePage);
  mappings_.reserve(mappings_.size() + 1);
  // One huge page more than needed, so that the used part can start at a multiple of its size.
  const size_t size = usable + kHugePage;
  void* const start =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  mappings_.push_back({static_cast<std::byte*>(start), size});
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  next_ = mappings_.back().start + (round_up(address, kHugePage) - address);
  left_ = usable;
  small_ = nullptr;
  if (first) return;
  if (usable > kMapping) {  // one piece that the caller fills at once: nothing to wait for
    madvise(next_, usable, MADV_HUGEPAGE);
    return;
  }
  small_ = next_;
  if (collapser_ == nullptr) collapser_ = std::make_unique<Collapser>();
}

}  // namespace argosy::ps
