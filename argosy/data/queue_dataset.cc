#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/data/batcher.h"
#include "argosy/data/file_dataset.h"
#include "argosy/data/file_lane.h"

namespace argosy {

/// One reading thread's part of an epoch.
class QueueDataset::Lane {
 public:
  Lane(QueueDataset& owner, FileLane::NextFile next)
      : owner_(owner),
        files_(std::move(next), owner.options_, *owner.parser_),
        columns_(owner.parser_->slots()),
        batcher_(owner.layout_, owner.parser_->slots()) {}

  bool produce(Batch& out, const std::stop_token& stop) {
    columns_.clear();
    out.marks.clear();
    out.origins.clear();
    const size_t wanted = owner_.options_.batch_size;
    if (ended_) return false;
    const bool more = files_.read(wanted, columns_, out.marks, out.origins, stop);
    ended_ = !more;
    const bool wanted_rows = columns_.rows() == wanted || !owner_.options_.drop_last;
    {
      const Lock lock(owner_.mutex_);
      owner_.audit_.found(out.origins);
      if (!more) owner_.tally_.merge(files_.tally());
      if (!wanted_rows) owner_.left_out_ += columns_.rows();
    }
    if (columns_.rows() == 0 || !wanted_rows) return false;
    batcher_.fill(columns_, out);
    return true;
  }

 private:
  QueueDataset& owner_;
  FileLane files_;
  Columns columns_;
  Batcher batcher_;
  bool ended_ = false;
};

QueueDataset::QueueDataset(BatchLayout layout, FileOptions options)
    : layout_(std::move(layout)),
      options_(std::move(options)),
      parser_(make_fitting_parser(layout_, options_)),
      tally_(options_.max_bad_ratio) {}

QueueDataset::~QueueDataset() = default;

void QueueDataset::begin_epoch(uint64_t, const DataPosition& from) {
  prefetch_.reset();
  {
    const Lock lock(mutex_);
    position_ = from;
    tally_ = LineTally(options_.max_bad_ratio);
    audit_ = {};
    audit_note_.clear();
    left_out_ = 0;
    resumed_ = !from.files.empty();
    ended_ = false;
  }
  if (options_.shared != nullptr) {
    options_.shared->begin_epoch();
    return start(shared_lanes());
  }
  const size_t n_lanes = std::min(options_.threads, options_.files.size());
  std::vector<std::vector<FileLane::File>> shares(n_lanes);
  for (uint32_t i = 0; i < options_.files.size(); ++i) {
    const auto mark = std::ranges::find(from.files, i, &FileMark::file);
    const uint64_t skip = mark == from.files.end() ? 0 : mark->lines;
    if (skip != FileMark::kWhole) shares[i % n_lanes].push_back({i, options_.files[i], skip});
  }
  std::vector<std::shared_ptr<Lane>> lanes;
  for (auto& share : shares)
    lanes.push_back(std::make_shared<Lane>(*this, one_after_another(std::move(share))));
  // Resume with the lane after the last batch's, for the order of an uninterrupted run.
  start(std::move(lanes), from.files.empty() ? 0 : from.files.back().file % n_lanes + 1);
}

bool QueueDataset::begin_next_pass() {
  if (options_.shared == nullptr || !options_.shared->begin_next_pass()) return false;
  {
    const Lock lock(mutex_);
    ended_ = false;
  }
  start(shared_lanes());
  return true;
}

std::vector<std::shared_ptr<QueueDataset::Lane>> QueueDataset::shared_lanes() {
  std::vector<std::shared_ptr<Lane>> lanes;
  const auto n = static_cast<uint32_t>(std::min(options_.threads, options_.files.size()));
  for (uint32_t i = 0; i < n; ++i) {
    auto next = [this, i, n]() -> std::optional<FileLane::File> {
      const auto number = options_.shared->take(i, n);
      if (!number) return std::nullopt;
      return FileLane::File{*number, options_.files.at(*number)};
    };
    lanes.push_back(std::make_shared<Lane>(*this, std::move(next)));
  }
  return lanes;
}

void QueueDataset::start(std::vector<std::shared_ptr<Lane>> lanes, size_t first) {
  std::vector<Prefetch::Produce> producers;
  producers.reserve(lanes.size());
  for (auto& lane : lanes)
    producers.emplace_back([lane = std::move(lane)](Batch& out, const std::stop_token& stop) {
      return lane->produce(out, stop);
    });
  prefetch_ = std::make_unique<Prefetch>(std::move(producers), options_.prefetch, first);
}

uint64_t QueueDataset::pass() const {
  return options_.shared != nullptr ? options_.shared->pass() : 0;
}

uint64_t QueueDataset::most_passes() const {
  return options_.shared != nullptr ? SharedFiles::kMostPasses : 1;
}

bool QueueDataset::take(Batch& out) {
  ++taking_;
  try {
    return prefetch_->next(out);
  } catch (...) {
    --taking_;
    throw;
  }
}

bool QueueDataset::next(Batch& out) {
  check<Error>(prefetch_ != nullptr, "begin_epoch comes before next");
  const bool more = take(out);
  const Lock lock(mutex_);
  const bool all_are_counted = --taking_ == 0;
  if (!more) {
    // Another thread may have the last batch and not be here yet: it comes to the end after it.
    if (ended_ || !all_are_counted) return false;
    ended_ = true;
    tally_.finish();
    // Other processes may have been quicker.
    const bool may_be_empty = resumed_ || options_.shared != nullptr;
    check<DataError>(position_.batches > 0 || may_be_empty, "no instance in ",
                     options_.files.size(), " files, the first is ",
                     piped_name(options_.files[0], options_.pipe.command));
    if (options_.audit) audit_note_ = audit_.finish(left_out_);
    return false;
  }
  ++position_.batches;
  for (const FileMark& mark : out.marks) {
    const auto known = std::ranges::find(position_.files, mark.file, &FileMark::file);
    if (known == position_.files.end()) {
      position_.files.push_back(mark);
      continue;
    }
    // A thread that took an earlier batch of the file may come here later.
    known->lines = std::max(known->lines, mark.lines);
    std::rotate(known, known + 1, position_.files.end());
  }
  if (options_.audit) audit_.delivered(out.origins);
  return true;
}

DataPosition QueueDataset::position() const {
  const Lock lock(mutex_);
  return position_;
}

std::vector<std::string> QueueDataset::notes() const {
  const Lock lock(mutex_);
  std::vector<std::string> notes = tally_.notes();
  if (!audit_note_.empty()) notes.push_back(audit_note_);
  return notes;
}

}  // namespace argosy
