#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/mutex.h"
#include "argosy/base/thread.h"
#include "argosy/comm/backend.h"
#include "argosy/comm/meeting_place.h"
#include "argosy/net/endpoint.h"
#include "argosy/net/tolerance.h"

namespace argosy::comm {

template <class T>
concept Element = std::is_same_v<T, float> || std::is_same_v<T, double> ||
    std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;

class Group;

/// Why a group or one of its sub-groups has failed. A failure of one fails this rank's part in all
/// of them. Thread safety: full.
class Fate {
 public:
  void seal(const std::string& reason) {
    const Lock lock(mutex_);
    if (reason_.empty()) reason_ = reason;
  }
  std::string reason() const {
    const Lock lock(mutex_);
    return reason_;
  }

 private:
  mutable Mutex mutex_;
  std::string reason_ GUARDED_BY(mutex_);
};

/// A started call. Calls of a group complete in the order they were started.
class Work {
 public:
  Work() = default;  // complete
  /// Rethrows the call's exception. Do not touch the call's memory before it returns.
  void wait();

 private:
  friend class Group;
  Work(Group& group, uint64_t number) : group_(&group), number_(number) {}
  Group* group_ = nullptr;
  uint64_t number_ = 0;
};

/// The ranks of a job, or some of them, as seen by this one. Every rank must make the same calls in
/// the same order, with the same type and number of elements; sends and receives in the same order
/// within each pair. A call throws ConfigError if ranks make different ones, and IoError naming a
/// rank that has died, left, or missed the deadline; after that every call throws the same. The
/// destructor waits for started calls. Thread safety: full, but keeping the order of calls the same
/// on all ranks is up to the caller.
class Group {
 public:
  explicit Group(std::unique_ptr<Backend> backend,
                 std::shared_ptr<Fate> fate = std::make_shared<Fate>());
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return backend_->rank(); }
  int size() const { return backend_->size(); }
  bool on_one_host() const { return backend_->on_one_host(); }

  /// Makes a call and waits for it. Calls are made by the functions below.
  void run(const Collective& work);
  /// Queues a call for the group's thread. Without overlap the thread that waits for it, or makes a
  /// later call, runs it.
  Work start(const Collective& work);
  void set_overlap(bool on);

  template <Element T>
  void all_reduce(std::span<T> data, Reduce reduce = Reduce::sum);
  template <Element T>
  void reduce(std::span<const T> mine, std::span<T> result, int root, Reduce reduce = Reduce::sum);
  template <Element T>
  void reduce_scatter(std::span<const T> all, std::span<T> mine, Reduce reduce = Reduce::sum);
  template <Element T>
  void all_gather(std::span<const T> mine, std::span<T> all);
  template <Element T>
  void broadcast(std::span<T> data, int root);
  template <Element T>
  void scatter(std::span<const T> all, std::span<T> mine, int root);
  template <Element T>
  void all_to_all(std::span<const T> to, std::span<T> from);
  template <Element T>
  void send(std::span<const T> data, int to);
  template <Element T>
  void receive(std::span<T> data, int from);
  void barrier();

  /// Zeroed memory of this rank that other ranks of the host can map: calls on it need no copies.
  /// It lives as long as the group. Every rank asks for the same size.
  std::span<std::byte> arena(size_t bytes);
  /// A new group of some ranks, numbered as listed. Every rank of this group calls it; those not
  /// listed get null.
  std::unique_ptr<Group> sub_group(std::span<const int> ranks);

 private:
  friend class Work;
  void validate(const GroupCall& call) const;
  GroupCall numbered(GroupCall call);
  void make(Collective work);
  template <class F>
  void attempt(const F& call) REQUIRES(mutex_);
  template <class F>
  void exclusively(const F& call);
  void make_next() REQUIRES(mutex_);
  void make_started(const std::stop_token& stop);
  void settle(uint64_t number) REQUIRES(mutex_);
  void finish(uint64_t number);

  const std::unique_ptr<Backend> backend_;
  const std::shared_ptr<Fate> fate_;  // shared with its sub-groups
  Mutex mutex_;
  CondVar changed_;
  std::vector<Collective> queue_ GUARDED_BY(mutex_);  // a ring
  // Calls that went through the queue:
  uint64_t started_ GUARDED_BY(mutex_) = 0, finished_ GUARDED_BY(mutex_) = 0;
  bool busy_ GUARDED_BY(mutex_) = false;  // a call is in progress
  bool overlap_ GUARDED_BY(mutex_) = true;
  std::exception_ptr failure_ GUARDED_BY(mutex_);
  // Owned by the thread that set busy_:
  uint64_t sequence_ = 0, sub_groups_ = 0;
  std::vector<uint64_t> sent_, received_;  // by peer
  Thread thread_;                          // from the first start() on
};

struct GroupOptions {
  /// auto: shm if all ranks are on one host, tcp if no two are, else hierarchical. mpi and nccl are
  /// optional modules.
  std::string backend = "auto";  // auto | shm | tcp | hierarchical | mpi | nccl
  int rank = 0;
  std::vector<Endpoint> ranks = {};                 // the same list on every rank
  std::optional<MeetingPlace> meeting = {};         // if `ranks` is empty, to find them
  std::optional<int> listen_fd = {};                // listens at ranks[rank]; the group closes it
  std::string device = {};                          // for nccl, a number; "": the first
  std::string job = "default";                      // ranks of other jobs are refused
  bool deterministic = false;                       // sums in rank order, across hosts too
  Env::Duration join_within = Tolerance().give_up;  // for all to come
  Env::Duration deadline = Tolerance().give_up;     // for each wait of a call
  Env::Duration patience = Tolerance().patience;    // longer waits are logged
  Env::Duration quiet = Tolerance().quiet;          // a machine silent for so long is dead
  std::function<void(const std::string&)> log = {};
};

