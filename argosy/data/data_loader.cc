#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/data/batcher.h"
#include "argosy/data/file_dataset.h"

namespace argosy {
namespace {

class DataLoader final : public Dataset {
 public:
  DataLoader(BatchLayout layout, LoaderOptions options, std::function<InstanceGenerator()> start)
      : layout_(std::move(layout)), options_(std::move(options)), start_(std::move(start)) {
    check<ConfigError>(options_.batch_size > 0, "batch_size must be positive");
    static_cast<void>(Batcher(layout_, options_.slots));  // refuses slots that do not fit
  }

  void begin_epoch(uint64_t seed, const DataPosition& from) override {
    prefetch_.reset();
    {
      const Lock lock(mutex_);
      delivered_ = from.batches;
    }
    auto lane = std::make_shared<Lane>(*this, seed);
    prefetch_ = std::make_unique<Prefetch>(
        std::vector<Prefetch::Produce>{
            [lane, skip = from.batches](Batch& out, const std::stop_token& stop) mutable {
              for (; skip > 0; --skip)
                if (stop.stop_requested() || !lane->read()) return false;
              return lane->read() && lane->fill(out);
            }},
        options_.prefetch);
  }

  bool next(Batch& out) override {
    check<Error>(prefetch_ != nullptr, "begin_epoch comes before next");
    const bool more = prefetch_->next(out);
    const Lock lock(mutex_);
    delivered_ += more ? 1 : 0;
    return more;
  }

  DataPosition position() const override {
    const Lock lock(mutex_);
    return {delivered_, {}};
  }

 private:
  /// The generator of an epoch, with its shuffle buffer.
  class Lane {
   public:
    Lane(const DataLoader& owner, uint64_t seed)
        : options_(owner.options_),
          generate_(owner.start_()),
          random_(seed),
          batch_(options_.slots),
          incoming_(options_.slots),
          pool_(options_.slots),
          batcher_(owner.layout_, options_.slots) {}

    /// The instances of the next batch.
    bool read() {
      batch_.clear();
      while (batch_.rows() < options_.batch_size)
        if (options_.shuffle == 0 ? !generate_(batch_) : !draw()) break;
      const bool full = batch_.rows() == options_.batch_size;
      return batch_.rows() > 0 && (full || !options_.drop_last);
    }
    bool fill(Batch& out) {
      batcher_.fill(batch_, out);
      return true;
    }

   private:
    /// Moves one instance of the pool, chosen at random, to the batch; a new one takes its place.
    bool draw() {
      while (!ended_ && order_.size() < options_.shuffle) {
        order_.push_back(pool_.rows());
        if (generate_(pool_)) continue;
        order_.pop_back();
        ended_ = true;
      }
      if (order_.empty()) return false;
      std::swap(order_[random_.below(draws_, order_.size())], order_.back());
      ++draws_;
      batch_.append(pool_, order_.back());
      order_.pop_back();
      if (pool_.rows() >= 4 * options_.shuffle) compact();
      return true;
    }

    /// Removes drawn instances from the pool.
    void compact() {
      incoming_.clear();
      for (size_t& row : order_) {
        incoming_.append(pool_, row);
        row = incoming_.rows() - 1;
      }
      std::swap(pool_, incoming_);
    }

    const LoaderOptions& options_;
    InstanceGenerator generate_;
    RandomStream random_;
    Columns batch_, incoming_, pool_;
    std::vector<size_t> order_;  // rows of the pool that have not been drawn
    uint64_t draws_ = 0;
    bool ended_ = false;
    Batcher batcher_;
  };

  BatchLayout layout_;
  LoaderOptions options_;
  std::function<InstanceGenerator()> start_;
  mutable Mutex mutex_;
  uint64_t delivered_ GUARDED_BY(mutex_) = 0;
  std::unique_ptr<Prefetch> prefetch_;  // last, as its thread uses the rest
};

}  // namespace

std::unique_ptr<Dataset> data_loader(BatchLayout layout, LoaderOptions options,
                                     std::function<InstanceGenerator()> start) {
  return std::make_unique<DataLoader>(std::move(layout), std::move(options), std::move(start));
}

}  // namespace argosy
