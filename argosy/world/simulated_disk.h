#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/world/dice.h"

namespace argosy {

/// The files of a simulated cluster, in memory; all hosts see the same ones. It fails as disks do:
/// what a host has written and not synced tears, is reordered or lost when the host crashes; it
/// fills up, returns errors and flips bits. Thread safety: none.
///
/// 1. Bytes are durable once sync() of their file, or truncate_file(), has returned, names once
///    sync_folder() or a rename into their folder has.
/// 2. A crash touches only what the crashed host has written and what is not durable.
/// 3. A sync that failed has lost what it should have written: the bytes can still be read, and
///    later syncs of the file return without having saved them. Real systems do so too.
class SimulatedDisk {
 public:
  /// Thrown by whatever would change the disk after stop_after(); no Error, so nobody handles it.
  struct Stopped {};

  static constexpr size_t kBlock = 512;  // is written whole or not at all

  std::unique_ptr<WritableFile> create_file(const std::string& path, const std::string& host);
  std::unique_ptr<WritableFile> create_new_file(const std::string& path, const std::string& host);
  std::unique_ptr<ReadableFile> open_file(const std::string& path);
  bool file_exists(const std::string& path) const;
  void rename_file(const std::string& from, const std::string& to);
  void link_file(const std::string& from, const std::string& to, const std::string& host);
  void remove_file(const std::string& path, const std::string& host = "");
  void truncate_file(const std::string& path, uint64_t size);
  void make_directories(const std::string& path);
  std::vector<std::string> list_files(const std::string& folder) const;
  void sync_folder(const std::string& folder);

  /// Keeps `kept(n)` of the n bytes of each file that the host has not synced, and all names. Files
  /// that it holds open take no more bytes.
  void crash(const std::string& host, const std::function<size_t(size_t)>& kept);
  /// kill -9 of what runs on the host: the system keeps all bytes and names. They are no more
  /// durable than before.
  void crash_process(const std::string& host);
  /// The machine goes down: of what is not durable each name is there or not, each file has some
  /// length, and each of its blocks is there, reads as zeros, or as garbage.
  void crash_machine(const std::string& host, Dice& dice);

  /// After that many changes of the disk, or calls to sync, the next ones fail, until there is a
  /// crash: so a test can crash between any two of them. The first append to fail writes half.
  void stop_after(uint64_t changes) { changes_left_ = changes; }

  /// An append that would go beyond it writes what fits and throws.
  void set_capacity(uint64_t bytes) { capacity_ = bytes; }
  uint64_t used() const;

  enum class Operation { append, sync, read };
  enum class Failing { once, always };
  /// Lets an operation on a file fail from now on, or the next time; "": on any file. An append
  /// that fails has written half of its bytes.
  void inject(Operation operation, Failing failing, const std::string& path = "");
  /// No operation fails any more. Files whose sync failed stay as they are (3).
  void heal() { faults_.clear(); }
  uint64_t failed_syncs() const { return failed_syncs_; }
  void flip_bit(const std::string& path, uint64_t offset, unsigned bit);

 private:
  struct File;
  class Handle;
  class Snapshot;
  using FilePtr = std::shared_ptr<File>;
  struct Change {  // of a name, not durable yet
    std::string host;
    FilePtr before;  // null: there was none
  };

  FilePtr find(const char* what, const std::string& path) const;
  void check_folder(const char* what, const std::string& path) const;
  std::unique_ptr<WritableFile> create(const std::string& path, const std::string& host);
  void note_change(const std::string& path, const std::string& host);
  void make_names_durable(const std::string& folder);
  void tear(File& file, Dice& dice);
  bool fails(Operation operation, const std::string& path);
  void change();

  std::map<std::string, FilePtr> files_;
  std::map<std::string, Change> changes_;
  std::set<std::string> directories_;
  std::map<std::pair<Operation, std::string>, Failing> faults_;
  uint64_t capacity_ = std::numeric_limits<uint64_t>::max();
  std::optional<uint64_t> changes_left_;
  uint64_t failed_syncs_ = 0;
};

}  // namespace argosy
