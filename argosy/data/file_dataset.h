#pragma once

#include <atomic>
#include <exception>

#include "argosy/base/mutex.h"
#include "argosy/base/thread.h"
#include "argosy/data/audit.h"
#include "argosy/data/dataset.h"
#include "argosy/data/layout.h"
#include "argosy/data/line_tally.h"
#include "argosy/data/parser.h"
#include "argosy/data/pipe.h"
#include "argosy/data/prefetch.h"

namespace argosy {

/// Hands the files of an epoch to several processes as they get free. Thread safety: full.
class SharedFiles {
 public:
  static constexpr uint64_t kMostPasses = 16;

  virtual ~SharedFiles() = default;
  virtual void begin_epoch() = 0;
  /// Number of the next file for a reading lane of this process; lanes call it concurrently.
  /// Absent: none is left for it in this pass.
  virtual std::optional<uint32_t> take(uint32_t lane, uint32_t lanes) = 0;
  // As in Dataset:
  virtual bool begin_next_pass() = 0;
  virtual uint64_t pass() const = 0;
};

/// How files become batches; what both data sets below share.
struct FileOptions {
  std::vector<std::string> files;  // as list_files gives them
  std::string parser = "multislot";
  std::vector<SlotSpec> slots = {};  // as make_parser takes them
  PipeOptions pipe = {};             // no command: files are read directly
  SourceOptions source = {};
  size_t batch_size = 32;
  size_t threads = 1;   // that read; never more than files
  size_t prefetch = 4;  // batches that each thread keeps ready
  bool drop_last = false;
  double max_bad_ratio = 0.01;
  bool audit = false;  // check that each instance is delivered once
  /// QueueDataset: decides which files this process reads; null: all of them.
  std::shared_ptr<SharedFiles> shared = {};
};

/// One pass over the files with bounded memory. Thread i of n reads files i, i + n, ..., and
/// batches are taken from the threads in turn: their order depends on the files and the number of
/// threads only. A pass without any instance is an error. Shared files are read as handed out.
class QueueDataset final : public Dataset {
 public:
  QueueDataset(BatchLayout layout, FileOptions options);  // throws ConfigError
  ~QueueDataset() override;

  void begin_epoch(uint64_t seed, const DataPosition& from = {}) override;
  bool next(Batch& out) override;
  bool begin_next_pass() override;
  uint64_t pass() const override;
  uint64_t most_passes() const override;
  DataPosition position() const override;
  std::vector<std::string> notes() const override;

 private:
  class Lane;
  void start(std::vector<std::shared_ptr<Lane>> lanes, size_t first = 0);
  std::vector<std::shared_ptr<Lane>> shared_lanes();
  bool take(Batch& out);

  BatchLayout layout_;
  FileOptions options_;
  std::unique_ptr<Parser> parser_;
  std::atomic<int> taking_ = 0;  // threads between a batch and its being counted
  mutable Mutex mutex_;
  DataPosition position_ GUARDED_BY(mutex_);
  LineTally tally_ GUARDED_BY(mutex_);
  Audit audit_ GUARDED_BY(mutex_);
  size_t left_out_ GUARDED_BY(mutex_) = 0;  // by drop_last
  bool resumed_ GUARDED_BY(mutex_) = false, ended_ GUARDED_BY(mutex_) = false;
  std::string audit_note_ GUARDED_BY(mutex_);
  std::unique_ptr<Prefetch> prefetch_;  // last, as its threads use the rest
};

/// All instances in memory: load once, run many epochs, each in a different order.
class InMemoryDataset final : public Dataset {
 public:
  /// shuffle: each epoch in a new order that depends on its seed only.
  InMemoryDataset(BatchLayout layout, FileOptions options, bool shuffle = false);
  ~InMemoryDataset() override;

  /// Layout of batches from now on. Throws ConfigError if the slots do not fit.
  void set_layout(BatchLayout layout);
  void load_into_memory();
  /// load_into_memory() in the background; wait_preload_done() rethrows its exception.
  void preload_into_memory();
  void wait_preload_done();
  /// A new order for later epochs, if the data set does not shuffle every epoch.
  void local_shuffle(uint64_t seed);
  void release_memory();
  /// For moving instances between processes: takes all of them out, and puts others in, in the
  /// order of their columns.
  std::vector<Columns> take_instances();
  void put_instances(std::vector<Columns> instances);
  size_t get_memory_data_size() const { return order_.size(); }  // instances

  /// Loads first if nothing is loaded.
  void begin_epoch(uint64_t seed, const DataPosition& from = {}) override;
  bool next(Batch& out) override;
  DataPosition position() const override;
  std::optional<uint64_t> batches() const override;
  std::vector<std::string> notes() const override;

 private:
  struct Place {
    uint32_t file, row;
  };
  void order_as_read();
  void shuffle(uint64_t seed);
  bool produce(uint64_t number, Columns& columns, class Batcher& batcher, Batch& out) const;

  BatchLayout layout_;
  FileOptions options_;
  bool shuffle_;
  std::unique_ptr<Parser> parser_;
  std::vector<Columns> files_;
  std::vector<Place> order_;
  LineTally tally_;
  std::exception_ptr preload_failure_;  // for wait_preload_done
  mutable Mutex mutex_;
  uint64_t delivered_ GUARDED_BY(mutex_) = 0;
  Audit audit_ GUARDED_BY(mutex_);
  std::string audit_note_ GUARDED_BY(mutex_);
  std::unique_ptr<Prefetch> prefetch_;  // its threads use the members above
  Thread preload_;                      // last, as it uses the rest
};

/// Adds one instance to the columns and commits it; false at the end of the epoch.
using InstanceGenerator = std::function<bool(Columns& out)>;

struct LoaderOptions {
  std::vector<SlotSpec> slots;
  size_t batch_size = 32;
  size_t prefetch = 4;
  bool drop_last = false;
  size_t shuffle = 0;  // instances in the buffer that each next one is drawn from; 0: as they come
};

/// Batches of a generator's instances, made ahead on a separate thread. `start` makes the generator
/// of an epoch.
std::unique_ptr<Dataset> data_loader(BatchLayout layout, LoaderOptions options,
                                     std::function<InstanceGenerator()> start);

}  // namespace argosy
