#include "argosy/ps/ledger.h"

#include <algorithm>
#include <utility>

namespace argosy::ps {

void Ledger::begin_anew(uint32_t worker, const Hello& hello) {
  Entry& entry = entries_[worker];
  entry.incarnation = hello.incarnation;
  entry.restarts = hello.restarts;
  entry.applied = std::max(entry.applied, hello.answered);
  // Exchanges taken from the previous incarnation are in its lane, and will still be applied.
  entry.received = std::max(entry.received, entry.applied);
  entry.lists = std::make_shared<KeptLists>(hello.inflight);
  entry.asked = {};
}

Ledger::Verdict Ledger::judge(uint32_t worker, uint64_t sequence) const {
  const Entry& entry = entries_[worker];
  if (sequence <= entry.applied) return Verdict::answer;
  const bool is_next = sequence == entry.received + 1;
  const bool has_room = entry.received - entry.applied < kMaxUnderWay;
  return is_next && has_room ? Verdict::apply : Verdict::ignore;
}

void Ledger::taken(uint32_t worker, const Trained& trained) {
  Entry& entry = entries_[worker];
  ++entry.received;
  entry.before_last = entry.trained;
  entry.trained = std::max(entry.trained, trained);
}

void Ledger::applied(uint32_t worker, uint64_t sequence, const Trained& trained) {
  Entry& entry = entries_[worker];
  entry.applied = std::max(entry.applied, sequence);
  entry.done = std::max(entry.done, trained);
  entry.received = std::max(entry.received, entry.applied);
}

void Ledger::forget_last(uint32_t worker) {
  Entry& entry = entries_[worker];
  --entry.received;
  entry.trained = entry.before_last;
}

Ledger::VerbVerdict Ledger::take_verb(uint32_t worker, uint64_t id, const std::string& verb,
                                      Env::Time now) {
  Entry::Asked& asked = entries_[worker].asked;
  if (id < asked.id) return VerbVerdict::ignore;
  if (id == asked.id) return asked.answer ? VerbVerdict::answer : VerbVerdict::ignore;
  asked = {.id = id, .verb = verb, .meets = false, .since = now, .answer = {}};
  return VerbVerdict::perform;
}

bool Ledger::answered(const Asker& asker, SharedResult answer) {
  Entry& entry = entries_[asker.worker];
  if (entry.incarnation != asker.incarnation || entry.asked.id != asker.id) return false;
  entry.asked.answer = std::move(answer);
  return true;
}

void Ledger::go_on_from(const ServerMark& mark) {
  for (size_t i = 0; i < std::min(entries_.size(), mark.trained.size()); ++i)
    entries_[i].trained = entries_[i].done = entries_[i].before_last = mark.trained[i];
}

void Ledger::recover(const ServerMark& mark) {
  go_on_from(mark);
  for (size_t i = 0; i < std::min(entries_.size(), mark.applied.size()); ++i)
    entries_[i].received = entries_[i].applied = mark.applied[i];
}

ServerMark Ledger::mark(uint64_t step) const {
  ServerMark mark{.step = step, .applied = {}, .trained = {}};
  for (const Entry& entry : entries_) {
    mark.applied.push_back(entry.applied);
    mark.trained.push_back(entry.trained);
  }
  return mark;
}

ServerMark Ledger::applied_mark(uint64_t step) const {
  ServerMark mark{.step = step, .applied = {}, .trained = {}};
  for (const Entry& entry : entries_) {
    mark.applied.push_back(entry.applied);
    mark.trained.push_back(entry.done);
  }
  return mark;
}

}  // namespace argosy::ps
