// Several ranks on several hosts: what can be added or copied inside a host is, through shared
// memory, so that only the first rank of each host, its leader, talks to other hosts.
#include <algorithm>
#include <numeric>

#include "argosy/base/error.h"
#include "argosy/comm/backends.h"
#include "argosy/comm/reduce.h"

namespace argosy::comm {
namespace {

constexpr uint64_t kLeaders = 1, kFirstHost = 2;  // numbers of the groups inside this one

class Hierarchical final : public Backend {
 public:
  Hierarchical(std::unique_ptr<Peers> peers, Order order)
      : hosts_(ranks_by_host(peers->options().ranks)),
        order_(order),
        rank_(peers->rank()),
        host_(host_of(rank_)),
        even_(is_even()) {
    const auto inside = [&](std::span<const int> ranks, uint64_t id) {
      auto group = peers->sub_group(ranks, id);
      group->set_outer(*peers);
      return group;
    };
    const std::vector<int>& here = hosts_[static_cast<size_t>(host_)];
    local_ = shm_backend(inside(here, kFirstHost + static_cast<uint64_t>(host_)));
    if (is_leader()) {
      std::vector<int> leaders;
      for (const std::vector<int>& host : hosts_) leaders.push_back(host.front());
      leaders_ = tcp_backend(inside(leaders, kLeaders), order);
    }
    peers_ = peers.get();
    flat_ = tcp_backend(std::move(peers), order);
  }

  int rank() const override { return rank_; }
  int size() const override { return flat_->size(); }
  void run(const Collective& work) override;
  std::span<std::byte> arena(const GroupCall& call) override {
    flat_->run({.call = call});
    return local_->arena(call);
  }
  std::unique_ptr<Backend> sub_group(std::span<const int> ranks, uint64_t id) override {
    return make_backend("auto", peers_->sub_group(ranks, id), order_);
  }
  void abandon(const std::string& reason) noexcept override {
    local_->abandon(reason);
    if (leaders_ != nullptr) leaders_->abandon(reason);
    flat_->abandon(reason);
  }

 private:
  bool is_leader() const { return hosts_[static_cast<size_t>(host_)].front() == rank_; }
  int host_of(int rank) const {
    const auto found = std::ranges::find_if(
        hosts_, [&](const auto& host) { return std::ranges::count(host, rank) > 0; });
    return static_cast<int>(found - hosts_.begin());
  }
  /// A rank's index on its host.
  int place_of(int rank) const {
    const std::vector<int>& host = hosts_[static_cast<size_t>(host_of(rank))];
    return static_cast<int>(std::ranges::find(host, rank) - host.begin());
  }
  /// As many ranks on each host, one host after the other: parts of a host lie side by side.
  bool is_even() const {
    int next = 0;
    for (const std::vector<int>& host : hosts_)
      for (const int rank : host)
        if (host.size() != hosts_.front().size() || rank != next++) return false;
    return true;
  }
  size_t ranks_here() const { return hosts_.front().size(); }
  size_t ranks() const { return static_cast<size_t>(size()); }
  std::byte* scratch(size_t bytes) {
    if (scratch_.size() < bytes) scratch_.resize(bytes);
    return scratch_.data();
  }

  void make(const Collective& work);
  void all_reduce(const Collective& work);
  void reduce(const Collective& work);
  void reduce_scatter(const Collective& work);
  void all_gather(const Collective& work);
  void broadcast(const Collective& work);
  void scatter(const Collective& work);
  void barrier(const Collective& work);

