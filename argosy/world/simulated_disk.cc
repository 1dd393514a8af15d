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

constexpr const char* kAbsent = ": No such file or directory";

}  // namespace

struct SimulatedDisk::File {
  std::vector<std::byte> bytes;  // as they are read
  size_t synced = 0;             // of them are durable
  std::string host;              // wrote it last
  bool open = true;              // for writing
  bool lossy = false;            // a sync has failed
  std::string path;              // the latest of its names
};

class SimulatedDisk::Handle final : public WritableFile {
 public:
  Handle(SimulatedDisk& disk, FilePtr file) : disk_(disk), file_(std::move(file)) {}

  void append(std::span<const std::byte> bytes) override {
    if (!file_->open) return;
    if (disk_.changes_left_ == 0U) add(bytes.first(bytes.size() / 2));
    disk_.change();
    const bool fails = disk_.fails(Operation::append, file_->path);
    if (fails) {
      add(bytes.first(bytes.size() / 2));
      fail<IoError>("write ", file_->path, ": Input/output error");
    }
    const uint64_t used = disk_.used();
    const uint64_t room = disk_.capacity_ - std::min(disk_.capacity_, used);
    add(bytes.first(std::min<uint64_t>(room, bytes.size())));
    check<IoError>(bytes.size() <= room, "write ", file_->path, ": No space left on device");
  }

  void sync() override {
    if (!file_->open) return;
    disk_.change();
    if (disk_.fails(Operation::sync, file_->path)) {
      file_->lossy = true;
      ++disk_.failed_syncs_;
      fail<IoError>("sync ", file_->path, ": Input/output error");
    }
    if (!file_->lossy) file_->synced = file_->bytes.size();
  }

 private:
  void add(std::span<const std::byte> bytes) {
    file_->bytes.insert(file_->bytes.end(), bytes.begin(), bytes.end());
  }

  SimulatedDisk& disk_;
  FilePtr file_;
};

class SimulatedDisk::Snapshot final : public ReadableFile {
 public:
  Snapshot(SimulatedDisk& disk, std::vector<std::byte> bytes, std::string path)
      : disk_(disk), bytes_(std::move(bytes)), path_(std::move(path)) {}
  uint64_t size() const override { return bytes_.size(); }
  void read_at(uint64_t offset, std::span<std::byte> to) override {
    check<IoError>(!disk_.fails(Operation::read, plain(path_)), "read ", path_,
                   ": Input/output error");
    check<IoError>(offset <= bytes_.size() && to.size() <= bytes_.size() - offset, "read ", path_,
                   ": ends at ", bytes_.size(), ", ", to.size(), " bytes expected from ", offset);
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(offset), to.size(), to.begin());
  }

 private:
  SimulatedDisk& disk_;
  std::vector<std::byte> bytes_;
  std::string path_;
};

SimulatedDisk::FilePtr SimulatedDisk::find(const char* what, const std::string& path) const {
  const auto found = files_.find(plain(path));
  check<IoError>(found != files_.end(), what, " ", path, kAbsent);
  return found->second;
}

void SimulatedDisk::check_folder(const char* what, const std::string& path) const {
  const std::string folder = folder_of(plain(path));
  check<IoError>(folder.empty() || folder == "/" || directories_.contains(folder), what, " ", path,
                 kAbsent);
}

void SimulatedDisk::note_change(const std::string& path, const std::string& host) {
  const auto found = files_.find(path);
  const FilePtr before = found == files_.end() ? nullptr : found->second;
  changes_.try_emplace(path, Change{host, before}).first->second.host = host;
}

std::unique_ptr<WritableFile> SimulatedDisk::create(const std::string& path,
                                                    const std::string& host) {
  change();
  const std::string at = plain(path);
  check_folder("open", path);
  check<IoError>(!directories_.contains(at), "open ", path, ": Is a directory");
  note_change(at, host);
  auto& file = files_[at];
  file = std::make_shared<File>();
  file->host = host;
  file->path = at;
  return std::make_unique<Handle>(*this, file);
}

std::unique_ptr<WritableFile> SimulatedDisk::create_file(const std::string& path,
                                                         const std::string& host) {
  return create(path, host);
}

std::unique_ptr<WritableFile> SimulatedDisk::create_new_file(const std::string& path,
                                                             const std::string& host) {
  check<IoError>(!file_exists(path), "open ", path, ": File exists");
  return create(path, host);
}

std::unique_ptr<ReadableFile> SimulatedDisk::open_file(const std::string& path) {
  check<IoError>(!directories_.contains(plain(path)), "read ", path, ": not a regular file");
  return std::make_unique<Snapshot>(*this, find("open", path)->bytes, path);
}

bool SimulatedDisk::file_exists(const std::string& path) const {
  return files_.contains(plain(path)) || directories_.contains(plain(path));
}

void SimulatedDisk::rename_file(const std::string& from, const std::string& to) {
  change();
  const std::string target = plain(to);
  const auto found = files_.find(plain(from));
  check<IoError>(found != files_.end(), "rename to ", to, kAbsent);
  check_folder("rename to", to);
  const FilePtr file = found->second;
  files_.erase(plain(from));
  changes_.erase(plain(from));
  files_[target] = file;
  file->path = target;
  make_names_durable(folder_of(target));
}

void SimulatedDisk::link_file(const std::string& from, const std::string& to,
                              const std::string& host) {
  change();
  const auto found = files_.find(plain(from));
  check<IoError>(found != files_.end(), "link to ", to, kAbsent);
  check_folder("link to", to);
  check<IoError>(!file_exists(to), "link to ", to, ": File exists");
  note_change(plain(to), host);
  files_[plain(to)] = found->second;
}

