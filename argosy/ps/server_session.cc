// Links of a server: who may come in, what is heard from them, how they are lost.
#include "argosy/ps/server_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace argosy::ps {
namespace {

constexpr size_t kMaxInflight = 1 << 16;

}  // namespace

Transport::OnAccept Server::acceptor() {
  return [self = shared_from_this()](std::shared_ptr<Link> link) {
    {
      const Lock lock(self->mutex_);
      self->strangers_[link.get()] = {link, self->env_.now()};
    }
    return std::make_shared<Session>(self, std::move(link));
  };
}

void Server::Session::on_frame(InFrame frame) try {
  if (frame.kind == FrameKind::hello) return server_->greet(*this, frame);
  check<DataError>(worker_.has_value(), "a frame of kind ", static_cast<int>(frame.kind),
                   " before the hello");
  switch (frame.kind) {
    case FrameKind::exchange:
      return server_->take_exchange(*this, std::move(frame));
    case FrameKind::control:
      return server_->take_verb(*this, frame);
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

void Server::Session::refuse(Severity severity, const std::string& why) {
  refused_ = true;
  server_->say(fmt::format("{}: {}", link_->peer(), why));
  link_->send(text_frame(FrameKind::error, static_cast<uint64_t>(severity), why));
  link_->close(why);
}

void Server::check_hello(const Session& session, const Hello& hello) const {
  const uint64_t plan = shard_.placement().hash();
  check<Refused>(hello.job == options_.job, "job '", hello.job, "', this is a server of job '",
                 options_.job, "'");
  check<Refused>(hello.plan_hash == plan, "plan ", fmt::format("{:x}", hello.plan_hash),
                 " of the worker is not the server's ", fmt::format("{:x}", plan),
                 ": both must run the same model with the same settings");
  check<Refused>(hello.workers == options_.workers, "the worker counts ", hello.workers,
                 " workers, the server ", options_.workers);
  check<Refused>(hello.worker < options_.workers, "worker ", hello.worker, " but only ",
                 options_.workers, " workers");
  check<Refused>(hello.inflight > 0 && hello.inflight <= kMaxInflight, "inflight ", hello.inflight,
                 ", expected 1 to ", kMaxInflight);
  check<Refused>(!session.worker_ || *session.worker_ == hello.worker, "this link is worker ",
                 session.worker_.value_or(0), "'s, now it says it is worker ", hello.worker);
}

void Server::greet(Session& session, const InFrame& frame) {
  const Hello hello = decode_hello(frame);
  check_hello(session, hello);
  if (!is_settled(session, hello)) return;
  find_run(hello);
  std::shared_ptr<Link> before;
  bool anew = false, revived = false;
  Welcome welcome{.server = options_.index,
                  .applied = 0,
                  .step = step_,
                  .incarnation = incarnation_,
                  .journal = journal_ != nullptr && options_.journal->recover ? 1U : 0U};
  {
    const Lock lock(mutex_);
    Ledger::Entry& entry = ledger_[hello.worker];
    std::shared_ptr<Link>& link = links_[hello.worker];
    const bool same = roster_.has_come(hello.worker) && entry.incarnation == hello.incarnation;
    // A launcher starts a worker again when the one before it has ended, heard of or not.
    const bool restarted = hello.restarts > entry.restarts;
    check<Refused>(same || link == nullptr || !roster_.is_awaited(hello.worker) || restarted,
                   "worker ", hello.worker, " is here already, from ",
                   link != nullptr ? link->peer() : std::string(),
                   "; a second one with this number came from ", session.link_->peer());
    anew = !same;
    // Behind what another server had of an earlier process nothing was ever sent to this one.
    check<Refused>(
        !anew || welcome.journal == 0 || hello.answered <= std::max(entry.applied, hello.first),
        "the journal of this server has ", entry.applied, " exchanges of worker ", hello.worker,
        ", which cannot send those up to ", hello.answered, " again: they are lost");
    if (anew) begin_anew(hello);
    // A process that was started again begins behind what any server has of the one before.
    if (hello.answered > entry.applied) ledger_.applied(hello.worker, hello.answered);
    strangers_.erase(session.link_.get());
    before = std::exchange(link, session.link_);
    // Who has left by the journal does not come back: it only hears so again.
    if (!roster_.has_left(hello.worker) || (!same && journal_ == nullptr)) {
      revived = roster_.came(hello.worker, env_.now()) > Roster::State::lost && same;
      if (revived && !hello.paused) group_.join(hello.worker);
    }
    session.worker_ = hello.worker;
    // Exchanges taken from an earlier incarnation are applied before any of this one.
    welcome.applied = anew ? entry.received : entry.applied;
    welcome.settled = settled_;
  }
  // A worker whose welcome is late says hello again, over the same link.
  if (before != nullptr && before != session.link_) before->close("the worker came again");
  const auto send = [link = session.link_, id = frame.id, welcome] {
    link->send(small_frame(FrameKind::welcome, id, encode(welcome)));
  };
  // Nobody could send again what an earlier process of this worker has sent.
  if (anew)
    welcome_when_durable(hello.worker, welcome.applied, send);
  else
    send();
  if (revived) say(fmt::format("worker {} was taken for dead and is back", hello.worker));
  if (!anew) return;
  end_step_if_complete();
  settle_meetings();
}

/// A worker that this server does not know, or not in this incarnation.
void Server::begin_anew(const Hello& hello) {
  const uint32_t worker = hello.worker;
  if (hello.answered > ledger_[worker].applied) say(losses(hello));
  if (group_.forget(worker)) ledger_.forget_last(worker);
  ledger_.begin_anew(worker, hello);
  const uint64_t pass = meetings_.pass();
  meetings_.begin_anew(hello);
  // A pass began with everybody who is left: who has paused before it is about to join.
  if (meetings_.pass() > pass)
    for (uint32_t other = 0; other < roster_.size(); ++other)
      if (roster_.is_awaited(other)) group_.join(other);
  if (hello.paused && hello.pass >= meetings_.pass())
    group_.leave(worker);
  else
    group_.join(worker);
}

/// What a worker had pushed to the previous server process, and what of it is lost.
std::string Server::losses(const Hello& hello) const {
  if (!save_ || hello.worker >= save_->applied.size())
    return fmt::format(
        "worker {} had {} exchanges with a server before this one and goes on: what that one held "
        "is lost, but for what was loaded",
        hello.worker, hello.answered);
  const auto behind = [](uint64_t saved, uint64_t seen) { return seen - std::min(saved, seen); };
  const uint64_t saved = save_->applied[hello.worker];
  return fmt::format(
      "worker {} had {} exchanges with a server before this one and goes on: the save has {} of "
      "them, {} are lost; it saw step {}, the save has step {}, {} steps are lost",
      hello.worker, hello.answered, std::min(saved, hello.answered), behind(saved, hello.answered),
      hello.step, save_->step, behind(save_->step, hello.step));
}

/// A part of something.
void Server::heard(const Session& session) {
  const Lock lock(mutex_);
  if (session.worker_ && links_[*session.worker_] == session.link_)
    roster_.heard(*session.worker_, env_.now());
}

void Server::lost(Session& session, const std::string& reason) {
  const Lock lock(mutex_);
  if (!session.worker_) {
    if (!session.refused_)
      say(fmt::format("{} went before its hello: {}", session.link_->peer(), reason));
    strangers_.erase(session.link_.get());
    return;
  }
  const uint32_t worker = *session.worker_;
  if (links_[worker] != session.link_) return;
  links_[worker].reset();
  if (roster_.is_awaited(worker)) say(fmt::format("lost worker {}: {}", worker, reason));
  roster_.lost(worker, env_.now());
}

void Server::answer_ping(Session& session, uint64_t id) {
  const uint32_t worker = *session.worker_;
  Pong pong;
  bool waiting = false;
  {
    const Lock lock(mutex_);
    roster_.heard(worker, env_.now());
    const Ledger::Entry& entry = ledger_[worker];
    pong.received = entry.received;
    pong.applied = entry.applied;
    waiting = group_.holds(worker) || (entry.asked.id > 0 && !entry.asked.answer);
  }
  if (waiting) pong.waits_for = waits_for({});
  session.link_->send(small_frame(FrameKind::pong, id, encode(pong)));
}

}  // namespace argosy::ps
