#pragma once

#include <array>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "argosy/argosy.h"
#include "argosy/base/mutex.h"
#include "argosy/base/rng.h"
#include "argosy/data/batcher.h"
#include "argosy/data/file_dataset.h"

// CTR-DNN of the seeds' size and its data, for the benchmarks that train it.
namespace argosy::benches {

inline constexpr int kSlots = 26, kDense = 13, kDim = 9;
inline constexpr uint64_t kVocabulary = 1'000'001;

inline std::vector<std::string> slot_names() {
  std::vector<std::string> names;
  for (int i = 1; i <= kSlots; ++i) names.push_back("C" + std::to_string(i));
  return names;
}

inline ModelOutputs ctr_dnn(Builder& g) {
  const Var rows = nn::embedding(g, slot_names(), "embedding", kDim);
  const Var dense = g.input("dense_input", {{-1, kDense}});
  const Var label = g.input("label", {{-1, 1}});
  const Var hidden = nn::mlp(nn::concat(std::array{rows, dense}),
                             std::array<int64_t, 4>{512, 256, 128, 32}, "relu", "fc");
  const Var logit = nn::linear(hidden, 1, "out");
  return {.loss = nn::logistic_loss(logit, label)};
}

inline std::vector<SlotSpec> ctr_slots() {
  std::vector<SlotSpec> all;
  for (const std::string& name : slot_names()) all.push_back({name, SlotKind::ids, 1});
  all.push_back({"dense_input", SlotKind::floats, kDense});
  all.push_back({"label", SlotKind::floats, 1});
  return all;
}

/// Instances with ids of a power law, in the shape that bench parse writes.
inline void add_instance(const RandomStream& random, uint64_t row, Columns& out) {
  const uint64_t first = row * 64;
  for (uint64_t slot = 0; slot < kSlots; ++slot) {
    const double rank = std::pow(1 - random.uniform(first + slot), -1 / 0.2);  // zipf, 1.2
    const uint64_t id = rank < 1e15 ? static_cast<uint64_t>(rank) : 1;
    *out.add_ids(slot, 1) = (id * 31 + slot * 7919) % kVocabulary;
  }
  float* const dense = out.add_floats(kSlots, kDense);
  for (uint64_t i = 0; i < kDense; ++i)
    dense[i] = static_cast<float>(random.uniform(first + kSlots + i));
  *out.add_floats(kSlots + 1, 1) = random.uniform(first + 63) < 0.25 ? 1.0F : 0.0F;
  out.commit();
}

/// Batches made once and given again and again: the cost of reading is not in the figure.
class Replay final : public Dataset {
 public:
  Replay(const BatchLayout& layout, size_t batch, size_t batches) : batches_(batches) {
    Batcher batcher(layout, ctr_slots());
    Columns columns(ctr_slots());
    const RandomStream random(7);
    for (size_t i = 0; i < batches; ++i) {
      columns.clear();
      for (size_t row = 0; row < batch; ++row) add_instance(random, i * batch + row, columns);
      batcher.fill(columns, batches_[i]);
    }
  }
  void begin_epoch(uint64_t, const DataPosition&) override { left_ = steps_; }
  void set_steps(uint64_t steps) { steps_ = steps; }
  bool next(Batch& out) override {
    const Lock lock(mutex_);
    if (left_ == 0) return false;
    --left_;
    const Batch& batch = batches_[at_++ % batches_.size()];
    out.size = batch.size;
    out.keys = batch.keys;
    for (const auto& [name, feed] : batch.feeds) out.feeds[name] = feed;
    return true;
  }
  DataPosition position() const override { return {}; }

 private:
  std::vector<Batch> batches_;
  Mutex mutex_;
  uint64_t steps_ = 1, left_ = 0;
  size_t at_ = 0;
};

/// MultiSlot text of such instances.
inline void write_ctr_file(const std::string& path, uint64_t first, size_t rows) {
  std::ofstream out(path);
  Columns columns(ctr_slots());
  const RandomStream random(7);
  for (size_t row = 0; row < rows; ++row) {
    columns.clear();
    add_instance(random, first + row, columns);
    for (size_t slot = 0; slot < kSlots; ++slot) out << "1 " << columns.ids(slot)[0] << ' ';
    out << kDense;
    for (const float value : columns.floats(kSlots)) out << ' ' << value;
    out << " 1 " << columns.floats(kSlots + 1)[0] << '\n';
  }
  check<IoError>(out.good(), "cannot write ", path);
}

}  // namespace argosy::benches
