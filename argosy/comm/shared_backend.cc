#include "argosy/comm/shared_backend.h"

#include <algorithm>
#include <cstring>

#include "argosy/base/error.h"

namespace argosy::comm {
namespace {

constexpr size_t kSmall = 8192;   // bytes that every rank adds for itself, to meet once only
constexpr size_t kPiece = 32768;  // bytes that a rank adds before it asks for more
constexpr size_t kCacheLine = 64;

void copy_bytes(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

size_t bytes_of(const Collective& work) { return work.call.count * size_of(work.call.type); }

}  // namespace

SharedBackend::SharedBackend(std::shared_ptr<std::byte> memory, int rank, int ranks,
                             Patience patience)
    : board_(std::move(memory), rank, ranks, std::move(patience)),
      inputs_(static_cast<size_t>(ranks)),
      outputs_(static_cast<size_t>(ranks)) {}

void SharedBackend::run(const Collective& work) {
  switch (work.call.step.kind) {
    case CallKind::all_reduce:
      return all_reduce(work);
    case CallKind::reduce:
      return reduce_large(work);
    case CallKind::reduce_scatter:
      return reduce_scatter(work);
    case CallKind::all_gather:
      return all_gather(work);
    case CallKind::broadcast:
      return from_root(work, 1);
    case CallKind::scatter:
      return from_root(work, static_cast<size_t>(size()));
    case CallKind::all_to_all:
      return all_to_all(work);
    case CallKind::send:
      return send(work);
    case CallKind::receive:
      return receive(work);
    case CallKind::barrier:
    case CallKind::arena:
    case CallKind::sub_group:
      return board_.begin({.call = work.call});
  }
}

/// each(piece) for pieces of which `parts` fit a stage; once if there is no data.
template <class F>
void SharedBackend::in_pieces(const Collective& work, size_t parts, const F& each) {
  const size_t line = kCacheLine / size_of(work.call.type);
  const size_t most = Board::kStage / size_of(work.call.type) / parts / line * line;
  check<ConfigError>(most > 0, "too many ranks for one board: ", size());
  for (size_t begin = 0; begin == 0 || begin < work.call.count; begin += most)
    each(Piece{begin, std::min(most, work.call.count - begin), turn_++});
}

void SharedBackend::begin_or_meet(const Collective& work, const Piece& piece, Location in) {
  if (piece.begin > 0) return board_.meet();
  board_.begin({.call = work.call, .in = in});
}

/// Others may read the memory that these ranks posted until all ranks have come here.
void SharedBackend::close_if_seen(int first, int last) {
  for (int peer = first; peer <= last; ++peer)
    if (board_.posted(peer).in != kStaged) return board_.meet();
}

std::byte* SharedBackend::staged(int rank, size_t part, const Piece& piece,
                                 ElementType type) const {
  return board_.stage(rank, piece.turn) + part * piece.count * size_of(type);
}

/// Part of a rank's input; parts in its own memory are `stride` elements apart.
const std::byte* SharedBackend::source(const Collective& work, int from, size_t part, size_t stride,
                                       const Piece& piece) const {
  const size_t offset = (part * stride + piece.begin) * size_of(work.call.type);
  if (from == rank()) return work.in + offset;
  const Location at = board_.posted(from).in;
  if (at != kStaged) return seen(from, at) + offset;
  return staged(from, part, piece, work.call.type);
}

void SharedBackend::stage_part(const Collective& work, size_t part, size_t stride,
                               const Piece& piece) const {
  const size_t each = size_of(work.call.type);
  copy_bytes(staged(rank(), part, piece, work.call.type),
             work.in + (part * stride + piece.begin) * each, piece.count * each);
}

/// All but our own slice, which no other rank reads; the result goes there.
void SharedBackend::stage_slices(const Collective& work, const Slices& slices,
                                 const Piece& piece) const {
  const size_t each = size_of(work.call.type);
  const auto own = static_cast<size_t>(rank());
  std::byte* const to = board_.stage(rank(), piece.turn);
  const std::byte* const from = work.in + piece.begin * each;
  copy_bytes(to, from, slices.begin(own) * each);
  copy_bytes(to + slices.end(own) * each, from + slices.end(own) * each,
             (piece.count - slices.end(own)) * each);
}

void SharedBackend::all_reduce(const Collective& work) {
  return bytes_of(work) <= kSmall ? reduce_small(work) : reduce_large(work);
}

void SharedBackend::reduce_small(const Collective& work) {
  const uint64_t turn = turn_++;
  copy_bytes(board_.stage(rank(), turn), work.in, bytes_of(work));
  board_.begin({.call = work.call});
  for (int peer = 0; peer < size(); ++peer)
    inputs_[static_cast<size_t>(peer)] = board_.stage(peer, turn);
  reduce_elements(work.call.type, work.call.step.reduce, work.call.count, inputs_,
                  std::span(&work.out, 1), inputs_.size());
}

void SharedBackend::reduce_large(const Collective& work) {
  const bool to_all = work.call.step.kind == CallKind::all_reduce;
  const bool wanted = to_all || work.call.step.root == rank();
  const Location at = location_of(work.in);
  bool in_place = false;
  in_pieces(work, 1, [&](const Piece& piece) {
    if (in_place) return;
    const Slices slices(piece.count, inputs_.size(), work.call.type);
    if (at == kStaged) stage_slices(work, slices, piece);
    begin_or_meet(work, piece, at);
    in_place = to_all && all_seen();
    if (in_place) return reduce_in_place(work);
    reduce_slice(work, slices, piece, wanted);
    board_.meet();
    if (wanted) collect_slices(work, slices, piece);
  });
}

bool SharedBackend::all_seen() const {
  for (int peer = 0; peer < size(); ++peer)
    if (board_.posted(peer).in == kStaged) return false;
  return true;
}

/// Each rank adds pieces of its slice and writes them where all ranks want them, then helps with
/// pieces left of the others' slices, so that a rank that comes or wakes up late delays nobody.
void SharedBackend::reduce_in_place(const Collective& work) {
  const Slices slices(work.call.count, inputs_.size(), work.call.type);
  for (int turn = 0; turn < size(); ++turn) {
    const int owner = (rank() + turn) % size();
    const auto part = static_cast<size_t>(owner);
    const size_t most = kPiece / size_of(work.call.type);
    const size_t pieces = (slices.size(part) + most - 1) / most;
    for (size_t piece = board_.take_piece(owner); piece < pieces;
         piece = board_.take_piece(owner)) {
      const size_t begin = slices.begin(part) + piece * most;
      reduce_piece(work, begin, std::min(most, slices.end(part) - begin));
    }
  }
  board_.meet();
}

void SharedBackend::reduce_piece(const Collective& work, size_t begin, size_t count) {
  const size_t offset = begin * size_of(work.call.type);
  for (int peer = 0; peer < size(); ++peer) {
    std::byte* const all = peer == rank() ? work.out : seen(peer, board_.posted(peer).in);
    outputs_[static_cast<size_t>(peer)] = all + offset;
    inputs_[static_cast<size_t>(peer)] = all + offset;
  }
  reduce_elements(work.call.type, work.call.step.reduce, count, inputs_, outputs_, inputs_.size());
}

/// Writes to our stage, and to our own memory if the result is wanted.
void SharedBackend::reduce_slice(const Collective& work, const Slices& slices, const Piece& piece,
                                 bool wanted) {
  const auto own = static_cast<size_t>(rank());
  const size_t each = size_of(work.call.type), offset = slices.begin(own) * each;
  for (int peer = 0; peer < size(); ++peer)
    inputs_[static_cast<size_t>(peer)] = source(work, peer, 0, 0, piece) + offset;
  outputs_[0] = staged(rank(), 0, piece, work.call.type) + offset;
  const size_t outputs = wanted && size() > 1 ? 2 : 1;
  if (wanted) outputs_[outputs - 1] = work.out + piece.begin * each + offset;
  reduce_elements(work.call.type, work.call.step.reduce, slices.size(own), inputs_,
                  std::span(outputs_).first(outputs), inputs_.size());
}

void SharedBackend::collect_slices(const Collective& work, const Slices& slices,
                                   const Piece& piece) const {
  const size_t each = size_of(work.call.type);
  for (int peer = 0; peer < size(); ++peer) {
    const auto part = static_cast<size_t>(peer);
    if (peer != rank())
      copy_bytes(work.out + (piece.begin + slices.begin(part)) * each,
                 staged(peer, 0, piece, work.call.type) + slices.begin(part) * each,
                 slices.size(part) * each);
  }
}

void SharedBackend::reduce_scatter(const Collective& work) {
  const Location at = location_of(work.in);
  const auto own = static_cast<size_t>(rank());
  const size_t count = work.call.count;
  in_pieces(work, inputs_.size(), [&](const Piece& piece) {
    for (size_t part = 0; part < inputs_.size() && at == kStaged; ++part)
      if (part != own) stage_part(work, part, count, piece);
    begin_or_meet(work, piece, at);
    for (int peer = 0; peer < size(); ++peer)
      inputs_[static_cast<size_t>(peer)] = source(work, peer, own, count, piece);
    outputs_[0] = work.out + piece.begin * size_of(work.call.type);
    reduce_elements(work.call.type, work.call.step.reduce, piece.count, inputs_,
                    std::span(outputs_).first(1), inputs_.size());
  });
  close_if_seen(0, size() - 1);
}

void SharedBackend::all_gather(const Collective& work) {
  const Location at = location_of(work.in);
  const size_t each = size_of(work.call.type);
  in_pieces(work, 1, [&](const Piece& piece) {
    if (at == kStaged) stage_part(work, 0, 0, piece);
    begin_or_meet(work, piece, at);
    for (int peer = 0; peer < size(); ++peer)
      copy_bytes(work.out + (static_cast<size_t>(peer) * work.call.count + piece.begin) * each,
                 source(work, peer, 0, 0, piece), piece.count * each);
  });
  close_if_seen(0, size() - 1);
}

void SharedBackend::from_root(const Collective& work, size_t parts) {
  const int root = work.call.step.root;
  const Location at = rank() == root ? location_of(work.in) : kStaged;
  const size_t each = size_of(work.call.type), own = parts > 1 ? static_cast<size_t>(rank()) : 0;
  in_pieces(work, parts, [&](const Piece& piece) {
    for (size_t part = 0; part < parts && rank() == root && at == kStaged; ++part)
      stage_part(work, part, work.call.count, piece);
    begin_or_meet(work, piece, at);
    copy_bytes(work.out + piece.begin * each, source(work, root, own, work.call.count, piece),
               piece.count * each);
  });
  close_if_seen(root, root);
}

void SharedBackend::all_to_all(const Collective& work) {
  const Location at = work.in == work.out ? kStaged : location_of(work.in);
  const size_t each = size_of(work.call.type), count = work.call.count;
  const auto own = static_cast<size_t>(rank());
  in_pieces(work, inputs_.size(), [&](const Piece& piece) {
    for (size_t part = 0; part < inputs_.size() && at == kStaged; ++part)
      if (part != own) stage_part(work, part, count, piece);
    begin_or_meet(work, piece, at);
    for (int peer = 0; peer < size(); ++peer)
      copy_bytes(work.out + (static_cast<size_t>(peer) * count + piece.begin) * each,
                 source(work, peer, own, count, piece), piece.count * each);
  });
  close_if_seen(0, size() - 1);
}

void SharedBackend::send(const Collective& work) {
  const bool small = bytes_of(work) <= Board::kMailStage;
  const Posting mine{.call = work.call, .in = small ? kStaged : location_of(work.in)};
  board_.send(work.call.step.root, mine, bytes_of(work),
              [&](size_t begin, std::byte* stage, size_t bytes) {
                copy_bytes(stage, work.in + begin, bytes);
              });
}

void SharedBackend::receive(const Collective& work) {
  const int from = work.call.step.root;
  board_.receive(
      from, work.call, bytes_of(work),
      [&](size_t begin, std::byte* stage, size_t bytes) {
        copy_bytes(work.out + begin, stage, bytes);
      },
      [&](Location at) { copy_bytes(work.out, seen(from, at), bytes_of(work)); });
}

}  // namespace argosy::comm
