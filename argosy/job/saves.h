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
/// The newest save below a folder: a checkpoint within an epoch, a cut, or the end of the last
/// epoch.
std::optional<Save> newest_save(Env& env, const std::string& folder);

/// Saves of the running job, noted for the process's next incarnation: FOLDER/PROCESS.running has a
/// line "save GENERATION FOLDER" for each save begun. A save counts once its manifest has that
/// generation, so incomplete saves and those of earlier jobs do not. A line "run NUMBER" says
/// which journal is this job's, one "resumes" that it does not go on from it yet. Without a folder
/// nothing is noted. Thread safety: full.
class SaveNotes {
 public:
  SaveNotes(Env& env, const std::string& folder, const std::string& process);
  /// Starts empty notes for a new job, whose journals are of this run.
  void begin(uint64_t run = 0);
  /// The run of the job that has noted something here and did not end well; 0: there is none.
  uint64_t run() const;
  /// Between these two a job is about to go on from the journals of that run.
  void begin_to_resume();
  void has_resumed();
  bool resumes() const;
  /// Whether the process that was here last was of the same run of its launcher, so that this one
  /// goes on with what it left; not if it was killed before it had begun anything. Nobody says
  /// which run it is: yes.
  bool are_of(const std::string& launch) const;
  void begun_by(const std::string& launch);
  void add(const std::string& folder, uint64_t generation);
  void remove();
  /// The last complete save.
  std::optional<Save> newest() const;

 private:
  std::string text() const REQUIRES(mutex_);
  void write(const std::string& text) REQUIRES(mutex_);

  Env& env_;
  const std::string folder_, path_, launch_path_;
  mutable Mutex mutex_;  // of the file
};

}  // namespace argosy
