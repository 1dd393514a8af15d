#include "argosy/comm/board.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "argosy/base/error.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;

constexpr int kSpins = 300;   // some microseconds
constexpr auto kLook = 50ms;  // how often a wait looks for lost ranks
constexpr size_t kPage = 4096, kReason = 1024;

/// Shared futex: identified by physical address, so each process may map the word elsewhere.
long futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  return ::syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

bool reached(uint32_t now, uint32_t value) { return static_cast<int32_t>(now - value) >= 0; }

size_t rounded(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

/// A counter that others sleep on.
struct alignas(64) Board::Word {
  std::atomic<uint32_t> value = 0, sleepers = 0;

  void set(uint32_t to) {
    value.store(to);
    if (sleepers.load() > 0) wake();
  }
  void wake() { futex(value, FUTEX_WAKE, INT32_MAX, nullptr); }
};

struct Board::Slot {
  Word step;
  std::atomic<bool> left = false;
  alignas(64) std::atomic<uint32_t> taken[2];  // pieces; calls take turns
  alignas(64) Posting postings[2];  // calls take turns: the others may still read the last one
};

struct Board::Mail {
  Word posted, taken;   // pieces
  Posting postings[2];  // messages take turns by their first pieces, as one may still be there
};

struct Board::Head {
  enum State : uint32_t { fine, writing, abandoned };
  std::atomic<uint32_t> state = fine;
  char reason[kReason] = {};
};

Board::Head& Board::head() const { return *reinterpret_cast<Head*>(memory_.get()); }

Board::Slot& Board::slot(int rank) const {
  return reinterpret_cast<Slot*>(memory_.get() + kPage)[rank];
}

Board::Mail& Board::mail(int from, int to) const {
  std::byte* const mails =
      memory_.get() + kPage + rounded(static_cast<size_t>(size()) * sizeof(Slot));
  return reinterpret_cast<Mail*>(mails)[from * size() + to];
}

namespace {

constexpr size_t kStagesOfRank = 2 * Board::kStage, kStagesOfPair = 2 * Board::kMailStage;

}  // namespace

size_t Board::bytes_for(int ranks) {
  const auto n = static_cast<size_t>(ranks);
  return kPage + rounded(n * sizeof(Slot)) + rounded(n * n * sizeof(Mail)) + n * n * kStagesOfPair +
         n * kStagesOfRank;
}

std::byte* Board::stage(int rank, uint64_t turn) const {
  std::byte* const end = memory_.get() + bytes_for(size());
  return end - static_cast<size_t>(size() - rank) * kStagesOfRank + (turn % 2) * kStage;
}

std::byte* Board::mail_stage(int from, int to, uint32_t turn) const {
  const auto n = static_cast<size_t>(size());
  const size_t pair = static_cast<size_t>(from) * n + static_cast<size_t>(to);
  return stage(0, 0) - (n * n - pair) * kStagesOfPair + (turn % 2) * kMailStage;
}

Board::Board(std::shared_ptr<std::byte> memory, int rank, int ranks, Patience patience)
    : memory_(std::move(memory)),
      rank_(rank),
      patience_(std::move(patience)),
      postings_(static_cast<size_t>(ranks)) {
  static_assert(sizeof(Head) <= kPage);
}

Board::~Board() {
  Slot& own = slot(rank_);
  own.left = true;
  own.step.wake();
  for (int peer = 0; peer < size(); ++peer) {
    mail(rank_, peer).posted.wake();
    mail(peer, rank_).taken.wake();
  }
}

void Board::begin(const Posting& mine) {
  current_ = mine.call;
  const size_t turn = calls_++ % 2;
  slot(rank_).postings[turn] = mine;
  meet();
  slot(rank_).taken[1 - turn] = 0;  // all are through with the last call, and none is in the next
  for (int peer = 0; peer < size(); ++peer) {
    Posting& theirs = postings_[static_cast<size_t>(peer)];
    theirs = slot(peer).postings[turn];
    check_same_call(mine.call, patience_.name(rank_), theirs.call, patience_.name(peer));
  }
}

void Board::meet() {
  slot(rank_).step.set(++step_);
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank_) wait_for(slot(peer).step, step_, peer);
}

size_t Board::take_piece(int of) {
  return slot(of).taken[(calls_ - 1) % 2].fetch_add(1, std::memory_order_relaxed);
}