/// Meets the other ranks, in any order. Throws IoError naming those that did not come, and
/// ConfigError with both sides if ranks disagree about the job or its size.
std::unique_ptr<Group> connect_group(Env& env, const GroupOptions& options);

/// One group object for each of `ranks` threads of this process.
std::vector<std::unique_ptr<Group>> inproc_groups(Env& env, int ranks,
                                                  Env::Duration deadline = Tolerance().give_up);

template <Element T>
constexpr ElementType element_type() {
  if constexpr (std::is_same_v<T, float>) return ElementType::f32;
  if constexpr (std::is_same_v<T, double>) return ElementType::f64;
  if constexpr (std::is_same_v<T, int32_t>) return ElementType::i32;
  return ElementType::i64;
}

/// Calls as values, for Group::run and start. A span that the comment limits to some ranks may be
/// empty on the others.
namespace calls {

template <Element T>
Collective make(CallKind kind, std::span<const T> in, std::span<T> out, size_t count, int root = -1,
                Reduce reduce = Reduce::sum) {
  return {.call = {.count = count,
                   .root = root,
                   .kind = kind,
                   .type = element_type<T>(),
                   .reduce = reduce},
          .in = std::as_bytes(in).data(),
          .out = std::as_writable_bytes(out).data()};
}

/// `part` elements on each of `ranks`.
inline void check_parts(CallKind kind, size_t all, size_t part, int ranks) {
  check<ConfigError>(all == part * static_cast<size_t>(ranks), name(kind), ": ", all,
                     " elements, expected ", part, " for each of ", ranks, " ranks");
}

template <Element T>
Collective all_reduce(std::span<T> data, Reduce reduce = Reduce::sum) {
  return make<T>(CallKind::all_reduce, data, data, data.size(), -1, reduce);
}

/// result: on the root; may be `mine`.
template <Element T>
Collective reduce(const Group& group, std::span<const T> mine, std::span<T> result, int root,
                  Reduce op = Reduce::sum) {
  if (group.rank() == root) check_parts(CallKind::reduce, result.size(), mine.size(), 1);
  return make<T>(CallKind::reduce, mine, result, mine.size(), root, op);
}

template <Element T>
Collective reduce_scatter(const Group& group, std::span<const T> all, std::span<T> mine,
                          Reduce op = Reduce::sum) {
  check_parts(CallKind::reduce_scatter, all.size(), mine.size(), group.size());
  return make<T>(CallKind::reduce_scatter, all, mine, mine.size(), -1, op);
}

/// mine: may be this rank's part of `all`.
template <Element T>
Collective all_gather(const Group& group, std::span<const T> mine, std::span<T> all) {
  check_parts(CallKind::all_gather, all.size(), mine.size(), group.size());
  return make<T>(CallKind::all_gather, mine, all, mine.size());
}

template <Element T>
Collective broadcast(std::span<T> data, int root) {
  return make<T>(CallKind::broadcast, data, data, data.size(), root);
}

/// all: on the root.
template <Element T>
Collective scatter(const Group& group, std::span<const T> all, std::span<T> mine, int root) {
  if (group.rank() == root) check_parts(CallKind::scatter, all.size(), mine.size(), group.size());
  return make<T>(CallKind::scatter, all, mine, mine.size(), root);
}

/// Equal parts for all ranks; `from` may be `to`.
template <Element T>
Collective all_to_all(const Group& group, std::span<const T> to, std::span<T> from) {
  const size_t each = to.size() / static_cast<size_t>(group.size());
  check_parts(CallKind::all_to_all, to.size(), each, group.size());
  check_parts(CallKind::all_to_all, from.size(), each, group.size());
  return make<T>(CallKind::all_to_all, to, from, each);
}

template <Element T>
Collective send(std::span<const T> data, int to) {
  return make<T>(CallKind::send, data, {}, data.size(), to);
}

template <Element T>
Collective receive(std::span<T> data, int from) {
  return make<T>(CallKind::receive, {}, data, data.size(), from);
}

}  // namespace calls

template <Element T>
void Group::all_reduce(std::span<T> data, Reduce reduce) {
  run(calls::all_reduce(data, reduce));
}
template <Element T>
void Group::reduce(std::span<const T> mine, std::span<T> result, int root, Reduce reduce) {
  run(calls::reduce(*this, mine, result, root, reduce));
}
template <Element T>
void Group::reduce_scatter(std::span<const T> all, std::span<T> mine, Reduce reduce) {
  run(calls::reduce_scatter(*this, all, mine, reduce));
}
template <Element T>
void Group::all_gather(std::span<const T> mine, std::span<T> all) {
  run(calls::all_gather(*this, mine, all));
}
template <Element T>
void Group::broadcast(std::span<T> data, int root) {
  run(calls::broadcast(data, root));
}
template <Element T>
void Group::scatter(std::span<const T> all, std::span<T> mine, int root) {
  run(calls::scatter(*this, all, mine, root));
}
template <Element T>
void Group::all_to_all(std::span<const T> to, std::span<T> from) {
  run(calls::all_to_all(*this, to, from));
}
template <Element T>
void Group::send(std::span<const T> data, int to) {
  run(calls::send(data, to));
}
template <Element T>
void Group::receive(std::span<T> data, int from) {
  run(calls::receive(data, from));
}

}  // namespace argosy::comm
