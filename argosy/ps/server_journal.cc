// A server's journal: when a record is due, and who waits for it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/ps/server.h"

namespace argosy::ps {
namespace {

constexpr auto kRetry = std::chrono::seconds(1);   // of a record that could not be written
constexpr auto kSpeak = std::chrono::seconds(10);  // of that
constexpr auto kUnled = std::chrono::seconds(2);   // without a step that all servers record

}  // namespace

void Server::open_journal() {
  if (!options_.journal) return;
  const Lock lock(mutex_);
  journal_ = std::make_unique<Journal>(env_, shard_, *options_.journal, options_.job);
  durable_.resize(options_.workers);
  leaving_.resize(options_.workers);
  recorded_ = led_ = journal_spoke_ = env_.now();
  if (options_.journal->offer && find_offers()) return;
  if (const std::optional<JournalState>& state = journal_->recovered()) {
    run_ = state->run;
    settled_ = state->settled;
    step_ = state->mark.step;
    ledger_.recover(state->mark);
    meetings_.recover(journal_->meetings());
    files_.recover(journal_->meetings().files);
    for (size_t i = 0; i < std::min(durable_.size(), state->mark.applied.size()); ++i)
      durable_[i] = state->mark.applied[i];
    for (const uint32_t worker : state->left)
      if (worker < options_.workers) {
        roster_.left(worker);
        group_.leave(worker);
      }
    // The last of them may not have heard that it may go.
    if (roster_.all_are_gone())
      env_.schedule(options_.limits.grace, [weak = weak_from_this()] {
        if (const auto server = weak.lock()) server->end_if_all_are_gone();
      });
  }
  begin_records();
}

void Server::begin_records() {
  if (options_.threads == 0)
    arm_journal_timer();
  else
    journal_thread_ = Thread("journal", [this](const std::stop_token& stop) { run_journal(stop); });
}

/// Without threads, as in a simulation, the timer's thread writes.
void Server::arm_journal_timer() {
  journal_timer_ = env_.schedule(options_.journal->every, [weak = weak_from_this()] {
    const auto server = weak.lock();
    if (server == nullptr) return;
    bool due = false;
    {
      const Lock lock(server->mutex_);
      due = server->record_is_due();
    }
    if (due) server->commit();
    server->arm_journal_timer();
  });
}

void Server::run_journal(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    {
      const Lock lock(mutex_);
      const auto due = [&]() REQUIRES(mutex_) { return record_is_due(); };
      if (!journal_wanted_.wait_for(mutex_, stop, options_.journal->every, due)) continue;
    }
    commit();
  }
}

bool Server::record_is_due() {
  const Env::Time now = env_.now();
  if (journal_trouble_ && now - recorded_ < kRetry) return false;
  if (!when_durable_.empty() || journal_->waiting() || recording_ || cut_is_due() || gathers_ ||
      journal_->gathering())
    return true;
  // The steps of all servers' records should be the same.
  if (options_.sync && now - led_ < kUnled) return false;
  if (shard_.changes()->bytes() >= options_.journal->bytes) return true;
  return now - recorded_ >= options_.journal->every &&
         (progressed_ || journal_->needs_all() || shard_.changes()->any());
}

void Server::job_done() {
  if (journal_ == nullptr) return;
  bool due = false;
  {
    const Lock lock(mutex_);
    --jobs_;
    progressed_ = true;
    due = recording_ || cut_is_due() ||
          (!options_.sync && shard_.changes()->bytes() >= options_.journal->bytes);
  }
  at_rest_.notify_all();
  if (due) want_record();
}

void Server::want_record() {
  journal_wanted_.notify_one();
  if (options_.threads > 0) return;
  env_.schedule({}, [weak = weak_from_this()] {
    if (const auto server = weak.lock()) server->commit();
  });
}

void Server::alone(FunctionRef<void()> task) {
  if (journal_ == nullptr) return task();
  {
    const Lock lock(mutex_);
    const auto free = [&]() REQUIRES(mutex_) { return !alone_; };
    at_rest_.wait(mutex_, free);
    alone_ = true;
    const auto at_rest = [&]() REQUIRES(mutex_) { return jobs_ == 0 && !posting_; };
    at_rest_.wait(mutex_, at_rest);
  }
  const auto end = [this] {
    {
      const Lock lock(mutex_);
      alone_ = false;
    }
    at_rest_.notify_all();
    post_jobs();
  };
  try {
    task();
  } catch (...) {
    end();
    throw;
  }
  end();
}

