// A server of a job that was lost as a whole: it offers where its journal can go on, and goes on
// where worker 0 says, which has heard what all servers offer.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/ps/server_session.h"

namespace argosy::ps {
namespace {

constexpr size_t kMostOffers = 4096;  // steps

/// In async each server goes on where it was: a worker leaves out what a server has. Steps of sync
/// end together, so there only a step that all servers have a record of will do.
std::vector<uint64_t> places_of(const std::vector<JournalState>& states, bool sync) {
  if (!sync) return {settling::kEnds};
  std::set<uint64_t> steps;
  for (auto state = states.rbegin(); state != states.rend() && steps.size() < kMostOffers; ++state)
    steps.insert(settling::at_step(state->mark.step));
  return {steps.begin(), steps.end()};
}

}  // namespace

/// Whether it has something to offer.
bool Server::find_offers() {
  const std::vector<JournalState>& offers = journal_->offers();
  const size_t workers = offers.empty() ? 0 : offers.back().mark.applied.size();
  if (workers == options_.workers) {
    settling_ = Settling::offers;
    return true;
  }
  if (!offers.empty())
    say(fmt::format("its journal is not used: it is of {} workers, now there are {}", workers,
                    options_.workers));
  else if (!journal_->trouble().empty())
    say(fmt::format("its journal cannot be used: {}", journal_->trouble()));
  else
    say("there is no journal of an unfinished run to go on from");
  journal_->take_up(settling::kAnew);
  if (options_.on_settled) options_.on_settled(0);
  return false;
}

bool Server::offers() {
  const Lock lock(mutex_);
  return settling_ != Settling::over;
}

/// If not, the hello is answered with what this server offers, or makes it go on.
bool Server::is_settled(Session& session, const Hello& hello) {
  Offers offers{.server = options_.index};
  {
    const Lock lock(mutex_);
    if (settling_ == Settling::over) return true;
    strangers_.erase(session.link_.get());
    if (std::ranges::find(unsettled_, session.link_) == unsettled_.end())
      unsettled_.push_back(session.link_);
    if (settling_ == Settling::offers && hello.worker == 0 && hello.settled != settling::kNowhere)
      settling_ = Settling::begun;
    else
      offers = {.server = options_.index,
                .run = journal_->offers().back().run,
                .places = places_of(journal_->offers(), options_.sync)};
  }
  if (!offers.places.empty()) {
    session.link_->send(small_frame(FrameKind::offers, 0, encode(offers)));
    return false;
  }
  auto task = [self = shared_from_this(), where = hello.settled, run = hello.incarnation] {
    self->settle(where, run);
  };
  if (options_.background)
    options_.background(std::move(task));
  else
    task();
  return false;
}

/// The exchanges of this job count from 1: how far a worker's data are in this server is what
/// Trained says.
void Server::go_on_at_offer() {
  const JournalState& state = *journal_->recovered();
  run_ = state.run;
  step_ = state.mark.step;
  ledger_.go_on_from(state.mark);
  meetings_.recover(journal_->meetings());
  files_.recover(journal_->meetings().files);
}

/// The number by which journals of different runs are told apart is that of a process of worker 0:
/// all servers hear it.
void Server::find_run(const Hello& hello) {
  if (journal_ == nullptr || hello.worker != 0) return;
  {
    const Lock lock(mutex_);
    if (run_ != 0) return;
    run_ = hello.incarnation;
    progressed_ = true;
  }
  if (options_.on_settled) options_.on_settled(hello.incarnation);
}

void Server::settle(uint64_t where, uint64_t run) try {
  const bool goes_on = settling::goes_on(where);
  journal_->take_up(where);
  if (!goes_on && options_.on_settled) options_.on_settled(run);
  JournalState state;
  PastMeetings meetings;
  {
    const Lock lock(mutex_);
    if (goes_on)
      go_on_at_offer();
    else
      run_ = run;
    settled_ = where;
    state.run = run_;
    state.settled = settled_;
    state.mark = ledger_.applied_mark(step_);
    meetings = past_meetings();
    meetings_written_ = meetings_.version() + files_.version();
  }
  // What is behind it counts no more from here on, and a server that is lost now knows where it is.
  journal_->collect(std::move(state), std::move(meetings));
  journal_->write();
  if (goes_on && options_.on_settled) options_.on_settled(std::nullopt);
  say(goes_on ? fmt::format("goes on from its journal at step {}", step_.load())
              : "its journal is not used: the servers begin anew");
  std::vector<std::shared_ptr<Link>> links;
  {
    const Lock lock(mutex_);
    settling_ = Settling::over;
    links.swap(unsettled_);
  }
  begin_records();
  for (const auto& link : links)
    link->send(small_frame(FrameKind::offers, 0, encode(Offers{.server = options_.index})));
} catch (const Error& e) {
  {
    const Lock lock(mutex_);
    failure_ = e.what();
  }
  stop();
}

}  // namespace argosy::ps
