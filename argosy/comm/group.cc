#include "argosy/comm/group.h"

#include <algorithm>
#include <utility>

#include "argosy/base/hash.h"
#include "argosy/base/rng.h"

namespace argosy::comm {
namespace {

constexpr size_t kFirstQueue = 64;

bool has_root(CallKind kind) {
  switch (kind) {
    case CallKind::reduce:
    case CallKind::broadcast:
    case CallKind::scatter:
    case CallKind::send:
    case CallKind::receive:
      return true;
    default:
      return false;
  }
}

}  // namespace

Group::Group(std::unique_ptr<Backend> backend, std::shared_ptr<Fate> fate)
    : backend_(std::move(backend)),
      fate_(std::move(fate)),
      queue_(kFirstQueue),
      sent_(static_cast<size_t>(size())),
      received_(static_cast<size_t>(size())) {}

Group::~Group() {
  const Lock lock(mutex_);
  settle(started_);
  if (const std::string reason = fate_->reason(); !reason.empty()) backend_->abandon(reason);
  thread_.request_stop();
  changed_.notify_all();
}

/// The next number of the sequence that the call belongs to.
GroupCall Group::numbered(GroupCall call) {
  const auto peer = static_cast<size_t>(call.root);
  if (call.kind == CallKind::send) call.sequence = ++sent_[peer];
  if (call.kind == CallKind::receive) call.sequence = ++received_[peer];
  if (!call.is_message()) call.sequence = ++sequence_;
  call.step = {.root = call.root, .kind = call.kind, .reduce = call.reduce};
  return call;
}

/// Checks before the call counts: this rank's mistake alone, which the others need not learn of.
void Group::validate(const GroupCall& call) const {
  check<ConfigError>(!has_root(call.kind) || (call.root >= 0 && call.root < size()),
                     name(call.kind), ": no rank ", call.root, " in a group of ", size());
  check<ConfigError>(!call.is_message() || call.root != rank(), name(call.kind), ": rank ",
                     call.root, " is this one itself");
}

void Group::make(Collective work) {
  work.call = numbered(work.call);
  backend_->run(work);
}

/// Calls f without the lock; a failure is the group's end.
template <class F>
void Group::attempt(const F& call) {
  busy_ = true;
  std::exception_ptr failure;
  {
    const Unlocked open(mutex_);
    try {
      call();
    } catch (const std::exception& e) {
      fate_->seal(e.what());
      backend_->abandon(e.what());
      failure = std::current_exception();
    }
  }
  busy_ = false;
  failure_ = failure;
}

/// Calls f once all started calls are over and no other thread is in a call.
template <class F>
void Group::exclusively(const F& call) {
  const Lock lock(mutex_);
  settle(started_);
  while (busy_ && failure_ == nullptr) changed_.wait(mutex_);
  if (failure_ == nullptr) attempt(call);
  changed_.notify_all();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

void Group::run(const Collective& work) {
  validate(work.call);
  exclusively([&] { make(work); });
}

void Group::barrier() { run({.call = {.kind = CallKind::barrier}}); }

Work Group::start(const Collective& work) {
  validate(work.call);
  const Lock lock(mutex_);
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  if (overlap_ && !thread_.joinable())
    thread_ =
        Thread("calls of a group", [this](const std::stop_token& stop) { make_started(stop); });
  if (started_ - finished_ == queue_.size()) {
    std::vector<Collective> larger(2 * queue_.size());
    for (uint64_t i = finished_; i < started_; ++i)
      larger[i % larger.size()] = queue_[i % queue_.size()];
    queue_ = std::move(larger);
  }
  queue_[started_ % queue_.size()] = work;
  ++started_;
  changed_.notify_all();
  return {*this, started_};
}

void Group::set_overlap(bool on) {
  const Lock lock(mutex_);
  settle(started_);
  overlap_ = on;
}

/// Makes the first call that was started and is not over.
void Group::make_next() {
  const Collective next = queue_[finished_ % queue_.size()];
  attempt([&] { make(next); });
  finished_ += failure_ == nullptr ? 1 : 0;
  changed_.notify_all();
}

void Group::make_started(const std::stop_token& stop) {
  const Lock lock(mutex_);
  const auto ready = [this]()
                         REQUIRES(mutex_) { return overlap_ && !busy_ && finished_ < started_; };
  while (changed_.wait(mutex_, stop, ready) && failure_ == nullptr) make_next();
}

/// Until the call of this number is over, or the group is.
void Group::settle(uint64_t number) {
  while (finished_ < number && failure_ == nullptr) {
    if (overlap_ || busy_)
      changed_.wait(mutex_);
    else
      make_next();
  }
}

void Group::finish(uint64_t number) {
  const Lock lock(mutex_);
  settle(number);
  if (finished_ < number) std::rethrow_exception(failure_);
}

void Work::wait() {
  if (group_ != nullptr) group_->finish(number_);
  group_ = nullptr;
}

std::span<std::byte> Group::arena(size_t bytes) {
  std::span<std::byte> memory;
  exclusively(
      [&] { memory = backend_->arena(numbered({.count = bytes, .kind = CallKind::arena})); });
  return memory;
}

std::unique_ptr<Group> Group::sub_group(std::span<const int> ranks) {
  const auto own = std::ranges::find(ranks, rank());
  for (const int each : ranks)
    check<ConfigError>(each >= 0 && each < size() && std::ranges::count(ranks, each) == 1,
                       "sub_group: rank ", each, ", expected each of 0 to ", size() - 1,
                       " at most once");
  const uint64_t list = hash64(std::as_bytes(ranks));
  std::unique_ptr<Group> group;
  exclusively([&] {
    backend_->run({.call = numbered({.count = list, .kind = CallKind::sub_group})});
    ++sub_groups_;
    if (own != ranks.end())
      group = std::make_unique<Group>(backend_->sub_group(ranks, mix(list + sub_groups_)), fate_);
  });
  return group;
}

}  // namespace argosy::comm
