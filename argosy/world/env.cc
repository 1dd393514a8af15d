#include "argosy/world/env.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>
#include <unordered_map>

#include "argosy/base/error.h"
#include "argosy/base/mutex.h"

namespace argosy {
namespace {

void check_system(bool ok, const char* what, const std::string& path) {
  if (!ok) fail<IoError>(what, " ", path, ": ", std::strerror(errno));
}

/// A file descriptor that closes itself.
class Fd {
 public:
  Fd(const std::string& path, int flags, mode_t mode = 0666)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {
    check_system(fd_ >= 0, "open", path);
  }
  ~Fd() { ::close(fd_); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

class PosixFile final : public WritableFile {
 public:
  PosixFile(std::string path, int flags, mode_t mode)
      : path_(std::move(path)), fd_(path_, O_WRONLY | O_CREAT | flags, mode) {}

  void append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      check_system(n >= 0, "write", path_);
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
  }
  void sync() override { check_system(::fsync(fd_.get()) == 0, "sync", path_); }

 private:
  std::string path_;
  Fd fd_;
};

class PosixReadable final : public ReadableFile {
 public:
  /// Not blocking: to open a pipe that nobody writes to would wait for ever.
  explicit PosixReadable(std::string path)
      : path_(std::move(path)), fd_(path_, O_RDONLY | O_NONBLOCK) {
    struct stat info {};
    check_system(::fstat(fd_.get(), &info) == 0, "stat", path_);
    check<IoError>(S_ISREG(info.st_mode), "read ", path_, ": not a regular file");
    size_ = static_cast<uint64_t>(info.st_size);
  }
  uint64_t size() const override { return size_; }
  void read_at(uint64_t offset, std::span<std::byte> to) override {
    while (!to.empty()) {
      const ssize_t n = ::pread(fd_.get(), to.data(), to.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      check_system(n >= 0, "read", path_);
      check<IoError>(n > 0, "read ", path_, ": ends at ", offset, ", ", to.size(),
                     " more bytes expected");
      offset += static_cast<uint64_t>(n);
      to = to.subspan(static_cast<size_t>(n));
    }
  }

 private:
  std::string path_;
  Fd fd_;
  uint64_t size_ = 0;
};

class RealEnv final : public Env {
 public:
  RealEnv() : work_(asio::make_work_guard(io_)), thread_([this] { io_.run(); }) {}
  ~RealEnv() override {
    io_.stop();
    thread_.join();
  }

  Time now() override { return std::chrono::steady_clock::now(); }

  TimerId schedule(Duration after, std::function<void()> task) override {
    Lock lock(mutex_);
    const TimerId id = ++last_timer_;
    auto timer = std::make_unique<asio::steady_timer>(io_, after);
    timer->async_wait([this, id, task = std::move(task)](const asio::error_code& error) {
      if (!error && forget(id)) task();
    });
    timers_.emplace(id, std::move(timer));
    return id;
  }

  bool cancel(TimerId id) override { return forget(id); }

  uint64_t random() override {
    Lock lock(mutex_);
    return (static_cast<uint64_t>(device_()) << 32) | device_();
  }

  std::unique_ptr<WritableFile> create_file(const std::string& path) override {
    return std::make_unique<PosixFile>(path, O_TRUNC, 0666);
  }

  std::unique_ptr<WritableFile> create_new_file(const std::string& path) override {
    return std::make_unique<PosixFile>(path, O_EXCL, 0600);
  }

  std::unique_ptr<ReadableFile> open_file(const std::string& path) override {
    return std::make_unique<PosixReadable>(path);
  }

  bool file_exists(const std::string& path) override { return ::access(path.c_str(), F_OK) == 0; }

  void rename_file(const std::string& from, const std::string& to) override {
    check_system(::rename(from.c_str(), to.c_str()) == 0, "rename to", to);
    const auto parent = std::filesystem::path(to).parent_path();
    sync_folder(parent.empty() ? "." : parent.string());
  }

  void link_file(const std::string& from, const std::string& to) override {
    check_system(::link(from.c_str(), to.c_str()) == 0, "link to", to);
  }

  void remove_file(const std::string& path) override {
    check_system(::unlink(path.c_str()) == 0 || errno == ENOENT, "remove", path);
  }

  void truncate_file(const std::string& path, uint64_t size) override {
    const Fd fd(path, O_WRONLY);
    struct stat info {};
    check_system(::fstat(fd.get(), &info) == 0, "stat", path);
    const auto had = static_cast<uint64_t>(info.st_size);
    check<IoError>(size <= had, "truncate ", path, " to ", size, " bytes: it has ", had);
    check_system(::ftruncate(fd.get(), static_cast<off_t>(size)) == 0, "truncate", path);
    check_system(::fsync(fd.get()) == 0, "sync", path);
  }

  std::vector<std::string> list_files(const std::string& folder) override {
    std::vector<std::string> names;
    std::error_code error;
    std::filesystem::directory_iterator entries(folder, error);
    for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
      if (!entries->is_directory(error) && !error) names.push_back(entries->path().filename());
    }
    check<IoError>(!error, "list ", folder, ": ", error.message());
    std::ranges::sort(names);
    return names;
  }

  void sync_folder(const std::string& folder) override {
    const Fd fd(folder, O_RDONLY | O_DIRECTORY);
    check_system(::fsync(fd.get()) == 0, "sync", folder);
  }

  void make_directories(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    check<IoError>(!error, "create directory ", path, ": ", error.message());
  }

 private:
  /// Whoever takes the timer out of the map decides whether its task runs.
  bool forget(TimerId id) {
    Lock lock(mutex_);
    return timers_.erase(id) > 0;
  }

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  Mutex mutex_;
  TimerId last_timer_ GUARDED_BY(mutex_) = 0;
  std::unordered_map<TimerId, std::unique_ptr<asio::steady_timer>> timers_ GUARDED_BY(mutex_);
  std::random_device device_ GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace

std::unique_ptr<Env> real_env() { return std::make_unique<RealEnv>(); }

}  // namespace argosy
