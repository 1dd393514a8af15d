#pragma once

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>

#include <memory>

#include "argosy/data/file_dataset.h"
#include "argosy/train/forward_program.h"
#include "argosy/train/session.h"
#include "bindings.h"
#include "long_call.h"
#include "recorder.h"

namespace argosy::python {

/// The arguments of minimize() for a recorded program, in plain values.
struct TrainingSpec {
  ReplayedModel recorded;
  TrainerOptions options;
  SlotLimits limits;
};
/// Keys of `spec`: loss (a number or None), metrics, predictions [(name, number)], meters [(name,
/// meter, prediction, label)], frozen [name], optimizer {rule, learning_rate, regularizer, clip},
/// tables {name: {rule, learning_rate, regularizer, entry, size}}, limits {slot: ids below}, seed,
/// threads, check_nan.
TrainingSpec training_spec(const Recorder& recorder, const nb::dict& spec);

Env& engine_env();

/// A program in training or use. The trainer is its own, or a fleet's, which `owner` keeps alive.
class Training {
 public:
  Training(std::shared_ptr<void> owner, Trainer& trainer, std::vector<VarId> now, SlotLimits limits,
           bool waits)
      : owner_(std::move(owner)),
        trainer_(trainer),
        session_(trainer, std::move(limits)),
        now_(std::move(now)),
        waits_(waits) {}

  /// feeds: arrays, or (values, offsets) pairs, by name.
  nb::list run(const nb::dict& feeds, const std::vector<int32_t>& fetch, bool train);

  Trainer& trainer() { return trainer_; }
  std::vector<NamedTensor> values() { return trainer_.communicator().store().persistables(); }

 private:
  std::shared_ptr<void> owner_;
  Trainer& trainer_;
  Session session_;
  std::vector<VarId> now_;  // by variable of the recorded program
  bool waits_;              // for other processes, so that a step may take long
};

void bind_training(nb::module_& module);
void bind_datasets(nb::module_& module);
void bind_fleet(nb::module_& module);

/// A data set as a script describes it; its files are read when it is trained on.
class FileData {
 public:
  explicit FileData(bool in_memory) : in_memory_(in_memory) {}

  FileOptions options = {};

  /// For a program with this layout.
  Dataset& make(const BatchLayout& layout);
  /// For data in memory; no layout yet.
  InMemoryDataset& memory();

 private:
  bool in_memory_;
  std::unique_ptr<InMemoryDataset> memory_;
  std::unique_ptr<Dataset> queue_;
};

}  // namespace argosy::python
