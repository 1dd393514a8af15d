// Ranks of any hosts, over sockets: directly between all pairs, large sums of many ranks in a ring.
#include <algorithm>
#include <cstring>

#include "argosy/comm/backends.h"
#include "argosy/comm/links.h"
#include "argosy/comm/private_arenas.h"
#include "argosy/comm/reduce.h"

namespace argosy::comm {
namespace {

constexpr size_t kSmall = 16 << 10;  // bytes that every rank adds for itself
constexpr size_t kRing = 256 << 10;  // bytes of a slice from which on three or more make a ring
constexpr size_t kPiece = size_t{1} << 20;  // bytes of a large sum that are under way at once

class Tcp final : public Backend {
 public:
  Tcp(std::unique_ptr<Peers> peers, Order order)
      : peers_(std::move(peers)), order_(order), links_(*peers_), inputs_(ranks()) {
    out_.reserve(ranks());
    in_.reserve(ranks());
  }

  int rank() const override { return peers_->rank(); }
  int size() const override { return peers_->size(); }
  void run(const Collective& work) override;
  std::span<std::byte> arena(const GroupCall& call) override {
    run({.call = call});
    return arenas_.add(call.count);
  }
  std::unique_ptr<Backend> sub_group(std::span<const int> list, uint64_t id) override {
    return tcp_backend(peers_->sub_group(list, id), order_);
  }
  void abandon(const std::string& reason) noexcept override { peers_->tell(reason); }

 private:
  size_t ranks() const { return static_cast<size_t>(size()); }
  size_t own() const { return static_cast<size_t>(rank()); }
  int neighbour(int distance) const { return (rank() + distance + size()) % size(); }
  std::byte* scratch(size_t bytes);
  void make(const Collective& work);
  void exchange(const Collective& work);
  template <class F>
  void for_others(const F& f) const;

  void reduce_small(const Collective& work);
  void reduce_slices(const Collective& work, const Slices& slices, std::byte* result);
  void all_reduce_directly(const Collective& work);
  void all_reduce_piece(const Collective& work, size_t count);
  void all_reduce_in_ring(const Collective& work);
  void reduce(const Collective& work);
  void reduce_scatter(const Collective& work);
  void all_gather(const Collective& work);
  void broadcast(const Collective& work);
  void scatter(const Collective& work);
  void all_to_all(const Collective& work);
  void meet(const Collective& work);
  void add_parts(const Collective& work, size_t count, const std::byte* mine, std::byte* result);