void Board::wait_for(Word& word, uint32_t value, int rank) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (reached(word.value.load(std::memory_order_acquire), value)) return;
    _mm_pause();
  }
  sleep_for(word, value, rank);
}

void Board::sleep_for(Word& word, uint32_t value, int rank) {
  struct Sleeper {
    explicit Sleeper(Word& on) : word(on) { ++word.sleepers; }
    ~Sleeper() { --word.sleepers; }
    Word& word;
  };
  const Sleeper sleeper(word);
  const timespec look{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(kLook).count()};
  const Env::Time until = patience_.env.now() + patience_.deadline;
  while (true) {
    const uint32_t now = word.value.load();
    if (reached(now, value)) return;
    check_hope(word, value, rank, until);
    futex(word.value, FUTEX_WAIT, now, &look);
  }
}

void Board::check_hope(const Word& word, uint32_t value, int rank, Env::Time until) {
  const bool left = slot(rank).left;  // before the reason is looked at, which came first
  const uint32_t state = head().state.load();
  if (state == Head::writing) return;
  if (state == Head::abandoned) fail<IoError>(head().reason);
  // Work that a rank did before it left counts.
  if (left && !reached(word.value.load(), value))
    fail<IoError>(patience_.name(rank), " has left the group; ", patience_.name(rank_),
                  " waits for it in ", current_.text());
  check_not_elsewhere(word, value, rank);
  patience_.look();
  check<IoError>(patience_.env.now() < until, patience_.name(rank), " has not come to ",
                 current_.text(), " within ",
                 std::chrono::duration<double>(patience_.deadline).count(), " s");
}

void Board::check_not_elsewhere(const Word& word, uint32_t value, int rank) const {
  if (!current_.is_message()) return;
  const Slot& other = slot(rank);
  const bool ahead = reached(other.step.value.load(), step_ + 1);
  if (!ahead || reached(word.value.load(), value)) return;
  const Posting &even = other.postings[0], &odd = other.postings[1];
  const GroupCall& theirs = even.call.sequence > odd.call.sequence ? even.call : odd.call;
  check_same_call(current_, patience_.name(rank_), theirs, patience_.name(rank));
}

void Board::abandon(const std::string& reason) noexcept {
  Head& shared = head();
  uint32_t expected = Head::fine;
  if (!shared.state.compare_exchange_strong(expected, Head::writing)) return;
  const size_t length = std::min(reason.size(), kReason - 1);
  std::memcpy(shared.reason, reason.data(), length);
  shared.state = Head::abandoned;
  for (int a = 0; a < size(); ++a) {
    slot(a).step.wake();
    for (int b = 0; b < size(); ++b) {
      mail(a, b).posted.wake();
      mail(a, b).taken.wake();
    }
  }
}

void Board::send(int to, const Posting& mine, size_t bytes, const CopyPiece& copy) {
  current_ = mine.call;
  Mail& box = mail(rank_, to);
  uint32_t posted = box.posted.value.load();
  wait_for(box.taken, posted - 1, to);
  box.postings[posted % 2] = mine;
  const size_t most = mine.in == kStaged ? kMailStage : std::max<size_t>(bytes, 1);
  for (size_t begin = 0; begin == 0 || begin < bytes; begin += most) {
    wait_for(box.taken, posted - 1, to);  // one piece may still be there
    if (mine.in == kStaged)
      copy(begin, mail_stage(rank_, to, posted), std::min(most, bytes - begin));
    box.posted.set(++posted);
  }
  if (mine.in != kStaged) wait_for(box.taken, posted, to);
}

void Board::receive(int from, const GroupCall& mine, size_t bytes, const CopyPiece& copy,
                    const std::function<void(Location)>& copy_all) {
  current_ = mine;
  Mail& box = mail(from, rank_);
  uint32_t taken = box.taken.value.load();
  wait_for(box.posted, taken + 1, from);
  const Posting& theirs = box.postings[taken % 2];
  check_same_call(mine, patience_.name(rank_), theirs.call, patience_.name(from));
  if (theirs.in != kStaged) {
    copy_all(theirs.in);
    return box.taken.set(taken + 1);
  }
  for (size_t begin = 0; begin == 0 || begin < bytes; begin += kMailStage) {
    wait_for(box.posted, taken + 1, from);
    copy(begin, mail_stage(from, rank_, taken), std::min(kMailStage, bytes - begin));
    box.taken.set(++taken);
  }
}

}  // namespace argosy::comm
