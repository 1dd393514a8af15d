// A server's cuts: where they fall between exchanges, and how they get to the disk.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/ps/cut.h"
#include "argosy/ps/server.h"

namespace argosy::ps {

std::optional<verbs::Cut::Result> Server::cut(const Asker& asker, const verbs::Cut& verb) {
  check<ConfigError>(
      journal_ != nullptr, "server ", options_.index,
      ": a cut is made of journals, and there is none: expected --durability=journal "
      "or fsync");
  {
    const Lock lock(mutex_);
    check<IoError>(!journal_trouble_, "server ", options_.index, ": its journal cannot be written");
    check<Error>(!cut_, "server ", options_.index, ": another cut is under way");
    // Also by the process before this one, whose journal has it.
    if (std::max(posted_[asker.worker], ledger_[asker.worker].applied) > verb.behind)
      return verbs::Cut::Result{.late = true};
    cut_ = CutUnderWay{.asker = asker, .verb = verb};
  }
  journal_wanted_.notify_one();
  if (options_.threads > 0) return std::nullopt;
  env_.schedule({}, [weak = weak_from_this()] {
    if (const auto server = weak.lock()) server->commit();
  });
  return std::nullopt;
}

void Server::prepare_cut(const Asker& asker) {
  if (journal_ == nullptr) return answer_well(asker, encode_fields(verbs::Done{}));
  {
    const Lock lock(mutex_);
    gathering_.push_back(asker);
    gathers_ = true;
  }
  journal_wanted_.notify_one();
}

/// Whoever came since the record was collected waits for the next one.
void Server::answer_gathered() {
  std::vector<Asker> askers;
  {
    const Lock lock(mutex_);
    if (gathers_) return;
    askers.swap(gathering_);
  }
  for (const Asker& asker : askers) answer_well(asker, encode_fields(verbs::Done{}));
}

/// Everything up to its place is applied.
bool Server::cut_is_due() {
  return cut_ && ledger_[cut_->asker.worker].applied >= cut_->verb.behind;
}

/// What comes behind the place of a cut is not begun before the cut is collected.
bool Server::waits_for_cut(ExchangeJob& job) {
  if (!cut_) return false;
  const auto is_behind = [worker = cut_->asker.worker, place = cut_->verb.behind](
                             const std::shared_ptr<TakenExchange>& exchange) {
    return exchange->applies && exchange->worker == worker && exchange->view.head.sequence > place;
  };
  return std::ranges::any_of(job.exchanges(), is_behind);
}

/// The journal cannot be written: nothing may wait for a cut, whether it is collected or not.
void Server::give_up_cut(std::optional<CutUnderWay>& cut, const std::string& why) {
  {
    const Lock lock(mutex_);
    if (!cut) cut.swap(cut_);
  }
  if (!cut) return;
  refuse(cut->asker, fmt::format("server {}: {}", options_.index, why));
  post_jobs();
}

/// The record has been written. Links are made before the journal goes on; what needs the disk is
/// done beside it.
void Server::make_cut(CutUnderWay cut) {
  const std::string folder = cut.verb.folder + "/" + cut_folder_name(options_.index);
  std::shared_ptr<SealedLog> sealed;
  try {
    sealed = std::make_shared<SealedLog>(journal_->cut(folder));
  } catch (const std::exception& e) {
    return refuse(cut.asker, fmt::format("server {}: {}", options_.index, e.what()));
  }
  auto finish = [self = shared_from_this(), cut = std::move(cut), sealed]() mutable {
    try {
      self->finish_cut(cut, std::move(*sealed));
    } catch (const std::exception& e) {
      self->refuse(cut.asker, fmt::format("server {}: {}", self->options_.index, e.what()));
    }
  };
  if (options_.background)
    options_.background(std::move(finish));
  else
    finish();
}

void Server::finish_cut(CutUnderWay& cut, SealedLog sealed) {
  CutPart part{.index = options_.index,
               .placement = shard_.placement(),
               .identity = sealed.identity,
               .last_record = sealed.last_record,
               .mark = std::move(cut.mark),
               .rows = std::move(cut.rows)};
  const uint64_t added = sealed.added();
  part.segments = finish_links(env_, std::move(sealed));
  verbs::Cut::Result result{.part = {.table = "", .file = cut_file_name(options_.index)}};
  result.part.sum = write_cut_part(env_, cut.verb.folder, part);
  for (size_t table = 0; table < part.rows.size(); ++table) {
    SavedTable& saved = result.tables.emplace_back(result.part);
    saved.table = part.placement.tables[table].name;
    saved.sum.rows = part.rows[table];
  }
  result.mark = std::move(part.mark);
  result.bytes = part.bytes();
  result.added = added;
  answer_well(cut.asker, encode_fields(result));
}

}  // namespace argosy::ps
