#include "argosy/base/error.h"
#include "argosy/data/dataset.h"

namespace argosy {
namespace {

class ShareOf final : public Dataset {
 public:
  ShareOf(std::unique_ptr<Dataset> all, Share share) : all_(std::move(all)), share_(share) {
    check<ConfigError>(share.index < share.count, "share ", share.index, " of ", share.count,
                       ", expected a number below");
  }

  void begin_epoch(uint64_t seed, const DataPosition& from) override {
    all_->begin_epoch(seed, from);
    next_ = from.batches;
  }

  bool next(Batch& out) override {
    while (all_->next(out))
      if (next_++ % share_.count == share_.index) return true;
    return false;
  }

  DataPosition position() const override { return all_->position(); }

  std::optional<uint64_t> batches() const override {
    const auto all = all_->batches();
    if (!all) return std::nullopt;
    return (*all + share_.count - 1 - share_.index) / share_.count;
  }

  std::vector<std::string> notes() const override { return all_->notes(); }

 private:
  std::unique_ptr<Dataset> all_;
  Share share_;
  uint64_t next_ = 0;  // of all batches
};

}  // namespace

std::unique_ptr<Dataset> share_of(std::unique_ptr<Dataset> all, Share share) {
  if (share.count == 1) return all;
  return std::make_unique<ShareOf>(std::move(all), share);
}

}  // namespace argosy
