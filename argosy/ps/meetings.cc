#include "argosy/ps/meetings.h"

#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/error.h"

namespace argosy::ps {
namespace {

std::vector<std::byte> gathered(const std::map<uint32_t, std::vector<std::byte>>& parts) {
  verbs::Gathered all;
  for (const auto& [worker, bytes] : parts) all.parts.push_back({worker, bytes});
  return encode_fields(all);
}

}  // namespace

Meetings::Meeting& Meetings::meeting(const Id& id, const Asker& asker, const std::string& name,
                                     std::vector<std::byte> bytes, Env::Time now) {
  Meeting& meeting = open_[id];
  if (meeting.parts.empty()) {
    meeting.name = name;
    meeting.since = now;
  }
  check<DataError>(meeting.name == name, "worker ", asker.worker, " is at '", name, "', worker ",
                   meeting.parts.empty() ? asker.worker : meeting.parts.begin()->first, " at '",
                   meeting.name, "', both as number ", id.number,
                   ": every worker must make the same calls in the same order");
  meeting.parts[asker.worker] = std::move(bytes);
  meeting.askers[asker.worker] = asker;
  return meeting;
}

void Meetings::come(const Asker& asker, verbs::Gather gather, Env::Time now) {
  meeting({Kind::gather, gather.series, gather.number}, asker, gather.name, std::move(gather.bytes),
          now);
}

void Meetings::come(const Asker& asker, const verbs::Join& join, Env::Time now) {
  meeting({Kind::join, "", join.pass}, asker, "", {}, now);
}

void Meetings::come(const Asker& asker, verbs::Milestone milestone, Env::Time now) {
  meeting({Kind::milestone, "", milestone.number}, asker, milestone.name,
          std::move(milestone.bytes), now);
  missed_.erase({asker.worker, milestone.number});
  // Arriving at a milestone means that all earlier ones are over, also on a previous server.
  if (milestone.number > milestone_ + 1) {
    milestone_ = milestone.number - 1;
    milestone_answer_.clear();
  }
}

void Meetings::begin_anew(const Hello& hello) {
  const uint32_t worker = hello.worker;
  pass_ = std::max(pass_, hello.pass);
  if (hello.milestone > milestone_) {
    milestone_ = hello.milestone;
    milestone_answer_.clear();
  }
  for (const auto& [series, number] : hello.gathered) {
    uint64_t& last = gathers_[series].last;
    last = std::max(last, number);
  }
  for (auto& [id, meeting] : open_) {
    meeting.parts.erase(worker);
    meeting.askers.erase(worker);
  }
  std::erase_if(open_, [](const auto& entry) { return entry.second.parts.empty(); });
  std::erase_if(standing_, [&](const auto& entry) { return entry.first.worker == worker; });
}

/// The workers that are waited for and have not come: at a gather, and of the first worker at a
/// milestone, for as long as they may come back.
std::vector<uint32_t> Meetings::missing(const Id& id, const Meeting& meeting) const {
  std::vector<uint32_t> workers;
  for (uint32_t i = 0; i < roster_.size(); ++i) {
    const bool holds_on = id.kind == Kind::gather || (i == 0 && id.kind == Kind::milestone);
    const bool expected = holds_on ? roster_.may_return(i) : roster_.is_awaited(i);
    if (expected && !meeting.parts.contains(i)) workers.push_back(i);
  }
  return workers;
}

/// It was completed before some of its workers came.
bool Meetings::is_over(const Id& id) const {
  switch (id.kind) {
    case Kind::join:
      return id.number <= pass_;
    case Kind::milestone:
      return id.number <= milestone_;
    case Kind::gather:
      break;
  }
  const auto past = gathers_.find(id.series);
  return past != gathers_.end() && id.number <= past->second.last;
}

/// A gather that is over, whose answer is not kept.
bool Meetings::is_lost(const Id& id) const {
  return id.kind == Kind::gather && is_over(id) &&
         !gathers_.at(id.series).answers.contains(id.number);
}

std::vector<std::byte> Meetings::answer_past(const Id& id) const {
  switch (id.kind) {
    case Kind::join:
      return encode_fields(verbs::Done{});
    case Kind::milestone:
      return id.number == milestone_ && !milestone_answer_.empty() ? milestone_answer_
                                                                   : gathered({});
    case Kind::gather:
      break;
  }
  return is_lost(id) ? gathered({}) : gathers_.at(id.series).answers.at(id.number);
}

std::vector<std::byte> Meetings::end(const Id& id, const Meeting& meeting, Outcome& outcome) {
  if (id.kind == Kind::join)
    for (const auto& [worker, bytes] : meeting.parts) outcome.joined.push_back(worker);
  if (is_over(id)) return answer_past(id);
  ++version_;
  if (id.kind == Kind::join) {
    pass_ = id.number;
    return encode_fields(verbs::Done{});
  }
  std::vector<std::byte> answer = gathered(meeting.parts);
  if (id.kind == Kind::gather) {
    keep(id, answer);
  } else {
    milestone_ = id.number;
    milestone_answer_ = answer;
    for (uint32_t worker = 0; worker < roster_.size(); ++worker)
      if (!meeting.parts.contains(worker) && !roster_.has_left(worker))
        missed_.emplace(worker, id.number);
  }
  return answer;
}

void Meetings::keep(const Id& id, const std::vector<std::byte>& answer) {
  Past& past = gathers_[id.series];
  past.last = std::max(past.last, id.number);
  past.answers[id.number] = answer;
  kept_.emplace_back(id.series, id.number);
  kept_bytes_ += answer.size();
  for (; kept_bytes_ > kKept && kept_.size() > 1; kept_.pop_front()) {
    const auto& [series, number] = kept_.front();
    auto& answers = gathers_[series].answers;
    kept_bytes_ -= answers[number].size();
    answers.erase(number);
  }
}

Meetings::Outcome Meetings::settle() {
  Outcome outcome;
  for (;;) {
    // Finished ones first, while their answers are still kept.
    auto at = std::ranges::find_if(open_, [&](const auto& open) { return is_over(open.first); });
    if (at == open_.end())
      at = std::ranges::find_if(
          open_, [&](const auto& open) { return missing(open.first, open.second).empty(); });
    if (at == open_.end()) break;
    const Meeting& meeting = at->second;
    const bool lost = is_lost(at->first);
    Answer answer{.askers = {}, .bytes = end(at->first, meeting, outcome)}, refusal;
    for (const auto& [worker, asker] : meeting.askers)
      (lost && !meeting.parts.at(worker).empty() ? refusal : answer).askers.push_back(asker);
    if (!refusal.askers.empty())
      refusal.error = fmt::format(
          "gather {}, '{}', is over, and what it gave is not kept any more: more than {} MB have "
          "been gathered since, or the server that had it was lost",
          at->first.number, meeting.name, kKept >> 20);
    for (Answer* each : {&answer, &refusal})
      if (!each->askers.empty()) outcome.answers.push_back(std::move(*each));
    open_.erase(at);
  }
  // Only when all have come: a server that was started anew hears from them where the job stands.
  if (roster_.all_have_come()) {
    for (const auto& [asker, series] : std::exchange(standing_, {})) {
      const verbs::Standing::Result result{milestone_, gathers_[series].last};
      outcome.answers.push_back(Answer{{asker}, encode_fields(result)});
    }
  }
  return outcome;
}

PastMeetings Meetings::past() const {
  PastMeetings all{
      .pass = pass_, .milestone = milestone_, .milestone_answer = milestone_answer_, .series = {}};
  for (const auto& [name, past] : gathers_) {
    PastMeetings::Series& series = all.series.emplace_back();
    series.name = name;
    series.last = past.last;
    for (const auto& [number, bytes] : past.answers) series.answers.push_back({number, bytes});
  }
  return all;
}

void Meetings::recover(const PastMeetings& past) {
  pass_ = past.pass;
  milestone_ = past.milestone;
  milestone_answer_ = past.milestone_answer;
  for (const PastMeetings::Series& series : past.series) {
    for (const PastMeetings::Answer& answer : series.answers)
      keep({Kind::gather, series.name, answer.number}, answer.bytes);
    gathers_[series.name].last = series.last;
  }
}

verbs::Missed::Result Meetings::missed() const {
  verbs::Missed::Result result;
  for (const auto& [worker, milestone] : missed_) result.all.push_back({worker, milestone});
  return result;
}

std::string Meetings::text(const Id& id, const Meeting& meeting) {
  switch (id.kind) {
    case Kind::join:
      return verbs::Join{id.number}.text();
    case Kind::milestone:
      return verbs::Milestone{id.number, meeting.name, {}}.text();
    case Kind::gather:
      break;
  }
  return verbs::Gather{id.series, id.number, meeting.name, {}}.text();
}

std::vector<Meetings::Wait> Meetings::waits() const {
  std::vector<Wait> all;
  for (const auto& [id, meeting] : open_) {
    Wait wait{.what = text(id, meeting),
              .here = {},
              .missing = missing(id, meeting),
              .since = meeting.since};
    for (const auto& [worker, asker] : meeting.askers) wait.here.push_back(worker);
    if (!wait.missing.empty()) all.push_back(std::move(wait));
  }
  return all;
}

}  // namespace argosy::ps
