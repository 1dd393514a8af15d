#include "argosy/ps/table_home.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

namespace argosy::ps {
namespace {

struct TemporaryFolder {
  explicit TemporaryFolder(std::string at) : path(std::move(at)) {}
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);  // tables have removed their files
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string path;
};

}  // namespace

TableHome TableHome::in(Env& env, std::string folder) {
  return {
      .env = &env, .folder = std::move(folder), .readers = std::make_shared<RowReaders>(kReaders)};
}

TableHome TableHome::temporary(Env& env) {
  const std::string name = fmt::format("argosy-rows-{:016x}", env.random());
  const auto folder =
      std::make_shared<TemporaryFolder>((std::filesystem::temp_directory_path() / name).string());
  TableHome home = in(env, folder->path);
  home.keeps = folder;
  return home;
}

RowReaders::~RowReaders() {
  std::vector<Thread> threads;
  {
    const Lock lock(mutex_);
    tasks_.clear();
    threads.swap(threads_);
  }
  for (Thread& thread : threads) thread.request_stop();
}

void RowReaders::post(std::function<void()> task) {
  {
    const Lock lock(mutex_);
    tasks_.push_back(std::move(task));
    if (threads_.size() < most_ && threads_.size() < tasks_.size() + 1)
      threads_.emplace_back("reader of rows", [this](const std::stop_token& stop) { run(stop); });
  }
  changed_.notify_one();
}

void RowReaders::run(const std::stop_token& stop) {
  for (;;) {
    std::function<void()> task;
    {
      const Lock lock(mutex_);
      const auto has_task = [&]() REQUIRES(mutex_) { return !tasks_.empty(); };
      if (!changed_.wait(mutex_, stop, has_task) || stop.stop_requested()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace argosy::ps
