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
    order_.resize(static_cast<size_t>(first.shape()[0]));
    std::iota(order_.begin(), order_.end(), 0);
  }

  void begin_epoch(uint64_t seed, const DataPosition& from) override {
    at_ = std::min<size_t>(from.batches * options_.batch_size, order_.size());
    if (!options_.shuffle) return;
    std::iota(order_.begin(), order_.end(), 0);
    const RandomStream random(seed);
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i, i)]);
  }

  bool next(Batch& out) override {
    const size_t size = std::min(options_.batch_size, order_.size() - at_);
    if (size == 0 || (options_.drop_last && size < options_.batch_size)) return false;
    for (const auto& [name, array] : arrays_) {
      Shape shape = array.shape();
      shape[0] = static_cast<int64_t>(size);
      Tensor& feed = out.feeds[name];
      feed.renew(shape, array.dtype());
      const size_t row = order_.empty() ? 0 : array.bytes() / order_.size();
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
    const size_t full = order_.size() / options_.batch_size;
    return full + (!options_.drop_last && order_.size() % options_.batch_size != 0 ? 1 : 0);
  }

 private:
  Feeds arrays_;
  ArrayOptions options_;
  std::vector<size_t> order_;
  size_t at_ = 0;
};

}  // namespace

std::unique_ptr<Dataset> array_dataset(Feeds arrays, const ArrayOptions& options) {
  return std::make_unique<ArrayDataset>(std::move(arrays), options);
}

}  // namespace argosy
