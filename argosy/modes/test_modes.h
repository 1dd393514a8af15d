#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "argosy/base/mutex.h"
#include "argosy/comm/test_groups.h"
#include "argosy/graph/builder.h"
#include "argosy/modes/mode.h"
#include "argosy/modes/serve.h"
#include "argosy/ps/client.h"
#include "argosy/world/env.h"

/// Modes that train on integers: the tests make up small gradients, independent of the parameters,
/// and the rule adds them up, so the result can be checked to the bit.
namespace argosy {

constexpr float kFirstValue = 2;  // of every weight

/// Two parameters, and two tables of rows that are looked up by the same keys.
inline Plan integer_plan() {
  constexpr int64_t kSlots = 2;
  const std::string first = "constant(2)";
  Builder g;
  const auto look_up = [&](const std::string& name, int64_t dim) {
    const Var rows = g.variable(
        {.name = name, .type = {{-1, dim}, DType::f32}, .kind = VarKind::rows, .init = first});
    const Var index = g.variable({.name = name + ".index",
                                  .type = {{-1, kSlots}, DType::i32},
                                  .kind = VarKind::input,
                                  .from = "index(" + name + ", a, b)"});
    return g.apply("reshape", {g.apply("embedding", {rows, index})},
                   {{"shape", std::vector<int64_t>{-1, kSlots * dim}}});
  };
  const Var wide = g.apply("linear", {look_up("wide", 1), g.param("v", {kSlots, 3}, first)});
  const Var deep = g.apply("linear", {look_up("rows", 2), g.param("w", {kSlots * 2, 3}, first)});
  g.backward(g.apply("mean", {g.apply("add", {wide, deep})}));
  return make_plan(g.program(), {.rule = "add", .learning_rate = "1"}, 1);
}

/// By name, of a row by table and key.
struct Integers {
  std::map<std::string, std::vector<double>> parameters = {};
  std::map<std::pair<std::string, Key>, std::vector<double>> rows = {};

  bool operator==(const Integers&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Integers& values) {
    return out << testing::PrintToString(values.parameters) << " "
               << testing::PrintToString(values.rows);
  }
  /// Adds factor * other; missing weights begin with the first value.
  void add(const Integers& other, double factor = 1) {
    const auto add_to = [factor](std::vector<double>& to, const std::vector<double>& values) {
      to.resize(values.size(), kFirstValue);
      for (size_t i = 0; i < values.size(); ++i) to[i] += factor * values[i];
    };
    for (const auto& [name, values] : other.parameters) add_to(parameters[name], values);
    for (const auto& [place, values] : other.rows) add_to(rows[place], values);
  }
};

inline std::vector<double> doubles(std::span<const float> values) {
  return {values.begin(), values.end()};
}

inline Integers integers_of(TableStore& store) {
  Integers all;
  for (const NamedTensor& tensor : store.persistables())
    if (tensor.name.find('@') == std::string::npos)
      all.parameters[tensor.name] = doubles(tensor.value.as<float>());
  for (const std::string& name : store.sparse_tables()) {
    const TableRows table = store.rows(name);
    const std::span<const float> rows = table.rows.as<float>();
    const size_t dim = table.keys.empty() ? 0 : rows.size() / table.keys.size();
    for (size_t i = 0; i < table.keys.size(); ++i)
      all.rows[{name, table.keys[i]}] = doubles(rows.subspan(i * dim, dim));
  }
  return all;
}

/// A batch of a job; each has different keys and gradients.
struct BatchId {
  int worker = 0, thread = 0, number = 1;  // the first is 1
};

/// A batch as a reader would leave it, and the gradients that it will have.
class IntegerBatch {
 public:
  explicit IntegerBatch(const Plan& plan) : plan_(plan) {}

  void fill(const BatchId& id) {
    const int salt = 7 * id.worker + 3 * id.thread + 5 * id.number;
    std::set<Key> keys = {3};  // that everybody has
    for (int i = 0; i < 4; ++i) keys.insert(static_cast<Key>(salt + i * (i + id.number)) % 17);
    batch.keys.assign(plan_.layout.key_sets, {keys.begin(), keys.end()});
    batch.size = keys.size();
    batch.step = static_cast<uint64_t>(id.number);
    grads_.clear();
    for (const Edge& edge : plan_.edges) {
      const bool rows = edge.kind == VarKind::rows;
      const Shape shape = rows ? Shape{static_cast<int64_t>(keys.size()),
                                       static_cast<int64_t>(plan_.tables[edge.target].dim)}
                               : plan_.worker.var(edge.var).type.shape;
      Tensor grad(shape);
      for (int i = 0; float& value : grad.as<float>())
        value = static_cast<float>((salt + 3 * i++ + static_cast<int>(edge.target)) % 8 - 3);
      grads_.push_back(std::move(grad));
    }
  }

