#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "argosy/train/trainer.h"

namespace argosy {

/// The batches of several data sets in turn.
class InTurn final : public Dataset {
 public:
  explicit InTurn(std::vector<std::unique_ptr<Dataset>> sets) : sets_(std::move(sets)) {}
  void begin_epoch(uint64_t seed, const DataPosition&) override {
    for (const auto& set : sets_) set->begin_epoch(seed);
    at_ = 0;
  }
  bool next(Batch& out) override { return sets_[at_++ % sets_.size()]->next(out); }
  DataPosition position() const override { return {}; }

 private:
  std::vector<std::unique_ptr<Dataset>> sets_;
  size_t at_ = 0;
};

/// The result of a run: parameters and rows by name, and the loss of each step.
struct Outcome {
  std::vector<NamedTensor> values;
  std::vector<TableRows> tables;
  std::vector<double> losses;
};

inline Outcome outcome_of(Trainer& trainer) {
  Outcome result;
  TableStore& store = trainer.communicator().store();
  result.values = store.persistables();
  for (NamedTensor& tensor : result.values) tensor.value = tensor.value.clone();
  for (const std::string& name : store.sparse_tables()) result.tables.push_back(store.rows(name));
  return result;
}

inline void expect_same_bits(const Outcome& a, const Outcome& b) {
  ASSERT_EQ(a.values.size(), b.values.size());
  for (size_t i = 0; i < a.values.size(); ++i) {
    ASSERT_EQ(a.values[i].name, b.values[i].name);
    EXPECT_EQ(
        std::memcmp(a.values[i].value.data(), b.values[i].value.data(), a.values[i].value.bytes()),
        0)
        << a.values[i].name;
  }
  ASSERT_EQ(a.tables.size(), b.tables.size());
  for (size_t i = 0; i < a.tables.size(); ++i) {
    EXPECT_EQ(a.tables[i].keys, b.tables[i].keys);
    EXPECT_EQ(
        std::memcmp(a.tables[i].rows.data(), b.tables[i].rows.data(), a.tables[i].rows.bytes()), 0);
  }
}

/// The loss of each step.
inline std::vector<double> fit(Trainer& trainer, Dataset& data, int epochs) {
  std::vector<double> losses;
  trainer.fit(data, {.epochs = epochs,
                     .on_step =
                         [&](const Progress& progress) {
                           losses.push_back(progress.metric("loss"));
                           return Next::go_on;
                         },
                     .show = nullptr});
  return losses;
}

}  // namespace argosy