/// One record. Whoever has to wait for its bytes to be written does so without holding anybody up.
void Server::commit() {
  std::vector<std::function<void()>> then;
  std::optional<CutUnderWay> cut;
  alone([&] {
    JournalState state;
    std::optional<PastMeetings> meetings;
    {
      const Lock lock(mutex_);
      recorded_ = env_.now();
      if (journal_->waiting()) return;
      if (std::exchange(recording_, false)) led_ = recorded_;
      state.mark = ledger_.applied_mark(applied_step());
      state.run = run_;
      state.settled = settled_;
      for (uint32_t worker = 0; worker < options_.workers; ++worker)
        if (leaving_[worker] || roster_.has_left(worker)) state.left.push_back(worker);
      const uint64_t version = meetings_.version() + files_.version();
      if (std::exchange(meetings_written_, version) != version) meetings = past_meetings();
      progressed_ = false;
      then.swap(when_durable_);
      if (std::exchange(gathers_, false)) journal_->begin_gathering();
      if (cut_is_due()) {
        cut.swap(cut_);
        cut->mark = state.mark;
      }
    }
    for (size_t table = 0; cut && table < shard_.tables(); ++table)
      cut->rows.push_back(shard_.table(table).size());
    journal_->collect(std::move(state), std::move(meetings));
  });
  try {
    record_written(journal_->write());
  } catch (const IoError& e) {
    give_up_cut(cut, e.what());
    {
      const Lock lock(mutex_);
      when_durable_.insert(when_durable_.begin(), std::make_move_iterator(then.begin()),
                           std::make_move_iterator(then.end()));
      const Env::Time now = env_.now();
      if (!journal_trouble_) journal_trouble_ = now;
      if (*journal_trouble_ != now && now - journal_spoke_ < kSpeak) return;
      journal_spoke_ = now;
    }
    return say(fmt::format("its journal cannot be written, so workers wait: {}", e.what()));
  }
  for (const auto& task : then) task();
  if (!journal_->gathering()) answer_gathered();
  if (cut) make_cut(std::move(*cut));
}

PastMeetings Server::past_meetings() const {
  PastMeetings past = meetings_.past();
  past.files = files_.past();
  return past;
}

void Server::begin_leaving(uint32_t worker) {
  if (journal_ == nullptr) return;
  const Lock lock(mutex_);
  leaving_[worker] = true;
}

/// Tells workers what they need not keep any more.
void Server::record_written(const JournalState& state) {
  std::vector<std::pair<std::shared_ptr<Link>, uint64_t>> news;
  bool again = false;
  {
    const Lock lock(mutex_);
    again = std::exchange(journal_trouble_, std::nullopt).has_value();
    for (uint32_t worker = 0; worker < options_.workers; ++worker) {
      const uint64_t applied = state.mark.applied[worker];
      if (applied == durable_[worker]) continue;
      durable_[worker] = applied;
      if (links_[worker] != nullptr) news.emplace_back(links_[worker], applied);
    }
  }
  if (again) say("its journal is written again; nothing is lost");
  for (const auto& [link, applied] : news) link->send(small_frame(FrameKind::durable, applied, {}));
}

void Server::when_durable(std::function<void()> task) {
  if (journal_ == nullptr) return task();
  {
    const Lock lock(mutex_);
    when_durable_.push_back(std::move(task));
  }
  want_record();
}

/// A disk that stays full, or gone, ends the server, with all it has answered in the journal or
/// with the workers.
void Server::end_without_journal(Env::Time now) {
  {
    const Lock lock(mutex_);
    if (!journal_trouble_ || now - *journal_trouble_ < options_.limits.give_up) return;
    failure_ =
        fmt::format("the journal in {} could not be written for {:g} s", options_.journal->folder,
                    std::chrono::duration<double>(now - *journal_trouble_).count());
  }
  stop();
}

std::string Server::failure() {
  const Lock lock(mutex_);
  return failure_;
}

void Server::welcome_when_durable(uint32_t worker, uint64_t sequence, std::function<void()> send) {
  {
    const Lock lock(mutex_);
    if (journal_ != nullptr && durable_[worker] < sequence) {
      when_durable_.emplace_back([weak = weak_from_this(), worker, sequence, send] {
        if (const auto server = weak.lock()) server->welcome_when_durable(worker, sequence, send);
      });
      journal_wanted_.notify_one();
      return;
    }
  }
  send();
}

}  // namespace argosy::ps