  /// The amount this batch adds to each weight.
  Integers gradients() const {
    Integers all;
    for (size_t i = 0; i < grads_.size(); ++i) put(plan_.edges[i], grads_[i], all);
    return all;
  }
  /// The weights that fetch put into the feeds.
  Integers seen() const {
    Integers all;
    for (const Edge& edge : plan_.edges)
      put(edge, batch.feeds.at(plan_.worker.var(edge.var).name), all);
    return all;
  }

  Batch batch;
  const std::vector<Tensor>& grads() const { return grads_; }

 private:
  void put(const Edge& edge, const Tensor& tensor, Integers& to) const {
    const std::string& name = plan_.worker.var(edge.var).name;
    const std::span<const float> values = tensor.as<float>();
    if (edge.kind == VarKind::param) {
      to.parameters[name] = doubles(values);
      return;
    }
    const std::vector<Key>& keys = batch.keys[plan_.key_sets[edge.target]];
    const size_t dim = plan_.tables[edge.target].dim;
    for (size_t i = 0; i < keys.size(); ++i)
      to.rows[{name, keys[i]}] = doubles(values.subspan(i * dim, dim));
  }

  const Plan& plan_;
  std::vector<Tensor> grads_;  // by edge
};

/// First values, and on top of them the gradients of all workers times `factor`. `batches`: by
/// thread, how many of the first ones.
inline Integers sum_of(const Plan& plan, int workers, const std::vector<int>& batches,
                       double factor = 1) {
  Integers all;
  IntegerBatch batch(plan);
  for (int worker = 0; worker < workers; ++worker)
    for (size_t thread = 0; thread < batches.size(); ++thread)
      for (int number = 1; number <= batches[thread]; ++number) {
        batch.fill({worker, static_cast<int>(thread), number});
        all.add(batch.gradients(), factor);
      }
  return all;
}

/// The weights fetch should give a batch once `applied` has been applied.
inline Integers seen_of(const Integers& applied, const IntegerBatch& batch) {
  Integers seen;
  seen.add(batch.gradients(), 0);  // first values
  for (auto& [name, values] : seen.parameters)
    if (const auto found = applied.parameters.find(name); found != applied.parameters.end())
      values = found->second;
  for (auto& [place, values] : seen.rows)
    if (const auto found = applied.rows.find(place); found != applied.rows.end())
      values = found->second;
  return seen;
}

/// A worker's traffic to one server.
struct Sent {
  uint64_t exchanges = 0, pushes = 0;
};

/// TCP links that count the exchanges to each server and break after every `break_every` of them.
class CountedTransport final : public Transport {
 public:
  CountedTransport(const LinkOptions& options, uint64_t break_every)
      : break_every_(break_every), inner_(tcp_transport(options)) {}

  Endpoint listen(const Endpoint& at, OnAccept on_accept) override {
    return inner_->listen(at, std::move(on_accept));
  }
  Endpoint listen_fd(int fd, OnAccept on_accept) override {
    return inner_->listen_fd(fd, std::move(on_accept));
  }
  void connect(const Endpoint& to, Env::Duration within, OnConnect on_connect) override {
    inner_->connect(to, within,
                    [this, to, on_connect = std::move(on_connect)](std::shared_ptr<Link> link,
                                                                   const std::string& error) {
                      if (link != nullptr) link = std::make_shared<Counted>(*this, to, link);
                      return on_connect(std::move(link), error);
                    });
  }
  Sent sent(const Endpoint& server) {
    const Lock lock(mutex_);
    return sent_[server.text()];
  }

 private:
  class Counted final : public Link {
   public:
    Counted(CountedTransport& transport, const Endpoint& to, std::shared_ptr<Link> inner)
        : transport_(transport), to_(to.text()), inner_(std::move(inner)) {}
    void send(OutFrame frame) override {
      const bool breaks = frame.kind == FrameKind::exchange && transport_.count(to_, frame);
      inner_->send(std::move(frame));
      if (breaks) inner_->close("the test breaks it");
    }
    void close(std::string reason) override { inner_->close(std::move(reason)); }
    const std::string& peer() const override { return inner_->peer(); }