  const std::vector<std::vector<int>> hosts_;
  const Order order_;
  const int rank_, host_;
  const bool even_;
  std::unique_ptr<Backend> flat_, local_, leaders_;  // leaders_: of leaders only
  Peers* peers_ = nullptr;                           // flat_'s
  std::vector<std::byte> scratch_;
};

/// The call as a part of another one.
Collective as(CallKind kind, int root, const Collective& work) {
  Collective part = work;
  part.call.step = {.root = root, .kind = kind, .reduce = work.call.reduce};
  if (part.call.step.reduce == Reduce::avg) part.call.step.reduce = Reduce::sum;
  return part;
}

/// The call for `times` as many elements.
Collective for_more(size_t times, Collective part) {
  part.call.count *= times;
  return part;
}

size_t bytes_of(const Collective& work) { return work.call.count * size_of(work.call.type); }

void Hierarchical::run(const Collective& work) {
  peers_->begin(work.call);
  make(work);
  peers_->end();
}

void Hierarchical::make(const Collective& work) {
  const bool sums_in_order = order_ == Order::ranks;
  switch (work.call.kind) {
    case CallKind::all_reduce:
      return sums_in_order ? flat_->run(work) : all_reduce(work);
    case CallKind::reduce:
      return sums_in_order ? flat_->run(work) : reduce(work);
    case CallKind::broadcast:
      return broadcast(work);
    case CallKind::barrier:
      return barrier(work);
    case CallKind::reduce_scatter:
      return sums_in_order || !even_ ? flat_->run(work) : reduce_scatter(work);
    case CallKind::all_gather:
      return even_ ? all_gather(work) : flat_->run(work);
    case CallKind::scatter:
      return even_ ? scatter(work) : flat_->run(work);
    default:  // each pair moves different data
      return flat_->run(work);
  }
}

void Hierarchical::all_reduce(const Collective& work) {
  local_->run(as(CallKind::reduce, 0, work));
  if (is_leader()) {
    leaders_->run(as(CallKind::all_reduce, -1, work));
    if (work.call.reduce == Reduce::avg)
      divide_elements(work.call.type, work.out, work.call.count, static_cast<size_t>(size()));
  }
  local_->run(as(CallKind::broadcast, 0, work));
}

void Hierarchical::reduce(const Collective& work) {
  const int root = work.call.root, root_host = host_of(root);
  const bool is_root = rank_ == root;
  Collective part = work;
  if (!is_root && is_leader()) part.out = scratch(work.call.count * size_of(work.call.type));
  local_->run(as(CallKind::reduce, 0, part));
  part.in = part.out;
  if (is_leader()) {
    leaders_->run(as(CallKind::reduce, root_host, part));
    if (work.call.reduce == Reduce::avg && host_ == root_host)
      divide_elements(work.call.type, part.out, work.call.count, static_cast<size_t>(size()));
  }
  if (place_of(root) == 0) return;  // the leader itself
  if (is_root) local_->run(as(CallKind::receive, 0, work));
  if (is_leader() && host_ == root_host) local_->run(as(CallKind::send, place_of(root), part));
}

void Hierarchical::reduce_scatter(const Collective& work) {
  const size_t of_host = ranks_here() * bytes_of(work);
  Collective all = for_more(ranks(), as(CallKind::reduce, 0, work));
  all.out = is_leader() ? scratch(ranks() * bytes_of(work)) : nullptr;
  local_->run(all);
  Collective mine = as(CallKind::scatter, 0, work);
  if (is_leader()) {
    Collective host = for_more(ranks_here(), as(CallKind::reduce_scatter, -1, work));
    host.in = all.out;
    host.out = all.out + static_cast<size_t>(host_) * of_host;
    leaders_->run(host);
    if (work.call.reduce == Reduce::avg)
      divide_elements(work.call.type, host.out, host.call.count, ranks());
    mine.in = host.out;
  }
  local_->run(mine);
}

/// Each part goes to each other host once.
void Hierarchical::all_gather(const Collective& work) {
  Collective here = as(CallKind::all_gather, -1, work);
  here.out += static_cast<size_t>(host_) * ranks_here() * bytes_of(work);
  local_->run(here);
  Collective hosts = for_more(ranks_here(), as(CallKind::all_gather, -1, work));
  hosts.in = here.out;
  if (is_leader()) leaders_->run(hosts);
  Collective all = for_more(ranks(), as(CallKind::broadcast, 0, work));
  all.in = work.out;
  local_->run(all);
}

void Hierarchical::scatter(const Collective& work) {
  const int root = work.call.root, root_host = host_of(root);
  const size_t all = ranks() * bytes_of(work), of_host = ranks_here() * bytes_of(work);
  Collective hosts = for_more(ranks_here(), as(CallKind::scatter, root_host, work));
  if (is_leader()) hosts.out = scratch(all + of_host) + all;
  if (place_of(root) != 0) {  // its leader needs it first
    Collective whole = for_more(ranks(), work);
    if (rank_ == root) local_->run(as(CallKind::send, 0, whole));
    if (is_leader() && host_ == root_host) {
      hosts.in = whole.out = scratch_.data();
      local_->run(as(CallKind::receive, place_of(root), whole));
    }
  }
  if (is_leader()) leaders_->run(hosts);
  Collective mine = as(CallKind::scatter, 0, work);
  mine.in = hosts.out;
  local_->run(mine);
}

void Hierarchical::broadcast(const Collective& work) {
  const int root = work.call.root, root_host = host_of(root);
  if (host_ == root_host) local_->run(as(CallKind::broadcast, place_of(root), work));
  if (is_leader()) leaders_->run(as(CallKind::broadcast, root_host, work));
  if (host_ != root_host) local_->run(as(CallKind::broadcast, 0, work));
}

void Hierarchical::barrier(const Collective& work) {
  local_->run(work);
  if (is_leader()) leaders_->run(work);
  local_->run(work);
}

}  // namespace

std::unique_ptr<Backend> hierarchical_backend(std::unique_ptr<Peers> peers, Order order) {
  return std::make_unique<Hierarchical>(std::move(peers), order);
}

}  // namespace argosy::comm
