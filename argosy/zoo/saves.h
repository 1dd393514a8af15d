#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "argosy/base/env.h"

namespace argosy {

/// Where the save of an epoch is; the first epoch is 0.
std::string epoch_folder(const std::string& folder, int64_t epoch);

bool is_save(Env& env, const std::string& folder);

struct Save {
  std::string folder;
  std::filesystem::file_time_type written;
};
/// The newest save below a folder: a checkpoint within an epoch, or the end of the last epoch.
std::optional<Save> newest_save(Env& env, const std::string& folder);

/// A file beside the saves of a job for as long as it runs, by which a process that is started
/// again knows them from those of an earlier job.
class RunningMark {
 public:
  RunningMark(Env& env, const std::string& folder, const std::string& process);
  void write();
  void remove();
  /// Whether a save was made since write(); false where the mark is lost.
  bool is_before(const Save& save) const;

 private:
  Env& env_;
  std::string folder_, path_;
};

}  // namespace argosy
