#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "argosy/base/env.h"

namespace argosy {

/// The files of a simulated cluster, in memory; all hosts see the same ones. What a host has
/// written and not synced may be lost when it crashes. Thread safety: none.
class SimulatedDisk {
 public:
  std::unique_ptr<WritableFile> create_file(const std::string& path, const std::string& host);
  std::unique_ptr<ReadableFile> open_file(const std::string& path) const;
  bool file_exists(const std::string& path) const;
  void rename_file(const std::string& from, const std::string& to);
  void remove_file(const std::string& path);
  void make_directories(const std::string& path);

  /// Keeps `kept(n)` of the n bytes of each file that the host has not synced. Files that it holds
  /// open take no more bytes.
  void crash(const std::string& host, const std::function<size_t(size_t)>& kept);

 private:
  struct File {
    std::vector<std::byte> bytes;
    size_t synced = 0;
    std::string writer;  // host; empty after its crash
  };
  class Handle;

  std::map<std::string, std::shared_ptr<File>> files_;
  std::set<std::string> directories_;
};

}  // namespace argosy
