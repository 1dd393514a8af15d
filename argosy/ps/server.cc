#include "argosy/ps/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "argosy/base/denormals.h"
#include "argosy/base/error.h"
#include "argosy/ps/server_session.h"

namespace argosy {
namespace {

constexpr auto kTick = std::chrono::milliseconds(500);
constexpr size_t kMaxInflight = 1 << 16;
constexpr size_t kMaxReply = size_t{1} << 30;  // bytes, as LinkOptions::max_frame
constexpr size_t kLargeExchange = 1 << 16;     // floats; smaller ones are not worth waking threads

double seconds(Env::Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// to = from * scale, or to += from * scale.
void take_scaled(std::span<const float> from, float scale, bool first, float* to) {
  if (first)
    for (size_t i = 0; i < from.size(); ++i) to[i] = from[i] * scale;
  else
    for (size_t i = 0; i < from.size(); ++i) to[i] += from[i] * scale;
}

}  // namespace

std::shared_ptr<PsServer> PsServer::make(Env& env, Placement placement, ServerOptions options) {
  std::shared_ptr<PsServer> server(new PsServer(env, std::move(placement), std::move(options)));
  server->arm_timer();
  return server;
}

PsServer::PsServer(Env& env, Placement placement, ServerOptions options)
    : env_(env),
      placement_(std::move(placement)),
      options_(std::move(options)),
      shape_(placement_, options_.index),
      started_(env.now()),
      incarnation_(env.random()),
      workers_(options_.workers),
      spoke_(env.now()),
      team_(std::max<size_t>(options_.threads, 1)) {
  check<ConfigError>(options_.index < placement_.servers, "server ", options_.index, " but only ",
                     placement_.servers, " servers");
  check<ConfigError>(options_.workers > 0, "a server needs at least one worker");
  size_t at = 0;
  for (TableSpec& spec : placement_.tables_of(options_.index)) {
    if (spec.elements == 0) {
      sparse_.push_back(std::make_unique<SparseTable>(std::move(spec)));
      continue;
    }
    dense_at_.push_back(at);
    at += spec.elements;
    dense_.push_back(std::make_unique<DenseTable>(std::move(spec)));
  }
}

PsServer::~PsServer() { env_.cancel(timer_); }

Transport::OnAccept PsServer::acceptor() {
  return [self = shared_from_this()](std::shared_ptr<Link> link) {
    {
      const Lock group(self->group_);
      self->strangers_[link.get()] = {link, self->env_.now()};
    }
    return std::make_shared<Session>(self, std::move(link));
  };
}

void PsServer::say(const std::string& text) const {
  if (options_.log) options_.log(fmt::format("server {}: {}", options_.index, text));
}

void PsServer::arm_timer() {
  timer_ = env_.schedule(kTick, [weak = weak_from_this()] {
    if (const auto server = weak.lock()) {
      server->tick();
      server->arm_timer();
    }
  });
}

/// Looks after what nobody's frame will bring about.
void PsServer::tick() {
  const Env::Time now = env_.now();
  std::vector<uint32_t> dead, absent, gone;
  std::vector<std::shared_ptr<Link>> silent, strange;
  {
    const Lock group(group_);
    for (const auto& [key, stranger] : strangers_)
      if (now - stranger.since > options_.quiet)
        if (auto link = stranger.link.lock()) strange.push_back(std::move(link));
    for (uint32_t i = 0; i < workers_.size(); ++i) {
      Worker& worker = workers_[i];
      if (worker.left) {
        if (worker.gone || now - worker.died < options_.away) continue;
        worker.gone = true;
        gone.push_back(i);
        continue;
      }
      if (!worker.joined) {
        if (now - started_ > options_.come_within) absent.push_back(i);
        continue;
      }
      const Lock lock(worker.mutex);
      if (worker.link == nullptr && now - worker.lost > options_.grace) dead.push_back(i);
      if (worker.link != nullptr && now - worker.heard > options_.quiet)
        silent.push_back(worker.link);
    }
  }
  for (const auto& link : silent)
    link->close(
        fmt::format("nothing was heard from {} for {:g} s", link->peer(), seconds(options_.quiet)));
  for (const auto& link : strange)
    link->close(fmt::format("no hello came for {:g} s", seconds(options_.quiet)));
  for (const uint32_t worker : dead)
    leave(worker, Leaving::dead,
          fmt::format("is taken for dead: its link has been gone for {:g} s",
                      seconds(options_.grace)));
  for (const uint32_t worker : absent)
    leave(worker, Leaving::dead,
          fmt::format("has not come for {:g} s and is taken for dead",
                      seconds(options_.come_within)));
  for (const uint32_t worker : gone)
    say(fmt::format("worker {} has not come back for {:g} s", worker, seconds(options_.away)));
  if (!gone.empty()) complete_gatherings();
  if (!gone.empty()) end_if_all_are_gone();
  {
    const Lock group(group_);
    if (now - spoke_ < options_.patience) return;
    spoke_ = now;
  }
  if (const std::string waiting = waits_for(options_.patience); !waiting.empty()) say(waiting);
}

bool PsServer::done() const {
  const std::scoped_lock lock(done_mutex_);
  return done_;
}

void PsServer::wait(const std::function<bool()>& stop) {
  constexpr auto kAsk = std::chrono::milliseconds(100);
  std::unique_lock lock(done_mutex_);
  while (!done_ && !(stop && stop())) done_changed_.wait_for(lock, kAsk);
}

void PsServer::wait_for_goodbyes(Env::Duration at_most) {
  constexpr auto kAsk = std::chrono::milliseconds(5);
  const Env::Time until = env_.now() + at_most;
  const auto linked = [&] {
    bool any = false;
    for (Worker& worker : workers_) {
      const Lock lock(worker.mutex);
      any = any || worker.link != nullptr;
    }
    return any;
  };
  std::unique_lock lock(done_mutex_);
  while (linked() && env_.now() < until) done_changed_.wait_for(lock, kAsk);
}

std::vector<SparseTable*> PsServer::sparse_tables() {
  std::vector<SparseTable*> all;
  all.reserve(sparse_.size());
  for (const auto& table : sparse_) all.push_back(table.get());
  return all;
}

PsServer::Session::Session(std::shared_ptr<PsServer> server, std::shared_ptr<Link> link)
    : server_(std::move(server)), link_(std::move(link)) {}

void PsServer::Session::on_frame(InFrame frame) try {
  if (frame.kind == FrameKind::hello) return server_->greet(*this, frame);
  check<DataError>(worker_.has_value(), "a frame of kind ", static_cast<int>(frame.kind),
                   " before the hello");
  switch (frame.kind) {
    case FrameKind::exchange:
      return server_->take_exchange(*this, std::move(frame));
    case FrameKind::control:
      return server_->take_control(*this, frame);
    case FrameKind::ping:
      return server_->answer_ping(*this, frame.id);
    case FrameKind::error:
      return link_->close(text_of(frame));
    default:
      fail<DataError>("a frame of kind ", static_cast<int>(frame.kind),
                      ", which servers do not take");
  }
} catch (const Refused& e) {
  refuse(Severity::final, e.what());
} catch (const Error& e) {
  refuse(Severity::transient, e.what());
} catch (const std::bad_alloc&) {
  refuse(Severity::final, "the server has no memory left");
}

void PsServer::Session::refuse(Severity severity, const std::string& why) {
  refused_ = true;
  server_->say(fmt::format("{}: {}", link_->peer(), why));
  link_->send(text_frame(FrameKind::error, static_cast<uint64_t>(severity), why));
  link_->close(why);
}

void PsServer::Session::on_close(const std::string& reason) { server_->lost(*this, reason); }

void PsServer::greet(Session& session, const InFrame& frame) {
  const Hello hello = decode_hello(frame);
  check<Refused>(hello.job == options_.job, "job '", hello.job, "', this is a server of job '",
                 options_.job, "'");
  check<Refused>(hello.plan_hash == placement_.hash(), "plan ",
                 fmt::format("{:x}", hello.plan_hash), " of the worker is not the server's ",
                 fmt::format("{:x}", placement_.hash()),
                 ": both must run the same model with the same settings");
  check<Refused>(hello.workers == workers_.size(), "the worker counts ", hello.workers,
                 " workers, the server ", workers_.size());
  check<Refused>(hello.worker < workers_.size(), "worker ", hello.worker, " but only ",
                 workers_.size(), " workers");
  check<Refused>(hello.inflight > 0 && hello.inflight <= kMaxInflight, "inflight ", hello.inflight,
                 ", expected 1 to ", kMaxInflight);
  check<Refused>(!session.worker_ || *session.worker_ == hello.worker, "this link is worker ",
                 session.worker_.value_or(0), "'s, now it says it is worker ", hello.worker);
  Worker& worker = workers_[hello.worker];
  std::shared_ptr<Link> before;
  bool anew = false;
  Welcome welcome{
      .server = options_.index, .applied = 0, .step = step_, .incarnation = incarnation_};
  {
    const Lock group(group_);
    const Lock lock(worker.mutex);
    const bool same = worker.joined && worker.incarnation == hello.incarnation;
    check<Refused>(!worker.dead || (!same && worker.joined), "worker ", hello.worker,
                   " was taken for dead");
    // A launcher starts a worker again when the one before it has ended, heard of or not.
    const bool restarted = hello.restarts > worker.restarts;
    check<Refused>(same || worker.link == nullptr || worker.left || restarted, "worker ",
                   hello.worker, " is here already, from ",
                   worker.link != nullptr ? worker.link->peer() : std::string(),
                   "; a second one with this number came from ", session.link_->peer());
    anew = !same;
    if (anew) begin_anew(hello.worker, worker, hello);
    // A process that was started again begins behind what any server has of the one before.
    if (hello.answered > worker.applied) worker.applied = worker.received = hello.answered;
    strangers_.erase(session.link_.get());
    before = std::exchange(worker.link, session.link_);
    worker.heard = env_.now();
    session.worker_ = hello.worker;
    welcome.applied = worker.applied;
  }
  // A worker whose welcome is late says hello again, over the same link.
  if (before != nullptr && before != session.link_) before->close("the worker came again");
  session.link_->send(small_frame(FrameKind::welcome, frame.id, encode(welcome)));
  if (!anew) return;
  complete_step();
  complete_gatherings();
}

/// A worker that this server does not know, or not in this incarnation.
void PsServer::begin_anew(uint32_t number, Worker& worker, const Hello& hello) {
  if (hello.answered > worker.applied) {
    say(losses(number, hello));
    worker.applied = hello.answered;
  }
  worker.incarnation = hello.incarnation;
  worker.restarts = hello.restarts;
  worker.repeats = std::max(worker.repeats, std::exchange(worker.pushed, 0));
  worker.lists.assign(hello.inflight, {});
  worker.held.reset();
  worker.control = 0;
  worker.result.reset();
  worker.received = worker.applied;
  worker.left = worker.dead = worker.gone = false;
  worker.member = !hello.paused;
  worker.joined = true;
  pass_ = std::max(pass_, hello.pass);
  if (hello.milestone > milestone_) {
    milestone_ = hello.milestone;
    milestone_bytes_.clear();
  }
  for (auto& [what, gathering] : gatherings_) {
    gathering.parts.erase(number);
    gathering.asked.erase(number);
  }
  std::erase_if(gatherings_, [](const auto& entry) { return entry.second.parts.empty(); });
}

void PsServer::lost(Session& session, const std::string& reason) {
  if (!session.worker_) {
    if (!session.refused_)
      say(fmt::format("{} went before its hello: {}", session.link_->peer(), reason));
    const Lock group(group_);
    strangers_.erase(session.link_.get());
    return;
  }
  Worker& worker = workers_[*session.worker_];
  const Lock group(group_);
  const Lock lock(worker.mutex);
  if (worker.link != session.link_) return;
  worker.link.reset();
  worker.lost = env_.now();
  if (!worker.left) say(fmt::format("lost worker {}: {}", *session.worker_, reason));
}

void PsServer::answer_ping(Session& session, uint64_t id) {
  Worker& worker = workers_[*session.worker_];
  Pong pong;
  bool waiting = false;
  {
    const Lock lock(worker.mutex);
    worker.heard = env_.now();
    pong.received = worker.received;
    pong.applied = worker.applied;
    waiting = worker.held.has_value() || (worker.control > 0 && !worker.result);
  }
  if (waiting) pong.waits_for = waits_for({});
  session.link_->send(small_frame(FrameKind::pong, id, encode(pong)));
}

void PsServer::take_exchange(Session& session, InFrame frame) {
  Worker& worker = workers_[*session.worker_];
  ExchangeView view = parse_exchange(frame.payload->bytes(), shape_);
  {
    const FlushDenormals flush;
    const Lock lock(worker.mutex);
    if (worker.link != session.link_) return;
    worker.heard = env_.now();
    const uint64_t sequence = view.head.sequence;
    if (sequence > worker.applied + 1) return;  // out of order: it will come again
    const bool again = sequence <= worker.applied;
    worker.received = std::max(worker.received, sequence);
    check_lists(worker, view, again);
    if (options_.sync && view.head.has(ExchangeHead::kEndsStep) && !again) {
      if (!worker.held) worker.held = Held{std::move(frame), std::move(view), env_.now()};
    } else {
      uint64_t staleness = 0;
      try {
        if (!again) {
          if (view.pushes()) {
            apply(worker, view, ++step_, staleness);
            ++worker.pushed;
          }
          worker.applied = sequence;
        }
        return answer(worker, view, staleness);
      } catch (const Error& e) {  // it may be half applied: it must not come again
        fail<Refused>("exchange ", sequence, ": ", e.what());
      }
    }
  }
  complete_step();
}

PsServer::KeptList* PsServer::kept(Worker& worker, uint64_t number) {
  KeptList& list = worker.lists[number % worker.lists.size()];
  return list.number == number && number > 0 ? &list : nullptr;
}

/// Before anything of an exchange is applied: it is applied whole or not at all.
void PsServer::check_lists(Worker& worker, const ExchangeView& view, bool again) {
  for (const ExchangeView::List& list : view.lists) {
    if (again || !list.keys.empty()) continue;
    KeptList* const found = kept(worker, list.number);
    check<DataError>(found != nullptr, "exchange ", view.head.sequence, " pushes list ",
                     list.number, ", which is not kept any more");
    for (size_t i = 0; i < sparse_.size(); ++i)
      check<DataError>(found->tables[i].keys().size() == list.counts[shape_.sets[i]], "list ",
                       list.number, " has ", found->tables[i].keys().size(), " keys, ",
                       list.counts[shape_.sets[i]], " were pushed");
  }
}

void PsServer::apply(Worker& worker, const ExchangeView& view, uint64_t step, uint64_t& staleness) {
  if (view.head.has(ExchangeHead::kPushDense))
    run_jobs(dense_.size(), view.dense.size(), [&](size_t i) {
      dense_[i]->push_all(view.dense.subspan(dense_at_[i], dense_[i]->spec().elements), step);
    });
  for (const ExchangeView::List& list : view.lists) {
    KeptList* const found = kept(worker, list.number);
    if (found != nullptr) staleness += step - 1 - std::min(step - 1, found->step);
    run_jobs(sparse_.size(), list.grads.empty() ? 0 : list.grads[0].size(), [&](size_t i) {
      if (list.keys.empty())
        sparse_[i]->push(found->tables[i], list.grads[i], step);
      else
        sparse_[i]->push(list.keys[shape_.sets[i]], list.grads[i], step);
    });
  }
}

void PsServer::answer(Worker& worker, const ExchangeView& view, uint64_t staleness) {
  size_t floats = view.head.has(ExchangeHead::kPullDense) ? shape_.dense_floats : 0;
  for (size_t i = 0; !view.pull.empty() && i < sparse_.size(); ++i)
    floats += view.pull[shape_.sets[i]].size() * shape_.dims[i];
  check<DataError>(floats <= kMaxReply / sizeof(float) - sizeof(ReplyHead), "a reply of ", floats,
                   " floats does not fit into a frame: use smaller batches");
  const std::shared_ptr<Buffer> buffer = buffers_.take(sizeof(ReplyHead) + floats * sizeof(float));
  const ReplyHead head{.sequence = view.head.sequence,
                       .step = step_,
                       .durable = worker.applied,
                       .staleness = staleness};
  std::memcpy(buffer->bytes().data(), &head, sizeof head);
  auto* const values = reinterpret_cast<float*>(buffer->bytes().data() + sizeof head);
  fill_reply(worker, view, {values, floats});
  if (worker.link == nullptr) return;
  worker.link->send({FrameKind::reply, head.sequence, {buffer->bytes()}, {buffer}});
}

void PsServer::fill_reply(Worker& worker, const ExchangeView& view, std::span<float> floats) {
  if (view.head.has(ExchangeHead::kPullDense)) {
    run_jobs(dense_.size(), shape_.dense_floats, [&](size_t i) {
      dense_[i]->pull_all(floats.subspan(dense_at_[i], dense_[i]->spec().elements));
    });
    floats = floats.subspan(shape_.dense_floats);
  }
  if (view.pull.empty()) return;
  std::vector<std::span<float>> rows;
  for (size_t i = 0; i < sparse_.size(); ++i) {
    rows.push_back(floats.first(view.pull[shape_.sets[i]].size() * shape_.dims[i]));
    floats = floats.subspan(rows.back().size());
  }
  KeptList* list = nullptr;
  if (!view.head.has(ExchangeHead::kInference)) {
    list = &worker.lists[view.head.sequence % worker.lists.size()];
    list->number = view.head.sequence;
    list->step = step_;
    list->tables.resize(sparse_.size());
  }
  run_jobs(sparse_.size(), rows.empty() ? 0 : rows[0].size(), [&](size_t i) {
    const std::span<const Key> keys = view.pull[shape_.sets[i]];
    if (list == nullptr)
      sparse_[i]->pull_existing(keys, rows[i]);
    else
      sparse_[i]->pull(keys, rows[i], {}, list->tables[i]);
  });
}

/// If every member of the step group has ended the step.
void PsServer::complete_step() {
  const Lock group(group_);
  std::vector<Worker*> members;
  for (Worker& worker : workers_) {
    if (worker.left) {
      // What a worker sent before it left still counts.
      const Lock lock(worker.mutex);
      if (worker.held) members.push_back(&worker);
      continue;
    }
    if (!worker.member) continue;
    const Lock lock(worker.mutex);
    if (!worker.held) return;
    members.push_back(&worker);
  }
  if (!members.empty()) complete_step_of(members);
}

void PsServer::complete_step_of(const std::vector<Worker*>& members) {
  const FlushDenormals flush;
  const uint64_t step = ++step_;
  uint64_t staleness = 0;
  std::string trouble;
  try {
    if (members.size() == 1) {
      const Lock lock(members[0]->mutex);
      apply(*members[0], members[0]->held->view, step, staleness);
    } else {
      apply_mean(members, step);
    }
  } catch (const std::exception& e) {  // it may be half applied: it must not come again
    trouble = fmt::format("step {}: {}", step, e.what());
  }
  for (Worker* worker : members) {
    const Lock lock(worker->mutex);
    const Held held = std::move(*worker->held);
    worker->held.reset();
    if (!trouble.empty()) {
      turn_away(*worker, trouble);
      continue;
    }
    worker->applied = held.view.head.sequence;
    ++worker->pushed;
    try {
      answer(*worker, held.view, 0);
    } catch (const std::exception& e) {
      turn_away(*worker, e.what());
    }
  }
}

void PsServer::turn_away(Worker& worker, const std::string& why) {
  if (worker.link == nullptr) return;
  say(fmt::format("{}: {}", worker.link->peer(), why));
  worker.link->send(text_frame(FrameKind::error, static_cast<uint64_t>(Severity::final), why));
  worker.link->close(why);
}

/// Adds in the order of the workers, so that the bits do not depend on who came first.
void PsServer::apply_mean(const std::vector<Worker*>& members, uint64_t step) {
  const float share = 1.0F / static_cast<float>(members.size());
  bool first = true;
  sums_.resize(shape_.dense_floats);
  for (Worker* worker : members) {
    const Lock lock(worker->mutex);
    const ExchangeView& view = worker->held->view;
    if (!view.head.has(ExchangeHead::kPushDense)) continue;
    take_scaled(view.dense, share, first, sums_.data());
    first = false;
  }
  const std::span<const float> sums = sums_;
  if (!first)
    run_jobs(dense_.size(), sums.size(), [&](size_t i) {
      dense_[i]->push_all(sums.subspan(dense_at_[i], dense_[i]->spec().elements), step);
    });
  for (size_t table = 0; table < sparse_.size(); ++table) {
    step_keys_.clear();
    step_grads_.clear();
    for (Worker* worker : members) {
      const Lock lock(worker->mutex);
      for (const ExchangeView::List& list : worker->held->view.lists) {
        const std::span<const Key> keys = list.keys.empty()
                                              ? kept(*worker, list.number)->tables[table].keys()
                                              : list.keys[shape_.sets[table]];
        step_keys_.insert(step_keys_.end(), keys.begin(), keys.end());
        const size_t at = step_grads_.size();
        step_grads_.resize(at + list.grads[table].size());
        take_scaled(list.grads[table], share, true, step_grads_.data() + at);
      }
    }
    sparse_[table]->push(step_keys_, step_grads_, step);
  }
}

/// Threads share what is large; jobs of exchanges that come meanwhile are run where they are.
void PsServer::run_jobs(size_t jobs, size_t floats, FunctionRef<void(size_t)> job) {
  if (options_.threads <= 1 || jobs <= 1 || floats < kLargeExchange || !team_mutex_.try_lock()) {
    for (size_t i = 0; i < jobs; ++i) job(i);
    return;
  }
  const Lock lock(team_mutex_, std::adopt_lock);
  team_.run(jobs, [&](size_t i, size_t) {
    const FlushDenormals flush;
    job(i);
  });
}

}  // namespace argosy
