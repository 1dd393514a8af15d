#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "argosy/comm/backend.h"
#include "argosy/comm/board.h"
#include "argosy/comm/reduce.h"

namespace argosy::comm {

/// The calls of ranks that share a board. Memory that the other ranks can see is read and written
/// in place; other memory is staged. Sums are always in rank order; each rank computes one slice.
class SharedBackend : public Backend {
 public:
  int rank() const override { return board_.rank(); }
  int size() const override { return board_.size(); }
  bool on_one_host() const override { return true; }
  void run(const Collective& work) override;
  void abandon(const std::string& reason) noexcept override { board_.abandon(reason); }

 protected:
  SharedBackend(std::shared_ptr<std::byte> memory, int rank, int ranks, Patience patience);

  /// Address of our memory for other ranks; kStaged if they cannot see it.
  virtual Location location_of(const std::byte* memory) const = 0;
  /// Our address of memory that a rank has posted.
  virtual std::byte* seen(int rank, Location at) const = 0;

  Board& board() { return board_; }

 private:
  /// One piece of a call that fits the stages.
  struct Piece {
    size_t begin, count;  // elements of each part
    uint64_t turn;
  };
  template <class F>
  void in_pieces(const Collective& work, size_t parts, const F& each);
  void begin_or_meet(const Collective& work, const Piece& piece, Location in);
  void close_if_seen(int first, int last);
  const std::byte* source(const Collective& work, int from, size_t part, size_t stride,
                          const Piece& piece) const;
  std::byte* staged(int rank, size_t part, const Piece& piece, ElementType type) const;
  void stage_part(const Collective& work, size_t part, size_t stride, const Piece& piece) const;
  void stage_slices(const Collective& work, const Slices& slices, const Piece& piece) const;
  bool all_seen() const;
  void reduce_slice(const Collective& work, const Slices& slices, const Piece& piece, bool wanted);
  void collect_slices(const Collective& work, const Slices& slices, const Piece& piece) const;

  void all_reduce(const Collective& work);
  void reduce_small(const Collective& work);
  void reduce_in_place(const Collective& work);
  void reduce_piece(const Collective& work, size_t begin, size_t count);
  void reduce_large(const Collective& work);
  void reduce_scatter(const Collective& work);
  void all_gather(const Collective& work);
  void from_root(const Collective& work, size_t parts);
  void all_to_all(const Collective& work);
  void send(const Collective& work);
  void receive(const Collective& work);

  Board board_;
  uint64_t turn_ = 0;  // of the stages; the same on all ranks
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
};

}  // namespace argosy::comm
