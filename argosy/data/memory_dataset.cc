#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/base/thread.h"
#include "argosy/data/batcher.h"
#include "argosy/data/file_dataset.h"
#include "argosy/data/file_lane.h"

namespace argosy {

InMemoryDataset::InMemoryDataset(BatchLayout layout, FileOptions options, bool shuffle)
    : layout_(std::move(layout)),
      options_(std::move(options)),
      shuffle_(shuffle),
      parser_(make_fitting_parser(layout_, options_)),
      tally_(options_.max_bad_ratio) {}

InMemoryDataset::~InMemoryDataset() = default;

void InMemoryDataset::set_layout(BatchLayout layout) {
  static_cast<void>(Batcher(layout, parser_->slots()));
  prefetch_ = nullptr;
  layout_ = std::move(layout);
}

void InMemoryDataset::load_into_memory() {
  release_memory();
  files_.reserve(options_.files.size());
  for (size_t i = 0; i < options_.files.size(); ++i) files_.emplace_back(parser_->slots());

  std::atomic<size_t> next = 0;
  std::stop_source stop;
  Mutex mutex;
  std::exception_ptr failure;
  const auto load_files = [&] {
    for (size_t i = next++; i < files_.size() && !stop.stop_requested(); i = next++) try {
        FileLane lane(one_after_another({{static_cast<uint32_t>(i), options_.files[i]}}), options_,
                      *parser_);
        std::vector<FileMark> marks;
        std::vector<Origin> origins;
        lane.read(SIZE_MAX, files_[i], marks, origins, stop.get_token());
        const Lock lock(mutex);
        tally_.merge(lane.tally());
      } catch (...) {
        const Lock lock(mutex);
        if (!failure) failure = std::current_exception();
        stop.request_stop();
      }
  };
  {
    std::vector<Thread> threads;
    const size_t n = std::min(options_.threads, files_.size());
    threads.reserve(n - 1);
    for (size_t i = 1; i < n; ++i) threads.emplace_back("reader", load_files);
    load_files();
  }
  if (failure) {
    files_.clear();
    std::rethrow_exception(failure);
  }
  tally_.finish();

  const size_t rows = std::accumulate(files_.begin(), files_.end(), size_t{0},
                                      [](size_t sum, const Columns& c) { return sum + c.rows(); });
  if (rows == 0) files_.clear();
  check<DataError>(rows > 0, "no instance in ", options_.files.size(), " files, the first is ",
                   piped_name(options_.files[0], options_.pipe.command));
  order_.reserve(rows);
  order_as_read();
}

void InMemoryDataset::order_as_read() {
  order_.clear();
  for (uint32_t file = 0; file < files_.size(); ++file)
    for (uint32_t row = 0; row < files_[file].rows(); ++row) order_.push_back({file, row});
}

void InMemoryDataset::preload_into_memory() {
  preload_ = Thread("preload", [this] {
    try {
      load_into_memory();
    } catch (...) {
      preload_failure_ = std::current_exception();
    }
  });
}

void InMemoryDataset::wait_preload_done() {
  if (preload_.joinable()) preload_.join();
  if (preload_failure_) std::rethrow_exception(std::exchange(preload_failure_, nullptr));
}

void InMemoryDataset::shuffle(uint64_t seed) {
  order_as_read();  // so that the result depends on the seed only
  const RandomStream random(seed);
  for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i, i)]);
}

void InMemoryDataset::local_shuffle(uint64_t seed) {
  wait_preload_done();
  prefetch_.reset();
  shuffle(seed);
}

std::vector<Columns> InMemoryDataset::take_instances() {
  wait_preload_done();
  if (files_.empty()) load_into_memory();
  prefetch_.reset();
  order_.clear();
  return std::exchange(files_, {});
}

void InMemoryDataset::put_instances(std::vector<Columns> instances) {
  prefetch_.reset();
  files_ = std::move(instances);
  // An empty shuffle result is final; do not reload.
  if (files_.empty()) files_.emplace_back(parser_->slots());
  order_as_read();
}

void InMemoryDataset::release_memory() {
  prefetch_.reset();
  files_ = std::vector<Columns>();
  order_ = std::vector<Place>();
  tally_ = LineTally(options_.max_bad_ratio);
}

std::optional<uint64_t> InMemoryDataset::batches() const {
  if (files_.empty()) return std::nullopt;
  const size_t full = order_.size() / options_.batch_size;
  return full + (!options_.drop_last && order_.size() % options_.batch_size != 0 ? 1 : 0);
}

bool InMemoryDataset::produce(uint64_t number, Columns& columns, Batcher& batcher,
                              Batch& out) const {
  if (number >= *batches()) return false;
  const size_t from = number * options_.batch_size;
  const auto places =
      std::span(order_).subspan(from, std::min(options_.batch_size, order_.size() - from));
  columns.clear();
  out.origins.clear();
  for (const Place& place : places) {
    columns.append(files_[place.file], place.row);
    if (options_.audit) out.origins.push_back({place.file, place.row});
  }
  batcher.fill(columns, out);
  return true;
}

void InMemoryDataset::begin_epoch(uint64_t seed, const DataPosition& from) {
  wait_preload_done();
  prefetch_.reset();
  if (files_.empty()) load_into_memory();
  if (shuffle_) shuffle(seed);
  {
    const Lock lock(mutex_);
    delivered_ = from.batches;
    audit_ = {};
    audit_note_.clear();
  }
  std::vector<Prefetch::Produce> producers;
  producers.reserve(options_.threads);
  for (size_t i = 0; i < options_.threads; ++i) {
    auto columns = std::make_shared<Columns>(parser_->slots());
    auto batcher = std::make_shared<Batcher>(layout_, parser_->slots());
    producers.emplace_back([this, columns, batcher, number = from.batches + i](
                               Batch& out, const std::stop_token&) mutable {
      const bool more = produce(number, *columns, *batcher, out);
      number += options_.threads;
      return more;
    });
  }
  prefetch_ = std::make_unique<Prefetch>(std::move(producers), options_.prefetch);
}

bool InMemoryDataset::next(Batch& out) {
  check<Error>(prefetch_ != nullptr, "begin_epoch comes before next");
  const bool more = prefetch_->next(out);
  const Lock lock(mutex_);
  if (more) {
    ++delivered_;
    if (options_.audit) {
      audit_.found(out.origins);
      audit_.delivered(out.origins);
    }
  } else if (options_.audit) {
    audit_note_ = audit_.finish(0);
  }
  return more;
}

DataPosition InMemoryDataset::position() const {
  const Lock lock(mutex_);
  return {delivered_, {}};
}

std::vector<std::string> InMemoryDataset::notes() const {
  std::vector<std::string> notes = tally_.notes();
  const Lock lock(mutex_);
  if (!audit_note_.empty()) notes.push_back(audit_note_);
  return notes;
}

}  // namespace argosy
