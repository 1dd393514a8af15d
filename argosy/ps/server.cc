#include "argosy/ps/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "argosy/base/call.h"
#include "argosy/base/error.h"
#include "argosy/ps/server_session.h"
#include "argosy/ps/tier_metrics.h"

namespace argosy::ps {
namespace {

constexpr Env::Duration kTick = std::chrono::milliseconds(500);
constexpr size_t kMaxResult = size_t{1} << 30;  // bytes, as LinkOptions::max_frame

double seconds(Env::Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// A server without threads reads rows in tasks of its environment.
TableHome home_of(const ServerOptions& options, Env& env) {
  TableHome home;
  if (options.table_folder.empty())
    home = {};
  else if (options.threads == 0)
    home = {.env = &env, .folder = options.table_folder};
  else
    home = TableHome::in(env, options.table_folder);
  home.metrics = std::make_shared<TierMetrics>(options.metrics);
  return home;
}

std::map<std::string, Verb> verbs_by_name() {
  std::map<std::string, Verb> verbs;
  for (const VerbPlugin& plugin : builtin_verbs()) {
    Verb verb = plugin.make();
    verbs.emplace(verb.name, std::move(verb));
  }
  return verbs;
}

/// A result frame: one byte that says whether it went well, then the result or the reason.
SharedResult failed(std::string_view why) {
  std::vector<std::byte> result(1 + why.size(), std::byte{1});
  std::ranges::copy(std::as_bytes(std::span(why)), result.begin() + 1);
  return std::make_shared<const std::vector<std::byte>>(std::move(result));
}

SharedResult went_well(std::vector<std::byte> result) {
  result.insert(result.begin(), std::byte{0});
  return std::make_shared<const std::vector<std::byte>>(std::move(result));
}

OutFrame result_frame(uint64_t id, const SharedResult& result) {
  return {FrameKind::result, id, {std::span(*result)}, {result}};
}

}  // namespace

std::shared_ptr<Server> Server::make(Env& env, Placement placement, ServerOptions options) {
  if (options.metrics == nullptr) options.metrics = std::make_shared<Metrics>();
  std::shared_ptr<Server> server(new Server(env, std::move(placement), std::move(options)));
  server->arm_timer();
  server->open_journal();
  return server;
}

Server::Server(Env& env, Placement placement, ServerOptions options)
    : env_(env),
      options_(std::move(options)),
      metrics_(*options_.metrics),
      incarnation_(env.random()),
      verbs_(verbs_by_name()),
      shard_(std::move(placement), options_.index, std::max<size_t>(options_.threads, 1),
             home_of(options_, env)),
      roster_(options_.workers, options_.limits, env.now()),
      ledger_(options_.workers),
      group_(options_.workers),
      meetings_(roster_),
      files_(options_.workers),
      links_(options_.workers),
      started_(env.now()),
      spoke_(env.now()),
      posted_(options_.workers),
      lanes_(shard_.parts(),
             options_.threads <= 1 ? Lanes::Threads::none : Lanes::Threads::one_per_part) {
  check<ConfigError>(options_.workers > 0, "a server needs at least one worker");
}

Server::~Server() {
  env_.cancel(timer_);
  env_.cancel(journal_timer_);
}

void Server::say(const std::string& text) const {
  if (options_.log) options_.log(fmt::format("server {}: {}", options_.index, text));
}

void Server::arm_timer() {
  // Several times within whatever is waited for.
  const RosterLimits& limits = options_.limits;
  const Env::Duration period = std::min({kTick, limits.quiet / 8, limits.grace / 8});
  timer_ = env_.schedule(period, [weak = weak_from_this()] {
    if (const auto server = weak.lock()) {
      server->tick();
      server->arm_timer();
    }
  });
}

/// Looks after what nobody's frame will bring about.
void Server::tick() {
  const Env::Time now = env_.now();
  const RosterLimits& limits = options_.limits;
  Roster::Changes changes;
  std::vector<std::shared_ptr<Link>> silent, strange;
  {
    const Lock lock(mutex_);
    for (const auto& [key, stranger] : strangers_)
      if (now - stranger.since > limits.quiet)
        if (auto link = stranger.link.lock()) strange.push_back(std::move(link));
    changes = roster_.tick(now);
    for (const uint32_t worker : changes.silent)
      if (links_[worker] != nullptr) silent.push_back(links_[worker]);
    for (const auto* list : {&changes.silent, &changes.dead, &changes.absent})
      for (const uint32_t worker : *list) group_.leave(worker);
  }
  for (const auto& link : silent)
    link->close(
        fmt::format("nothing was heard from {} for {:g} s", link->peer(), seconds(limits.quiet)));
  for (const auto& link : strange)
    link->close(fmt::format("no hello came for {:g} s", seconds(limits.quiet)));
  for (const uint32_t worker : changes.silent)
    say(fmt::format("worker {} is taken for dead: nothing was heard of it for {:g} s", worker,
                    seconds(limits.quiet)));
  for (const uint32_t worker : changes.dead)
    say(fmt::format("worker {} is taken for dead: its link has been gone for {:g} s", worker,
                    seconds(limits.grace)));
  for (const uint32_t worker : changes.absent)
    say(fmt::format("worker {} has not come for {:g} s and is taken for dead", worker,
                    seconds(limits.come_within)));
  for (const uint32_t worker : changes.gone)
    say(fmt::format("worker {} has not come back and is given up", worker));
  if (changes.any()) {
    end_step_if_complete();
    settle_meetings();
    end_if_all_are_gone();
  }
  end_without_journal(now);
  {
    const Lock lock(mutex_);
    if (now - spoke_ < options_.patience) return;
    spoke_ = now;
  }
  if (const std::string waiting = waits_for(options_.patience); !waiting.empty()) say(waiting);
}

bool Server::done() const {
  const Lock lock(done_mutex_);
  return done_;
}

void Server::wait(const std::function<bool()>& stop) {
  constexpr auto kAsk = std::chrono::milliseconds(100);
  const Lock lock(done_mutex_);
  while (!done_ && !(stop && stop())) done_changed_.wait_until(done_mutex_, env_.now() + kAsk);
}

void Server::wait_for_goodbyes(Env::Duration at_most) {
  constexpr auto kAsk = std::chrono::milliseconds(5);
  const Env::Time until = env_.now() + at_most;
  const auto linked = [&] {
    const Lock lock(mutex_);
    return std::ranges::any_of(links_, [](const auto& link) { return link != nullptr; });
  };
  const Lock lock(done_mutex_);
  while (linked() && env_.now() < until) done_changed_.wait_until(done_mutex_, env_.now() + kAsk);
}

void Server::stop() {
  {
    const Lock lock(done_mutex_);
    done_ = true;
  }
  done_changed_.notify_all();
}

void Server::end_if_all_are_gone() {
  {
    const Lock lock(mutex_);
    if (!roster_.all_are_gone()) return;
  }
  stop();
}

void Server::take_exchange(Session& session, InFrame frame) {
  const uint32_t worker = *session.worker_;
  const auto exchange = argosy::ps::take_exchange(shard_, std::move(frame));
  const ExchangeView& view = exchange->view;
  {
    const Lock lock(mutex_);
    if (links_[worker] != session.link_) return;
    roster_.heard(worker, env_.now());
    if (group_.holds(worker)) return;  // what comes behind will come again
    Ledger::Entry& entry = ledger_[worker];
    exchange->worker = worker;
    exchange->incarnation = entry.incarnation;
    exchange->lists = entry.lists;
    const Ledger::Verdict verdict = ledger_.judge(worker, view.head.sequence);
    if (verdict == Ledger::Verdict::ignore) return;
    exchange->applies = verdict == Ledger::Verdict::apply;
    if (exchange->applies) {
      check_lists(shard_, *exchange);
      ledger_.taken(worker, view.head.trained);
    }
    if (exchange->applies && options_.sync && view.head.has(ExchangeHead::kEndsStep)) {
      group_.hold(worker, exchange, env_.now());
    } else {
      const bool is_step = exchange->applies && view.pushes();
      const uint64_t before = step_, step = is_step ? ++step_ : before;
      for (const TakenExchange::Push& push : exchange->pushes)
        if (push.kept != nullptr)
          exchange->staleness += step - 1 - std::min(step - 1, push.kept->step);
      add_job(worker, {exchange}, before);
    }
  }
  end_step_if_complete();
  post_jobs();
}

/// Of the present step.
void Server::add_job(uint32_t lane, std::vector<std::shared_ptr<TakenExchange>> exchanges,
                     uint64_t steps_before, Then then) {
  const auto on_done = [this](ExchangeJob& job, const std::string& trouble) {
    exchanged(job, trouble);
  };
  to_post_.push_back({lane,
                      std::make_shared<ExchangeJob>(shard_, buffers_, memory_, std::move(exchanges),
                                                    step_, on_done),
                      steps_before, then == Then::record});
}

/// While nothing is worked on: of what was posted. The others are counted and have not begun.
uint64_t Server::applied_step() const {
  return to_post_.empty() ? step_.load() : to_post_.front().steps_before;
}

/// In the order in which they were taken, whichever threads took them. A job may be done inside of
/// the post, and others be taken by that.
void Server::post_jobs() {
  for (;;) {
    Posting next;
    {
      const Lock lock(mutex_);
      if (posting_ || alone_ || recording_ || to_post_.empty()) return;
      if (waits_for_cut(*to_post_.front().job)) return;
      posting_ = true;
      ++jobs_;
      next = std::move(to_post_.front());
      to_post_.pop_front();
      recording_ = next.recorded;
      for (const auto& exchange : next.job->exchanges())
        if (exchange->applies) posted_[exchange->worker] = exchange->view.head.sequence;
    }
    const Lanes::Size size = next.job->size();
    lanes_.post(next.lane, std::move(next.job), size);
    {
      const Lock lock(mutex_);
      posting_ = false;
    }
    if (journal_ != nullptr) at_rest_.notify_all();
  }
}

/// If every member of the step group has ended the step.
void Server::end_step_if_complete() {
  {
    const Lock lock(mutex_);
    auto exchanges = group_.take_if_complete();
    if (exchanges.empty()) return;
    const uint32_t lane = options_.workers;  // behind those of the workers
    const bool recorded =
        journal_ != nullptr && std::ranges::any_of(exchanges, [](const auto& exchange) {
          return exchange->view.head.has(ExchangeHead::kRecord);
        });
    add_job(lane, std::move(exchanges), step_++, recorded ? Then::record : Then::next);
  }
  post_jobs();
}

void Server::exchanged(ExchangeJob& job, const std::string& trouble) {
  for (const auto& exchange : job.exchanges()) {
    const ExchangeHead& head = exchange->view.head;
    const bool group_step = options_.sync && head.has(ExchangeHead::kEndsStep);
    ReplyHead reply{.sequence = head.sequence,
                    .step = job.step(),
                    .durable = head.sequence,
                    .staleness = exchange->staleness};
    std::shared_ptr<Link> link;
    {
      const Lock lock(mutex_);
      if (trouble.empty() && exchange->applies)
        ledger_.applied(exchange->worker, head.sequence, head.trained);
      if (journal_ != nullptr) reply.durable = durable_[exchange->worker];
      if (ledger_[exchange->worker].incarnation == exchange->incarnation)
        link = links_[exchange->worker];
    }
    std::memcpy(exchange->reply->bytes().data(), &reply, sizeof reply);
    if (trouble.empty()) metrics_.count(shard_.shape(), *exchange);
    if (!trouble.empty())
      turn_away(exchange->worker, group_step
                                      ? fmt::format("step {}: {}", job.step(), trouble)
                                      : fmt::format("exchange {}: {}", head.sequence, trouble));
    else if (link != nullptr)
      link->send({FrameKind::reply, head.sequence, {exchange->reply->bytes()}, {exchange->reply}});
  }
  job_done();
}

/// It may be half applied: it must not come again.
void Server::turn_away(uint32_t worker, const std::string& why) {
  std::shared_ptr<Link> link;
  {
    const Lock lock(mutex_);
    link = links_[worker];
  }
  if (link == nullptr) return;
  say(fmt::format("{}: {}", link->peer(), why));
  link->send(text_frame(FrameKind::error, static_cast<uint64_t>(Severity::final), why));
  link->close(why);
}

void Server::take_verb(Session& session, const InFrame& frame) {
  Request request = decode_request(frame);
  const auto found = verbs_.find(request.verb);
  const Verb* const verb = found == verbs_.end() ? nullptr : &found->second;
  Asker asker{.worker = *session.worker_, .incarnation = 0, .id = frame.id};
  SharedResult known;
  {
    const Lock lock(mutex_);
    if (links_[asker.worker] != session.link_) return;
    roster_.heard(asker.worker, env_.now());
    Ledger::Entry& entry = ledger_[asker.worker];
    asker.incarnation = entry.incarnation;
    switch (ledger_.take_verb(asker.worker, frame.id, request.verb, env_.now())) {
      case Ledger::VerbVerdict::ignore:
        return;
      case Ledger::VerbVerdict::answer:
        known = entry.asked.answer;
        break;
      case Ledger::VerbVerdict::perform:
        break;
    }
  }
  if (known != nullptr) return session.link_->send(result_frame(frame.id, known));
  if (verb == nullptr) {
    std::vector<std::string> names;
    for (const auto& entry : verbs_) names.push_back(entry.first);
    const std::string near = nearest(request.verb, names);
    return answer(asker,
                  failed(fmt::format("'{}': no such verb{}; there are {}", request.verb,
                                     near.empty() ? "" : fmt::format(", did you mean {}?", near),
                                     fmt::join(names, ", "))));
  }
  auto act = [self = shared_from_this(), asker, verb, fields = std::move(request.fields)] {
    try {
      if (auto result = verb->perform(*self, asker, fields))
        self->answer(asker, went_well(std::move(*result)));
    } catch (const std::exception& e) {
      self->answer(asker, failed(e.what()));
    }
  };
  if (verb->takes_long && options_.background)
    options_.background(std::move(act));
  else
    act();
}

void Server::answer_well(const Asker& asker, std::vector<std::byte> result) {
  answer(asker, went_well(std::move(result)));
}

void Server::refuse(const Asker& asker, const std::string& why) { answer(asker, failed(why)); }

void Server::answer(const Asker& asker, SharedResult result) {
  if (result->size() > kMaxResult)
    result = failed(fmt::format("a result of {} bytes does not fit into a frame", result->size()));
  std::shared_ptr<Link> link;
  {
    const Lock lock(mutex_);
    if (!ledger_.answered(asker, result)) return;
    link = links_[asker.worker];
  }
  if (link != nullptr) link->send(result_frame(asker.id, result));
}

/// Answers those that everybody has come to who is waited for.
void Server::settle_meetings() {
  Meetings::Outcome outcome;
  {
    const Lock lock(mutex_);
    outcome = meetings_.settle();
    for (const uint32_t worker : outcome.joined) group_.join(worker);
  }
  if (outcome.answers.empty()) return;
  // A server that comes back must know what any worker has been told.
  when_durable([this, answers = std::move(outcome.answers)]() mutable {
    for (Meetings::Answer& each : answers) {
      const SharedResult result =
          each.error.empty() ? went_well(std::move(each.bytes)) : failed(each.error);
      for (const Asker& asker : each.askers) answer(asker, result);
    }
  });
}

void Server::saves(const std::string& folder, uint64_t generation) const {
  if (options_.on_save) options_.on_save(folder, generation);
}

void Server::ask_standing(const Asker& asker, const std::string& series) {
  {
    const Lock lock(mutex_);
    meetings_.ask_standing(asker, series);
  }
  settle_meetings();
}

void Server::leave(uint32_t worker) {
  {
    const Lock lock(mutex_);
    if (!roster_.left(worker)) return;
    group_.leave(worker);
  }
  say(fmt::format("worker {} has left", worker));
  end_step_if_complete();
  settle_meetings();
  end_if_all_are_gone();
}

void Server::pause(uint32_t worker, uint64_t pass) {
  {
    const Lock lock(mutex_);
    if (pass < meetings_.pass()) return;
    group_.leave(worker);
  }
  end_step_if_complete();
}

Trained Server::trained(uint32_t worker) {
  const Lock lock(mutex_);
  return ledger_[worker].trained;
}

void Server::resume(std::vector<Trained> trained) {
  check<ConfigError>(trained.size() == options_.workers, "the progress of ", trained.size(),
                     " workers, expected ", options_.workers);
  const Lock lock(mutex_);
  ledger_.go_on_from({.step = step_, .applied = {}, .trained = std::move(trained)});
}

ServerMark Server::mark() {
  const Lock lock(mutex_);
  return ledger_.mark(step_);
}

verbs::Missed::Result Server::missed() {
  const Lock lock(mutex_);
  return meetings_.missed();
}

void Server::goes_on_from(ServerMark mark, uint64_t milestone) {
  const Lock lock(mutex_);
  ledger_.go_on_from(mark);
  save_ = std::move(mark);
  meetings_.go_on_from(milestone);
}

}  // namespace argosy::ps
