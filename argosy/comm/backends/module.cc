// Ranks whose data another library moves and adds. This file chooses the library's calls, checks
// that all ranks live, and fixes the order of sums where it matters.
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/comm/backends.h"
#include "argosy/comm/links.h"
#include "argosy/comm/module_file.h"
#include "argosy/comm/private_arenas.h"
#include "argosy/comm/reduce.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;

constexpr size_t kPiece = size_t{1} << 20;  // bytes of a sum in order that are gathered at once
constexpr int kSpins = 200;                 // looks at the library before others get the core
constexpr auto kYield = 100us;  // before this rank sleeps between looks: others may need the core
constexpr auto kSleep = 20us;
constexpr auto kLookAtOthers = 20ms;

/// Everybody's token, by rank.
std::vector<Token> exchange_tokens(Peers& peers, const Token& mine) {
  std::vector<Token> all(static_cast<size_t>(peers.size()));
  all[static_cast<size_t>(peers.rank())] = mine;
  std::vector<Links::Outgoing> out;
  std::vector<Links::Incoming> in;
  for (int peer = 0; peer < peers.size(); ++peer) {
    if (peer == peers.rank()) continue;
    out.push_back({peer, mine});
    in.push_back({peer, all[static_cast<size_t>(peer)]});
  }
  const GroupCall call{.count = mine.size(), .kind = CallKind::sub_group};
  peers.begin(call);
  Links(peers).exchange(call, out, in);
  return all;
}

class ModuleBackend final : public Backend {
 public:
  ModuleBackend(std::string name, std::unique_ptr<Peers> peers, Order order, std::string device)
      : name_(std::move(name)),
        device_(std::move(device)),
        order_(order),
        peers_(std::move(peers)),
        calls_(static_cast<size_t>(peers_->size())) {
    try {
      const EngineModule& module = load_module(name_);
      most_elements_ = module.most_elements;
      engine_ = module.open(engine_options());
    } catch (const Error& e) {
      peers_->tell(e.what());
      throw;
    }
  }

  int rank() const override { return peers_->rank(); }
  int size() const override { return peers_->size(); }
  void run(const Collective& work) override;
  std::span<std::byte> arena(const GroupCall& call) override {
    run({.call = call});
    return arenas_.add(call.count);
  }
  std::unique_ptr<Backend> sub_group(std::span<const int> ranks, uint64_t id) override {
    return module_backend(name_, peers_->sub_group(ranks, id), order_, device_);
  }
  void abandon(const std::string& reason) noexcept override {
    engine_->give_up();
    peers_->tell(reason);
  }

 private:
  size_t ranks() const { return static_cast<size_t>(size()); }
  std::byte* scratch(size_t bytes) {
    if (scratch_.size() < bytes) scratch_.resize(bytes);
    return scratch_.data();
  }

  EngineOptions engine_options() {
    return {.rank = rank(),
            .ranks = size(),
            .device = device_,
            .exchange = [this](const Token& mine) { return exchange_tokens(*peers_, mine); },
            .look = [this] { peers_->look(); }};
  }
  void compare(const GroupCall& call);
  void announce(const GroupCall& call);
  void hear(const GroupCall& call);
  void make(const Collective& work);
  void let_engine(const Collective& work, CallKind kind);
  void wait(const GroupCall& call);
  void reduce(const Collective& work);
  void reduce_in_order(const Collective& work);
  void scatter_sum_in_order(const Collective& work);
  void all_to_all(const Collective& work);

  const std::string name_, device_;
  const Order order_;
  std::unique_ptr<Peers> peers_;
  uint64_t most_elements_ = 0;  // of a call
  std::unique_ptr<Engine> engine_;
  std::vector<GroupCall> calls_;  // of all ranks
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte> scratch_;
  PrivateArenas arenas_;
};

size_t bytes_of(const Collective& work) { return work.call.count * size_of(work.call.type); }

/// The words of a call, as data.
Collective words_of(CallKind kind, int root, const GroupCall* in, GroupCall* out) {
  constexpr size_t kWords = sizeof(GroupCall) / sizeof(int64_t);
  Collective work{.call = {.count = kWords, .root = root, .kind = kind, .type = ElementType::i64},
                  .in = reinterpret_cast<const std::byte*>(in),
                  .out = reinterpret_cast<std::byte*>(out)};
  work.call.step = {.root = root, .kind = kind};
  return work;
}

void ModuleBackend::run(const Collective& work) {
  const GroupCall& call = work.call;
  check<ConfigError>(call.kind >= CallKind::arena || call.count <= most_elements_, "backend ",
                     name_, ": ", call.text(), ", expected at most ", most_elements_, " elements");
  peers_->begin(call);
  make(work);
  peers_->end();
}