  std::unique_ptr<Peers> peers_;
  const Order order_;
  Links links_;
  std::vector<const std::byte*> inputs_;
  std::vector<Links::Outgoing> out_;
  std::vector<Links::Incoming> in_;
  std::vector<std::byte> scratch_;
  PrivateArenas arenas_;
};

size_t bytes_of(const Collective& work) { return work.call.count * size_of(work.call.type); }

std::byte* Tcp::scratch(size_t bytes) {
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  return scratch_.data();
}

/// Makes the transfers collected in out_ and in_.
void Tcp::exchange(const Collective& work) {
  links_.exchange(work.call, out_, in_);
  out_.clear();
  in_.clear();
}

/// f(peer) from the next rank on, so that ranks do not all begin with the same peer.
template <class F>
void Tcp::for_others(const F& f) const {
  for (int distance = 1; distance < size(); ++distance) f(neighbour(distance));
}

void Tcp::run(const Collective& work) {
  peers_->begin(work.call);
  make(work);
  peers_->end();
}

void Tcp::make(const Collective& work) {
  const GroupCall& call = work.call;
  const size_t bytes = bytes_of(work);
  switch (call.step.kind) {
    case CallKind::all_reduce:
      if (bytes <= kSmall) return reduce_small(work);
      if (order_ == Order::any && size() > 2 && bytes / ranks() >= kRing)
        return all_reduce_in_ring(work);
      return all_reduce_directly(work);
    case CallKind::reduce:
      return reduce(work);
    case CallKind::reduce_scatter:
      return reduce_scatter(work);
    case CallKind::all_gather:
      return all_gather(work);
    case CallKind::broadcast:
      return broadcast(work);
    case CallKind::scatter:
      return scatter(work);
    case CallKind::all_to_all:
      return all_to_all(work);
    case CallKind::send:
      out_.push_back({call.step.root, {work.in, bytes}});
      return exchange(work);
    case CallKind::receive:
      in_.push_back({call.step.root, {work.out, bytes}});
      return exchange(work);
    case CallKind::barrier:
    case CallKind::arena:
    case CallKind::sub_group:
      return meet(work);
  }
}

/// Adds what came to scratch, by rank, and our own.
void Tcp::add_parts(const Collective& work, size_t count, const std::byte* mine,
                    std::byte* result) {
  const size_t each = count * size_of(work.call.type);
  for (size_t peer = 0; peer < ranks(); ++peer)
    inputs_[peer] = peer == own() ? mine : scratch_.data() + peer * each;
  reduce_elements(work.call.type, work.call.step.reduce, count, inputs_, std::span(&result, 1),
                  ranks());
}

void Tcp::reduce_small(const Collective& work) {
  const size_t bytes = bytes_of(work);
  std::byte* const parts = scratch(ranks() * bytes);
  for_others([&](int peer) {
    out_.push_back({peer, {work.in, bytes}});
    in_.push_back({peer, {parts + static_cast<size_t>(peer) * bytes, bytes}});
  });
  exchange(work);
  add_parts(work, work.call.count, work.in, work.out);
}

/// Everybody's part of our slice comes here, and is added to `result`.
void Tcp::reduce_slices(const Collective& work, const Slices& slices, std::byte* result) {
  const size_t each = size_of(work.call.type), mine = slices.size(own()) * each;
  std::byte* const parts = scratch(ranks() * mine);
  for_others([&](int peer) {
    const auto q = static_cast<size_t>(peer);
    out_.push_back({peer, {work.in + slices.begin(q) * each, slices.size(q) * each}});
    in_.push_back({peer, {parts + q * mine, mine}});
  });
  exchange(work);
  add_parts(work, slices.size(own()), work.in + slices.begin(own()) * each, result);
}

/// Works in pieces that stay in a cache between their arrival and their addition.
void Tcp::all_reduce_directly(const Collective& work) {
  const size_t most = kPiece / size_of(work.call.type);
  for (size_t begin = 0; begin < work.call.count; begin += most) {
    Collective piece = work;
    piece.in += begin * size_of(work.call.type);
    piece.out += begin * size_of(work.call.type);
    all_reduce_piece(piece, std::min(most, work.call.count - begin));
  }
}

void Tcp::all_reduce_piece(const Collective& work, size_t count) {
  const Slices slices(count, ranks(), work.call.type);
  const size_t each = size_of(work.call.type);
  std::byte* const mine = work.out + slices.begin(own()) * each;
  reduce_slices(work, slices, mine);
  for_others([&](int peer) {
    const auto q = static_cast<size_t>(peer);
    out_.push_back({peer, {mine, slices.size(own()) * each}});
    in_.push_back({peer, {work.out + slices.begin(q) * each, slices.size(q) * each}});
  });
  exchange(work);
}

/// A slice goes round and every rank adds its own to it; then the sums go round.
void Tcp::all_reduce_in_ring(const Collective& work) {
  const Slices slices(work.call.count, ranks(), work.call.type);
  const size_t each = size_of(work.call.type);
  const auto slice = [&](int steps_back) {
    const auto q = static_cast<size_t>((rank() + 2 * size() - steps_back) % size());
    return std::span(work.out + slices.begin(q) * each, slices.size(q) * each);
  };
  const Reduce op = work.call.step.reduce == Reduce::avg ? Reduce::sum : work.call.step.reduce;
  for (int step = 0; step < size() - 1; ++step) {
    const std::span<std::byte> next = slice(step + 1);
    out_.push_back({neighbour(1), slice(step)});
    in_.push_back({neighbour(-1), {scratch(next.size()), next.size()}});
    exchange(work);
    const std::byte* const both[] = {scratch_.data(), next.data()};
    std::byte* const to = next.data();
    reduce_elements(work.call.type, op, next.size() / each, both, std::span(&to, 1), 1);
  }
  const std::span<std::byte> done = slice(size() - 1);
  if (work.call.step.reduce == Reduce::avg)
    divide_elements(work.call.type, done.data(), done.size() / each, ranks());
  for (int step = 0; step < size() - 1; ++step) {
    out_.push_back({neighbour(1), slice(step - 1)});
    in_.push_back({neighbour(-1), slice(step)});
    exchange(work);
  }
}

void Tcp::reduce(const Collective& work) {
  const Slices slices(work.call.count, ranks(), work.call.type);
  const size_t each = size_of(work.call.type), mine = slices.size(own()) * each;
  const bool is_root = rank() == work.call.step.root;
  // After the parts, unless the result is written to its place.
  std::byte* const spare = scratch((ranks() + 1) * mine) + ranks() * mine;
  std::byte* const result = is_root ? work.out + slices.begin(own()) * each : spare;
  reduce_slices(work, slices, result);
  if (!is_root) {
    out_.push_back({work.call.step.root, {result, mine}});
    return exchange(work);
  }
  for_others([&](int peer) {
    const auto q = static_cast<size_t>(peer);
    in_.push_back({peer, {work.out + slices.begin(q) * each, slices.size(q) * each}});
  });
  exchange(work);
}

void Tcp::reduce_scatter(const Collective& work) {
  const size_t bytes = bytes_of(work);
  std::byte* const parts = scratch(ranks() * bytes);
  for_others([&](int peer) {
    const auto q = static_cast<size_t>(peer);
    out_.push_back({peer, {work.in + q * bytes, bytes}});
    in_.push_back({peer, {parts + q * bytes, bytes}});
  });
  exchange(work);
  add_parts(work, work.call.count, work.in + own() * bytes, work.out);
}

void Tcp::all_gather(const Collective& work) {
  const size_t bytes = bytes_of(work);
  for_others([&](int peer) {
    out_.push_back({peer, {work.in, bytes}});
    in_.push_back({peer, {work.out + static_cast<size_t>(peer) * bytes, bytes}});
  });
  exchange(work);
  std::byte* const mine = work.out + own() * bytes;
  if (mine != work.in && bytes > 0) std::memcpy(mine, work.in, bytes);
}

/// Binomial tree: each holder sends to a rank further from the root, at halving distances.
void Tcp::broadcast(const Collective& work) {
  const std::span<std::byte> data(work.out, bytes_of(work));
  const int from_root = (rank() - work.call.step.root + size()) % size();
  int distance = 1;
  while (distance < size() && (from_root & distance) == 0) distance *= 2;
  if (from_root != 0) {
    in_.push_back({neighbour(-distance), data});
    exchange(work);
  }
  for (distance /= 2; distance > 0; distance /= 2)
    if (from_root + distance < size()) out_.push_back({neighbour(distance), data});
  exchange(work);
}

void Tcp::scatter(const Collective& work) {
  const size_t bytes = bytes_of(work);
  if (rank() != work.call.step.root) {
    in_.push_back({work.call.step.root, {work.out, bytes}});
    return exchange(work);
  }
  for_others([&](int peer) {
    out_.push_back({peer, {work.in + static_cast<size_t>(peer) * bytes, bytes}});
  });
  exchange(work);
  if (bytes > 0) std::memcpy(work.out, work.in + own() * bytes, bytes);
}

void Tcp::all_to_all(const Collective& work) {
  const size_t bytes = bytes_of(work);
  const std::byte* from = work.in;
  if (work.in == work.out && bytes > 0)
    from = static_cast<std::byte*>(std::memcpy(scratch(ranks() * bytes), work.in, ranks() * bytes));
  for_others([&](int peer) {
    const size_t part = static_cast<size_t>(peer) * bytes;
    out_.push_back({peer, {from + part, bytes}});
    in_.push_back({peer, {work.out + part, bytes}});
  });
  exchange(work);
  if (bytes > 0) std::memcpy(work.out + own() * bytes, from + own() * bytes, bytes);
}

/// After the round of distance d every rank has heard of 2d ranks.
void Tcp::meet(const Collective& work) {
  for (int distance = 1; distance < size(); distance *= 2) {
    out_.push_back({neighbour(distance), {}});
    in_.push_back({neighbour(-distance), {}});
    exchange(work);
  }
}

}  // namespace

std::unique_ptr<Backend> tcp_backend(std::unique_ptr<Peers> peers, Order order) {
  return std::make_unique<Tcp>(std::move(peers), order);
}

}  // namespace argosy::comm
