#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/mutex.h"
#include "argosy/comm/backend.h"
#include "argosy/comm/meeting_place.h"
#include "argosy/net/endpoint.h"

namespace argosy {

template <class T>
concept Element = std::is_same_v<T, float> || std::is_same_v<T, double> ||
    std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;

class Group;

/// Why a group or one of its sub-groups has failed; what ends one ends its rank's part in all.
/// Thread safety: full.
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

/// A call under way. Calls of a group end in the order in which they were started.
class Work {
 public:
  Work() = default;  // over
  /// Throws what the call threw. Until it returns the call's memory must be left alone.
  void wait();

 private:
  friend class Group;
  Work(Group& group, uint64_t number) : group_(&group), number_(number) {}
  Group* group_ = nullptr;
  uint64_t number_ = 0;
};

/// The ranks of a job, or some of them, and this one's place among them. Every rank makes the same
/// calls in the same order, with the same type and number of elements; sends and receives in the
/// same order within each pair. A call throws ConfigError where ranks make different ones, and
/// IoError naming a rank that has died, left, or not come before the deadline; the group is of no
/// use then, and all later calls throw the same. To destroy it waits for what was started.
/// Thread safety: full, but only the caller can keep the order the same on all ranks.
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
  /// Lets a thread of the group make it. Without overlap it is made by who waits for it, or makes a
  /// later call.
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

  /// Zeroed memory of this rank's own, for as long as the group lives, that ranks of the same host
  /// can see: calls on it need no copies. Every rank asks for as much.
  std::span<std::byte> arena(size_t bytes);
  /// A group of its own of these ranks of this one; every rank of this one calls it. Null on ranks
  /// that are not among them. Its ranks are numbered as the list has them.
  std::unique_ptr<Group> sub_group(std::span<const int> ranks);

 private:
  friend class Work;
  void validate(const GroupCall& call) const;
  GroupCall numbered(GroupCall call);
  void make(Collective work);
  template <class F>
  void attempt(std::unique_lock<std::mutex>& lock, const F& call);
  template <class F>
  void exclusively(const F& call);
  void make_next(std::unique_lock<std::mutex>& lock);
  void make_started(const std::stop_token& stop);
  void settle(std::unique_lock<std::mutex>& lock, uint64_t number);
  void finish(uint64_t number);

  const std::unique_ptr<Backend> backend_;
  const std::shared_ptr<Fate> fate_;  // of this one and its sub-groups
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Collective> queue_;        // a ring
  uint64_t started_ = 0, finished_ = 0;  // calls that went through the queue
  bool busy_ = false;                    // somebody makes a call
  bool overlap_ = true;
  std::exception_ptr failure_;
  uint64_t sequence_ = 0, sub_groups_ = 0;
  std::vector<uint64_t> sent_, received_;  // by peer
  std::jthread thread_;                    // from the first start() on
};

struct GroupOptions {
  /// auto: shm where all ranks are on one host, tcp where each is on a host of its own, else
  /// hierarchical. mpi and nccl are modules, which need not be there.
  std::string backend = "auto";  // auto | shm | tcp | hierarchical | mpi | nccl
  int rank = 0;
  std::vector<Endpoint> ranks = {};          // of all, the same list for everybody
  std::optional<MeetingPlace> meeting = {};  // where `ranks` is empty: they are found there
  std::optional<int> listen_fd = {};  // a socket that listens at ranks[rank]; is closed with it
  std::string device = {};            // of nccl: its number; "": the first
  std::string job = "default";        // those of another one are turned away
  bool deterministic = false;         // sums in the order of ranks, also across hosts
  Env::Duration join_within = std::chrono::minutes(5);  // for all to come
  Env::Duration deadline = std::chrono::minutes(10);    // for each wait of a call
};

/// Meets the others, who may come in any order. Throws IoError naming those who did not come, and
/// ConfigError where ranks disagree about the job or its size, showing both sides.
std::unique_ptr<Group> connect_group(Env& env, const GroupOptions& options);

/// Groups of `ranks` threads of this process.
std::vector<std::unique_ptr<Group>> inproc_groups(
    Env& env, int ranks, Env::Duration deadline = std::chrono::minutes(10));

template <Element T>
constexpr ElementType element_type() {
  if constexpr (std::is_same_v<T, float>) return ElementType::f32;
  if constexpr (std::is_same_v<T, double>) return ElementType::f64;
  if constexpr (std::is_same_v<T, int32_t>) return ElementType::i32;
  return ElementType::i64;
}

/// Calls as values, for Group::run and start. Memory that is not said to be there on a rank may be
/// empty there.
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

/// The same number of elements for each rank; `from` may be `to`.
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

}  // namespace argosy
