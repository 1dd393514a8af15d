#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace argosy {

/// A file being written. Nothing is promised about its content until sync() has returned.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual void append(std::span<const std::byte> bytes) = 0;
  virtual void sync() = 0;  // data and metadata are on the disk
};

/// A file as it was when it was opened.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual uint64_t size() const = 0;
  /// Fills `to`; throws IoError where the file ends before that.
  virtual void read_at(uint64_t offset, std::span<std::byte> to) = 0;
};

/// The seam to the outside world: time, timers, files and randomness. Servers, clients, journal and
/// checkpoint touch the world only through it, and code that blocks does so in Mutex, CondVar and
/// Thread (base/scheduler.h), so a whole cluster can run from one seed in a simulation. real_env()
/// is in world/env.h. Files throw IoError with path and reason.
class Env {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;
  using TimerId = uint64_t;

  virtual ~Env() = default;

  virtual Time now() = 0;
  /// Runs task once, `after` from now, never inside this call. The task must not block.
  virtual TimerId schedule(Duration after, std::function<void()> task) = 0;
  /// True if the task will not run any more; false if it has run or is running.
  virtual bool cancel(TimerId timer) = 0;
  /// Unpredictable bits (incarnations, job ids), never for anything that must repeat.
  virtual uint64_t random() = 0;

  virtual std::unique_ptr<WritableFile> create_file(const std::string& path) = 0;
  /// Of its owner alone (mode 0600); throws where there is a file already.
  virtual std::unique_ptr<WritableFile> create_new_file(const std::string& path) = 0;
  virtual std::unique_ptr<ReadableFile> open_file(const std::string& path) = 0;
  std::vector<std::byte> read_file(const std::string& path);  // all of it
  uint64_t file_size(const std::string& path);
  virtual bool file_exists(const std::string& path) = 0;
  /// Replaces `to` in one step and makes the change durable.
  virtual void rename_file(const std::string& from, const std::string& to) = 0;
  /// A second name for a file; throws where `to` is there already. Not durable before
  /// sync_folder().
  virtual void link_file(const std::string& from, const std::string& to) = 0;
  virtual void remove_file(const std::string& path) = 0;  // absent is fine
  /// Cuts a file to `size` bytes, at most those it has; it is on the disk on return.
  virtual void truncate_file(const std::string& path, uint64_t size) = 0;
  virtual void make_directories(const std::string& path) = 0;
  /// The names of its files, sorted; folders are left out.
  virtual std::vector<std::string> list_files(const std::string& folder) = 0;
  /// Makes names that were created, linked or removed in it durable. The bytes of files are not its
  /// concern: that is WritableFile::sync.
  virtual void sync_folder(const std::string& folder) = 0;
};

/// Writes a whole file so that a crash at any moment leaves either the old or the new one:
/// beside it, synced, then renamed.
void write_file_atomically(Env& env, const std::string& path, std::span<const std::byte> bytes);

}  // namespace argosy