   private:
    CountedTransport& transport_;
    std::string to_;
    std::shared_ptr<Link> inner_;
  };

  /// Counts the frame; true if the link breaks after it.
  bool count(const std::string& to, const OutFrame& frame) {
    ps::ExchangeHead head;
    std::memcpy(&head, frame.parts.at(0).data(), sizeof head);
    const Lock lock(mutex_);
    Sent& sent = sent_[to];
    ++sent.exchanges;
    if (head.has(ps::ExchangeHead::kPushDense) || head.lists > 0) ++sent.pushes;
    // Retries get through, or a link with many to send would never finish.
    const bool is_new =
        head.sequence > std::exchange(last_[to], std::max(last_[to], head.sequence));
    return break_every_ > 0 && is_new && head.sequence % break_every_ == 0;
  }

  const uint64_t break_every_;
  Mutex mutex_;
  std::map<std::string, Sent> sent_ GUARDED_BY(mutex_);      // by server
  std::map<std::string, uint64_t> last_ GUARDED_BY(mutex_);  // last sequence sent, by server
  std::unique_ptr<Transport> inner_;                         // ends first
};

/// Servers on loopback, as serve() would make them.
class IntegerServers {
 public:
  IntegerServers(Env& env, const Plan& plan, const Strategy& strategy, uint32_t servers,
                 int workers, size_t threads = 0)
      : placement_(placement_of(plan, strategy, servers, {.min_block = 4})) {
    role_ = {.kind = RoleKind::worker, .worker_num = workers};
    for (uint32_t i = 0; i < servers; ++i) {
      servers_.push_back(ps::Server::make(env, placement_,
                                          {.index = i,
                                           .workers = static_cast<uint32_t>(workers),
                                           .sync = mode(strategy.mode).sync,
                                           .threads = threads}));
      role_.servers.push_back(transport_->listen({"127.0.0.1", 0}, servers_.back()->acceptor()));
    }
  }
  Role role(int worker) const {
    Role role = role_;
    role.index = worker;
    return role;
  }
  const ps::Placement& placement() const { return placement_; }
  /// Until all workers have left.
  void wait() {
    for (const auto& server : servers_) server->wait();
  }

 private:
  ps::Placement placement_;
  Role role_;
  std::vector<std::shared_ptr<ps::Server>> servers_;
  std::unique_ptr<Transport> transport_ = tcp_transport();
};

/// A process that trains, with its communicator.
class IntegerWorker {
 public:
  /// With servers.
  IntegerWorker(Env& env, const Plan& plan, const IntegerServers& servers, const Strategy& strategy,
                int index, uint64_t break_every = 0)
      : plan_(plan), role_(servers.role(index)), index_(index) {
    transport_.emplace(worker_links(strategy), break_every);
    Wires wires = connect_servers(env, *transport_, servers.placement(), role_, strategy);
    client_ = wires.servers;
    communicator_ = make_communicator(plan, strategy, wires);
  }
  /// A rank, or a local run without a group.
  IntegerWorker(const Plan& plan, std::shared_ptr<comm::Group> group, const Strategy& strategy,
                int index)
      : plan_(plan),
        index_(index),
        communicator_(make_communicator(plan, strategy, {.group = std::move(group)})) {}

  using OnFetch = std::function<void(int number, const IntegerBatch& batch)>;
  /// One pass, driven as Trainer does. `batches`: by thread. It ends early, with `left_over` more
  /// batches read and not computed.
  void train(const std::vector<int>& batches, const OnFetch& on_fetch = {}, int left_over = 0) {
    while (slots_.size() < batches.size()) {
      std::deque<Slot>& slots = slots_.emplace_back();
      for (int i = 0; i <= communicator_->lookahead(); ++i)
        slots.push_back({IntegerBatch(plan_), communicator_->make_lane()});
    }
    communicator_->pass(Pass::begin);
    comm::on_threads(static_cast<int>(batches.size()), [&](int thread) {
      run(thread, batches[static_cast<size_t>(thread)], on_fetch, left_over);
      communicator_->pass(Pass::thread_done);
    });
    communicator_->drain();
    communicator_->pass(Pass::end);
  }
  /// One batch, read just before it is fetched.
  void train_one(int number, const OnFetch& on_fetch = {}) {
    if (lane_ == nullptr) lane_ = communicator_->make_lane();
    IntegerBatch batch(plan_);
    batch.fill({index_, 0, number});
    compute(batch, *lane_, number, on_fetch);
  }