void ModuleBackend::make(const Collective& work) {
  const GroupCall& call = work.call;
  if (call.kind == CallKind::send)
    announce(call);
  else if (call.kind == CallKind::receive)
    hear(call);
  else
    compare(call);
  switch (call.kind) {
    case CallKind::barrier:
    case CallKind::arena:
    case CallKind::sub_group:
      break;
    case CallKind::all_reduce:
    case CallKind::reduce:
    case CallKind::reduce_scatter:
      if (call.count > 0) reduce(work);
      break;
    case CallKind::all_to_all:
      if (call.count > 0) all_to_all(work);
      break;
    default:
      if (call.count > 0) let_engine(work, call.kind);
  }
}

/// Catches ranks that make different calls before any of their data move.
void ModuleBackend::compare(const GroupCall& call) {
  const Collective words = words_of(CallKind::all_gather, -1, &call, calls_.data());
  engine_->start(words);
  wait(call);
  for (int peer = 0; peer < size(); ++peer)
    check_same_call(call, peers_->name(rank()), calls_[static_cast<size_t>(peer)],
                    peers_->name(peer));
}

void ModuleBackend::announce(const GroupCall& call) {
  engine_->start(words_of(CallKind::send, call.root, &call, nullptr));
  wait(call);
}

void ModuleBackend::hear(const GroupCall& call) {
  GroupCall& theirs = calls_[static_cast<size_t>(call.root)];
  engine_->start(words_of(CallKind::receive, call.root, nullptr, &theirs));
  wait(call);
  check_same_call(call, peers_->name(rank()), theirs, peers_->name(call.root));
}

void ModuleBackend::let_engine(const Collective& work, CallKind kind) {
  Collective part = work;
  part.call.step.kind = kind;
  if (part.call.step.reduce == Reduce::avg) part.call.step.reduce = Reduce::sum;
  engine_->start(part);
  wait(work.call);
}

/// Polls the library, which makes progress only when asked; after a while, less often.
void ModuleBackend::wait(const GroupCall& call) {
  for (int spin = 0; spin < kSpins; ++spin)
    if (engine_->done()) return;
  const Env::Time begin = peers_->env().now();
  Env::Time last_look = begin;
  while (!engine_->done()) {
    const Env::Time now = peers_->env().now();
    if (now - begin < kYield)
      ::sched_yield();
    else
      std::this_thread::sleep_for(kSleep);
    if (now - last_look < kLookAtOthers) continue;
    last_look = now;
    peers_->look();
    argosy::check<IoError>(now - begin < peers_->options().deadline, "not all ranks have come to ",
                           call.text(), " within ",
                           std::chrono::duration<double>(peers_->options().deadline).count(), " s");
  }
}

void ModuleBackend::reduce(const Collective& work) {
  const bool scatters = work.call.kind == CallKind::reduce_scatter;
  if (order_ == Order::ranks) return scatters ? scatter_sum_in_order(work) : reduce_in_order(work);
  let_engine(work, work.call.kind);
  const bool has_result = work.call.kind != CallKind::reduce || work.call.root == rank();
  if (work.call.reduce == Reduce::avg && has_result)
    divide_elements(work.call.type, work.out, work.call.count, ranks());
}

/// Everybody gathers all and adds it in the order of ranks.
void ModuleBackend::reduce_in_order(const Collective& work) {
  const size_t each = size_of(work.call.type), most = kPiece / each;
  const bool wanted = work.call.kind == CallKind::all_reduce || work.call.root == rank();
  for (size_t begin = 0; begin < work.call.count; begin += most) {
    Collective piece = work;
    piece.call.count = std::min(most, work.call.count - begin);
    piece.in = work.in + begin * each;
    piece.out = scratch(ranks() * piece.call.count * each);
    let_engine(piece, CallKind::all_gather);
    if (!wanted) continue;
    inputs_.clear();
    for (size_t peer = 0; peer < ranks(); ++peer)
      inputs_.push_back(piece.out + peer * piece.call.count * each);
    std::byte* const result = work.out + begin * each;
    reduce_elements(work.call.type, work.call.reduce, piece.call.count, inputs_,
                    std::span(&result, 1), ranks());
  }
}

void ModuleBackend::scatter_sum_in_order(const Collective& work) {
  Collective parts = work;
  parts.out = scratch(ranks() * bytes_of(work));
  let_engine(parts, CallKind::all_to_all);
  inputs_.clear();
  for (size_t peer = 0; peer < ranks(); ++peer)
    inputs_.push_back(parts.out + peer * bytes_of(work));
  reduce_elements(work.call.type, work.call.reduce, work.call.count, inputs_,
                  std::span(&work.out, 1), ranks());
}

void ModuleBackend::all_to_all(const Collective& work) {
  Collective apart = work;
  const size_t bytes = ranks() * bytes_of(work);
  if (work.in == work.out)
    apart.in = static_cast<std::byte*>(std::memcpy(scratch(bytes), work.in, bytes));
  let_engine(apart, CallKind::all_to_all);
}

}  // namespace

std::unique_ptr<Backend> module_backend(const std::string& name, std::unique_ptr<Peers> peers,
                                        Order order, const std::string& device) {
  return std::make_unique<ModuleBackend>(name, std::move(peers), order, device);
}

}  // namespace argosy::comm
