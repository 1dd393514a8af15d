#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/comm/call.h"

namespace argosy::comm {

/// Address of a call's memory for other ranks; its meaning is up to the backend.
using Location = uint64_t;
inline constexpr Location kStaged = ~uint64_t{0};  // in the rank's stage on the board

/// A rank's current call, as the others see it.
struct Posting {
  GroupCall call = {};
  Location in = kStaged;  // its input
};

/// How long a rank waits for others, and how it learns that waiting is pointless.
struct Patience {
  Env& env;
  Env::Duration deadline;
  std::function<void()> look = [] {};  // polled; throws IoError if a rank is lost
  /// "rank 1 (10.0.0.2:6070)"
  std::function<std::string(int)> name = [](int rank) { return "rank " + std::to_string(rank); };
};

/// Shared memory in which ranks post their calls, count their steps and stage data. Ranks may be
/// threads or processes: waits use futexes that work across processes. One object per rank.
class Board {
 public:
  static constexpr size_t kStage = size_t{1} << 22;      // bytes of each half of a rank's stage
  static constexpr size_t kMailStage = size_t{1} << 16;  // likewise, for messages of a pair
  static size_t bytes_for(int ranks);

  /// `memory` has bytes_for(ranks) bytes, page-aligned and zeroed before the first rank uses it.
  Board(std::shared_ptr<std::byte> memory, int rank, int ranks, Patience patience);
  ~Board();  // leaves
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(postings_.size()); }

  /// Begins a call: waits until every rank has posted one; ConfigError if one differs.
  void begin(const Posting& mine);
  const Posting& posted(int rank) const { return postings_[static_cast<size_t>(rank)]; }
  /// Barrier within a call: afterwards everything the others wrote before it is visible.
  void meet();
  /// Claims the next free piece of a rank's part of this call.
  size_t take_piece(int of);

  /// A rank's stage. Its halves alternate: one stays readable until the turn after the next.
  std::byte* stage(int rank, uint64_t turn) const;

  /// One message between two ranks, in as many pieces as needed. `copy` fills a stage or empties
  /// it. With a location other than kStaged it is one piece, and the sender waits until it is read.
  using CopyPiece = std::function<void(size_t begin, std::byte* stage, size_t bytes)>;
  void send(int to, const Posting& mine, size_t bytes, const CopyPiece& copy);
  /// Calls `copy_all` instead if the sender has posted a location.
  void receive(int from, const GroupCall& mine, size_t bytes, const CopyPiece& copy,
               const std::function<void(Location)>& copy_all);

  /// Ends every wait of the others with this reason.
  void abandon(const std::string& reason) noexcept;

 private:
  struct Word;
  struct Slot;
  struct Mail;
  struct Head;

  Head& head() const;
  Slot& slot(int rank) const;
  Mail& mail(int from, int to) const;
  std::byte* mail_stage(int from, int to, uint32_t turn) const;
  void wait_for(Word& word, uint32_t value, int rank);
  void sleep_for(Word& word, uint32_t value, int rank);
  void check_hope(const Word& word, uint32_t value, int rank, Env::Time until);
  void check_not_elsewhere(const Word& word, uint32_t value, int rank) const;

  std::shared_ptr<std::byte> memory_;
  const int rank_;
  const Patience patience_;
  std::vector<Posting> postings_;
  uint32_t step_ = 0;
  uint64_t calls_ = 0;
  GroupCall current_ = {};
};

}  // namespace argosy::comm