void SimulatedDisk::remove_file(const std::string& path, const std::string& host) {
  if (!files_.contains(plain(path))) return;
  change();
  note_change(plain(path), host);
  files_.erase(plain(path));
}

void SimulatedDisk::truncate_file(const std::string& path, uint64_t size) {
  change();
  File& file = *find("truncate", path);
  check<IoError>(size <= file.bytes.size(), "truncate ", path, " to ", size, " bytes: it has ",
                 file.bytes.size());
  file.bytes.resize(size);
  file.synced = std::min<size_t>(file.synced, size);
  if (fails(Operation::sync, plain(path))) {
    file.lossy = true;
    ++failed_syncs_;
    fail<IoError>("sync ", path, ": Input/output error");
  }
  if (!file.lossy) file.synced = size;
}

void SimulatedDisk::make_directories(const std::string& path) {
  change();
  for (std::string at = plain(path); !at.empty() && at != "/"; at = folder_of(at)) {
    check<IoError>(!files_.contains(at), "create directory ", path, ": Not a directory");
    directories_.insert(at);
  }
}

std::vector<std::string> SimulatedDisk::list_files(const std::string& folder) const {
  const std::string at = plain(folder);
  check<IoError>(directories_.contains(at), "list ", folder, kAbsent);
  std::vector<std::string> names;
  for (const auto& entry : files_)
    if (folder_of(entry.first) == at)
      names.push_back(std::filesystem::path(entry.first).filename().string());
  return names;
}

void SimulatedDisk::sync_folder(const std::string& folder) {
  change();
  make_names_durable(plain(folder));
}

void SimulatedDisk::make_names_durable(const std::string& folder) {
  std::erase_if(changes_, [&](const auto& change) {
    const std::string within = folder_of(change.first);
    return within == folder || (within.empty() && folder == ".");
  });
}

void SimulatedDisk::change() {
  if (!changes_left_) return;
  if (*changes_left_ == 0) throw Stopped{};
  --*changes_left_;
}

void SimulatedDisk::crash(const std::string& host, const std::function<size_t(size_t)>& kept) {
  changes_left_.reset();
  for (auto& entry : files_) {
    File& file = *entry.second;
    if (file.host != host || !file.open) continue;
    file.bytes.resize(file.synced + kept(file.bytes.size() - file.synced));
    file.synced = file.bytes.size();
    file.open = false;
  }
  std::erase_if(changes_, [&](const auto& change) { return change.second.host == host; });
}

void SimulatedDisk::crash_process(const std::string& host) {
  changes_left_.reset();
  for (auto& entry : files_)
    if (entry.second->host == host) entry.second->open = false;
}

void SimulatedDisk::tear(File& file, Dice& dice) {
  const size_t unsynced = file.bytes.size() - file.synced;
  const size_t end = file.synced + (dice.hit(0.5) ? unsynced : dice.below(unsynced + 1));
  file.bytes.resize(end);
  // Mostly all blocks are there, or one is missing, else nothing but the first loss would be met.
  const double missing = dice.hit(0.5) ? 0.0 : dice.hit(0.5) ? 0.1 : 0.5;
  for (size_t at = file.synced; at < end;) {
    const size_t next = std::min(end, (at / kBlock + 1) * kBlock);
    if (dice.hit(missing)) {
      const bool garbage = dice.hit(0.5);
      for (; at < next; ++at)
        file.bytes[at] = garbage ? static_cast<std::byte>(dice.below(256)) : std::byte{0};
    }
    at = next;
  }
  file.synced = end;
  file.lossy = false;
}

void SimulatedDisk::crash_machine(const std::string& host, Dice& dice) {
  crash_process(host);
  for (auto change = changes_.begin(); change != changes_.end();) {
    if (change->second.host != host) {
      ++change;
      continue;
    }
    if (dice.hit(0.5)) {
      if (change->second.before == nullptr)
        files_.erase(change->first);
      else
        files_[change->first] = change->second.before;
    }
    change = changes_.erase(change);
  }
  std::set<const File*> torn;  // once, whatever the number of its names
  for (auto& entry : files_)
    if (entry.second->host == host && torn.insert(entry.second.get()).second)
      tear(*entry.second, dice);
}

uint64_t SimulatedDisk::used() const {
  uint64_t bytes = 0;
  std::set<const File*> counted;
  for (const auto& entry : files_)
    if (counted.insert(entry.second.get()).second) bytes += entry.second->bytes.size();
  return bytes;
}

void SimulatedDisk::inject(Operation operation, Failing failing, const std::string& path) {
  faults_[{operation, path.empty() ? path : plain(path)}] = failing;
}

bool SimulatedDisk::fails(Operation operation, const std::string& path) {
  for (const std::string& name : {path, std::string()}) {
    const auto found = faults_.find({operation, name});
    if (found == faults_.end()) continue;
    if (found->second == Failing::once) faults_.erase(found);
    return true;
  }
  return false;
}

void SimulatedDisk::flip_bit(const std::string& path, uint64_t offset, unsigned bit) {
  File& file = *find("flip", path);
  check<IoError>(offset < file.bytes.size(), "flip ", path, ": ends at ", file.bytes.size());
  file.bytes[offset] ^= static_cast<std::byte>(1U << bit);
}

}  // namespace argosy