  Communicator& communicator() { return *communicator_; }
  ps::Client& client() { return *client_; }
  Sent sent(size_t server) { return transport_->sent(role_.servers[server]); }

 private:
  struct Slot {
    IntegerBatch batch;
    std::unique_ptr<Lane> lane;
  };
  void run(int thread, int batches, const OnFetch& on_fetch, int left_over) {
    std::deque<Slot*> read, free;
    for (Slot& slot : slots_[static_cast<size_t>(thread)]) free.push_back(&slot);
    int next = 1;
    for (int number = 1; number <= batches; ++number) {
      for (; !free.empty() && next <= batches + left_over; ++next) {
        read.push_back(free.front());
        free.pop_front();
        read.back()->batch.fill({index_, thread, next});
        read.back()->lane->prepare(read.back()->batch.batch);
      }
      compute(read.front()->batch, *read.front()->lane, number, on_fetch);
      free.push_back(read.front());
      read.pop_front();
    }
  }
  void compute(IntegerBatch& batch, Lane& lane, int number, const OnFetch& on_fetch) {
    lane.fetch(batch.batch);
    if (on_fetch) on_fetch(number, batch);
    for (size_t i = 0; i < plan_.edges.size(); ++i)
      lane.deliver(batch.batch, plan_.edges[i], batch.grads()[i]);
    lane.commit(batch.batch);
  }

  const Plan& plan_;
  Role role_;
  const int index_;
  std::optional<CountedTransport> transport_;
  std::shared_ptr<ps::Client> client_;
  std::unique_ptr<Communicator> communicator_;
  std::deque<std::deque<Slot>> slots_;  // by thread
  std::unique_ptr<Lane> lane_;          // of train_one()
};

/// A job of a mode with all its workers, and the servers or the group that the mode needs.
struct IntegerJob {
  explicit IntegerJob(const std::string& name) : mode(argosy::mode(name)) {}

  static constexpr uint32_t kServers = 2;
  static constexpr int kBatches = 10;
  const Mode& mode;
  const Strategy strategy = {.mode = mode.name,
                             .threads = mode.threads_share_a_batch ? 1 : 2,
                             .max_merge = 2,
                             .geo_step = 4,
                             .geo_mean = false};
  const int workers = mode.needs == Mode::Needs::nothing ? 1 : 2;
  const std::vector<int> batches =
      std::vector<int>(static_cast<size_t>(strategy.threads), kBatches);
  /// Servers and ranks that wait for each other take the mean of a step.
  const double share = mode.sync || mode.needs == Mode::Needs::ranks ? 1.0 / workers : 1;
  Plan plan = integer_plan();
  std::unique_ptr<Env> env = real_env();
  size_t server_threads = 0;
  uint64_t break_every = 0;  // exchanges before a link breaks; 0: none does
  int left_over = 0;         // batches that are read and not computed, in each pass

  /// Trains with all workers, and lets the first one look.
  void train(int passes, const std::function<void(IntegerWorker&)>& look) {
    std::optional<IntegerServers> servers;
    std::vector<std::unique_ptr<comm::Group>> groups;
    std::vector<std::unique_ptr<IntegerWorker>> all(static_cast<size_t>(workers));
    if (mode.needs == Mode::Needs::servers)
      servers.emplace(*env, plan, strategy, kServers, workers, server_threads);
    if (mode.needs == Mode::Needs::ranks)
      groups = comm::inproc_groups(*env, workers, std::chrono::seconds(60));
    comm::on_threads(workers, [&](int index) {
      const auto i = static_cast<size_t>(index);
      all[i] =
          servers
              ? std::make_unique<IntegerWorker>(*env, plan, *servers, strategy, index, break_every)
              : std::make_unique<IntegerWorker>(
                    plan, groups.empty() ? nullptr : std::move(groups[i]), strategy, index);
      for (int pass = 0; pass < passes; ++pass) all[i]->train(batches, {}, left_over);
    });
    look(*all[0]);
    for (const auto& worker : all) worker->communicator().pass(Pass::leave);
    if (servers) servers->wait();
  }
  /// Expected weights after this many passes.
  Integers sum(int passes) const { return sum_of(plan, workers, batches, passes * share); }
};

}  // namespace argosy
