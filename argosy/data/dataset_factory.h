#pragma once

#include <memory>
#include <string>
#include <vector>

#include "argosy/data/file_dataset.h"

namespace argosy {

/// A data set described the way Paddle's scripts do it, by setters of the same names.
class DatasetDescription {
 public:
  explicit DatasetDescription(std::string type) : type_(std::move(type)) {}

  /// The slots of each line, in order.
  void set_use_var(std::vector<SlotSpec> vars) { options_.slots = std::move(vars); }
  void set_pipe_command(std::string command) { options_.pipe.command = std::move(command); }
  void set_batch_size(size_t batch_size) { options_.batch_size = batch_size; }
  void set_thread(size_t threads) { options_.threads = threads; }
  void set_filelist(std::vector<std::string> files) { options_.files = std::move(files); }

  /// For a program with this layout; throws ConfigError if a setting is missing or does not fit.
  std::unique_ptr<Dataset> make(const BatchLayout& layout) const;

 private:
  std::string type_;
  FileOptions options_;
};

class DatasetFactory {
 public:
  /// QueueDataset or InMemoryDataset. Throws ConfigError naming the nearest.
  static DatasetDescription create_dataset(const std::string& type = "QueueDataset");
};

/// A variable of set_use_var, as fluid.layers.data declares it: int64 are ids, and with lod_level 1
/// an instance may have any number of them.
SlotSpec data_var(std::string name, size_t shape, std::string_view dtype, int lod_level = 0);

}  // namespace argosy
