#pragma once

#include <string>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/world/simulated_disk.h"

namespace argosy {

/// A world that is nothing but a simulated disk: time stands still in it. For what uses files
/// alone; a whole cluster is a Simulation (net/simulation.h). Thread safety: none.
class DiskEnv : public Env {
 public:
  DiskEnv(SimulatedDisk& disk, std::string host, uint64_t seed = 0)
      : disk_(disk), host_(std::move(host)), dice_(seed, 3) {}

  Time now() override { return {}; }
  TimerId schedule(Duration, std::function<void()>) override {
    fail<Error>("time stands still here: no timer will ever run");
  }
  bool cancel(TimerId) override { return false; }
  uint64_t random() override { return dice_.bits(); }

  std::unique_ptr<WritableFile> create_file(const std::string& path) override {
    return disk_.create_file(path, host_);
  }
  std::unique_ptr<WritableFile> create_new_file(const std::string& path) override {
    return disk_.create_new_file(path, host_);
  }
  std::unique_ptr<ReadableFile> open_file(const std::string& path) override {
    return disk_.open_file(path);
  }
  bool file_exists(const std::string& path) override { return disk_.file_exists(path); }
  void rename_file(const std::string& from, const std::string& to) override {
    disk_.rename_file(from, to);
  }
  void link_file(const std::string& from, const std::string& to) override {
    disk_.link_file(from, to, host_);
  }
  void remove_file(const std::string& path) override { disk_.remove_file(path, host_); }
  void truncate_file(const std::string& path, uint64_t size) override {
    disk_.truncate_file(path, size);
  }
  void make_directories(const std::string& path) override { disk_.make_directories(path); }
  std::vector<std::string> list_files(const std::string& folder) override {
    return disk_.list_files(folder);
  }
  void sync_folder(const std::string& folder) override { disk_.sync_folder(folder); }

 private:
  SimulatedDisk& disk_;
  const std::string host_;
  Dice dice_;
};

}  // namespace argosy
