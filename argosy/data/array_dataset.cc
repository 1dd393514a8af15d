#include <algorithm>
#include <cstring>
#include <numeric>

#include "argosy/base/rng.h"
#include "argosy/data/dataset.h"

namespace argosy {
namespace {

class ArrayDataset final : public Dataset {
 public:
  ArrayDataset(Feeds arrays, const ArrayOptions& options)
      : arrays_(std::move(arrays)), options_(options) {
    check<ConfigError>(options.batch_size > 0, "batch_size must be positive");
    check<ConfigError>(!arrays_.empty(), "a dataset needs at least one array");
    const auto& [first_name, first] = *arrays_.begin();
    for (const auto& [name, array] : arrays_)
      check<ConfigError>(array.shape().rank() >= 1 && array.shape()[0] == first.shape()[0],
                         "array '", name, "' ", array.shape(), " must have as many instances as '",
                         first_name, "' ", first.shape());
    check<ConfigError>(options.share.index < options.share.count, "share ", options.share.index,
                       " of ", options.share.count, ", expected a number below");
    instances_ = static_cast<size_t>(first.shape()[0]);
    make_order();
  }

  void begin_epoch(uint64_t seed, const DataPosition& from) override {
    at_ = std::min<size_t>(from.batches * options_.batch_size, own_);
    if (options_.shuffle) make_order(seed);
  }

  bool next(Batch& out) override {
    const size_t size = std::min(options_.batch_size, own_ - at_);
    if (size == 0 || (options_.drop_last && size < options_.batch_size)) return false;
    for (const auto& [name, array] : arrays_) {
      Shape shape = array.shape();
      shape[0] = static_cast<int64_t>(size);
      Tensor& feed = out.feeds[name];
      feed.renew(shape, array.dtype());
      const size_t row = instances_ == 0 ? 0 : array.bytes() / instances_;
      for (size_t i = 0; i < size; ++i)
        std::memcpy(feed.data() + i * row, array.data() + order_[at_ + i] * row, row);
    }
    out.size = size;
    at_ += size;
    return true;
  }

  DataPosition position() const override {
    return {(at_ + options_.batch_size - 1) / options_.batch_size, {}};
  }

  std::optional<uint64_t> batches() const override {
    const size_t full = own_ / options_.batch_size;
    return full + (!options_.drop_last && own_ % options_.batch_size != 0 ? 1 : 0);
  }

 private:
  void make_order(std::optional<uint64_t> seed = {}) {
    order_.resize(instances_);
    std::iota(order_.begin(), order_.end(), 0);
    if (seed) {
      const RandomStream random(*seed);
      for (size_t i = order_.size(); i > 1; --i)
        std::swap(order_[i - 1], order_[random.below(i, i)]);
    }
    own_ = 0;
    for (size_t i = options_.share.index; i < instances_; i += options_.share.count)
      order_[own_++] = order_[i];
  }

  Feeds arrays_;
  ArrayOptions options_;
  size_t instances_ = 0;
  std::vector<size_t> order_;  // the first own_ are this share's
  size_t own_ = 0, at_ = 0;
};

}  // namespace

std::unique_ptr<Dataset> array_dataset(Feeds arrays, const ArrayOptions& options) {
  return std::make_unique<ArrayDataset>(std::move(arrays), options);
}

}  // namespace argosy
