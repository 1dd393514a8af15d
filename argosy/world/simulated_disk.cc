#include "argosy/world/simulated_disk.h"

#include <algorithm>
#include <filesystem>

#include "argosy/base/error.h"

namespace argosy {
namespace {

std::string plain(const std::string& path) {
  std::string normal = std::filesystem::path(path).lexically_normal().string();
  if (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

std::string folder_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

class Snapshot final : public ReadableFile {
 public:
  Snapshot(std::vector<std::byte> bytes, std::string path)
      : bytes_(std::move(bytes)), path_(std::move(path)) {}
  uint64_t size() const override { return bytes_.size(); }
  void read_at(uint64_t offset, std::span<std::byte> to) override {
    check<IoError>(offset <= bytes_.size() && to.size() <= bytes_.size() - offset, "read ", path_,
                   ": ends at ", bytes_.size(), ", ", to.size(), " bytes expected from ", offset);
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(offset), to.size(), to.begin());
  }

 private:
  std::vector<std::byte> bytes_;
  std::string path_;
};

}  // namespace

class SimulatedDisk::Handle final : public WritableFile {
 public:
  explicit Handle(std::shared_ptr<File> file) : file_(std::move(file)), writer_(file_->writer) {}
  void append(std::span<const std::byte> bytes) override {
    if (file_->writer == writer_)
      file_->bytes.insert(file_->bytes.end(), bytes.begin(), bytes.end());
  }
  void sync() override { file_->synced = file_->bytes.size(); }

 private:
  std::shared_ptr<File> file_;
  std::string writer_;
};

std::unique_ptr<WritableFile> SimulatedDisk::create_file(const std::string& path,
                                                         const std::string& host) {
  const std::string at = plain(path), folder = folder_of(at);
  check<IoError>(folder.empty() || folder == "/" || directories_.contains(folder), "open ", path,
                 ": No such file or directory");
  check<IoError>(!directories_.contains(at), "open ", path, ": Is a directory");
  auto& file = files_[at];
  file = std::make_shared<File>();
  file->writer = host;
  return std::make_unique<Handle>(file);
}

std::unique_ptr<ReadableFile> SimulatedDisk::open_file(const std::string& path) const {
  const std::string at = plain(path);
  check<IoError>(!directories_.contains(at), "read ", path, ": not a regular file");
  const auto found = files_.find(at);
  check<IoError>(found != files_.end(), "open ", path, ": No such file or directory");
  return std::make_unique<Snapshot>(found->second->bytes, path);
}

bool SimulatedDisk::file_exists(const std::string& path) const {
  return files_.contains(plain(path)) || directories_.contains(plain(path));
}

void SimulatedDisk::rename_file(const std::string& from, const std::string& to) {
  const auto found = files_.find(plain(from));
  check<IoError>(found != files_.end(), "rename to ", to, ": No such file or directory");
  const std::string folder = folder_of(plain(to));
  check<IoError>(folder.empty() || folder == "/" || directories_.contains(folder), "rename to ", to,
                 ": No such file or directory");
  auto file = std::move(found->second);
  files_.erase(found);
  files_[plain(to)] = std::move(file);
}

void SimulatedDisk::remove_file(const std::string& path) { files_.erase(plain(path)); }

void SimulatedDisk::make_directories(const std::string& path) {
  for (std::string at = plain(path); !at.empty() && at != "/"; at = folder_of(at)) {
    check<IoError>(!files_.contains(at), "create directory ", path, ": Not a directory");
    directories_.insert(at);
  }
}

void SimulatedDisk::crash(const std::string& host, const std::function<size_t(size_t)>& kept) {
  for (auto& entry : files_) {
    File& file = *entry.second;
    if (file.writer != host) continue;
    file.bytes.resize(file.synced + kept(file.bytes.size() - file.synced));
    file.synced = file.bytes.size();
    file.writer.clear();
  }
}

}  // namespace argosy
