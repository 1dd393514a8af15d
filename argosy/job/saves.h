#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "argosy/base/env.h"
#include "argosy/base/mutex.h"

namespace argosy {

/// Folder of an epoch's save; epochs count from 0.
std::string epoch_folder(const std::string& folder, int64_t epoch);

bool is_save(Env& env, const std::string& folder);

struct Save {
  std::string folder;
  std::filesystem::file_time_type written;
};
/// The newest save below a folder: a checkpoint within an epoch, or the end of the last epoch.
std::optional<Save> newest_save(Env& env, const std::string& folder);

/// Saves of the running job, noted for the process's next incarnation: FOLDER/PROCESS.running has a
/// line "save GENERATION FOLDER" for each save begun. A save counts once its manifest has that
/// generation, so incomplete saves and those of earlier jobs do not. Without a folder nothing is
/// noted. Thread safety: full.
class SaveNotes {
 public:
  SaveNotes(Env& env, const std::string& folder, const std::string& process);
  /// Starts empty notes for a new job.
  void begin();
  void add(const std::string& folder, uint64_t generation);
  void remove();
  /// The last complete save.
  std::optional<Save> newest() const;

 private:
  Env& env_;
  const std::string folder_, path_;
  mutable Mutex mutex_;  // of the file
};

}  // namespace argosy
