#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "argosy/base/descriptor.h"
#include "argosy/base/mutex.h"
#include "argosy/comm/group.h"
#include "argosy/net/sockets.h"
#include "argosy/world/env.h"

/// Groups of threads for tests, by any backend.
namespace argosy::comm {

/// Sockets that listen on loopback, one per rank, `per_host` of them on each "host".
struct TestRanks {
  explicit TestRanks(int ranks, int per_host = 1 << 30) {
    for (int rank = 0; rank < ranks; ++rank) {
      Endpoint at{"127.0.0." + std::to_string(1 + rank / per_host), 0};
      sockets.push_back(bind_to(at));
      start_listening(sockets.back(), at);
      at.port = port_of(sockets.back());
      endpoints.push_back(at);
    }
  }
  GroupOptions options(int rank, const std::string& backend = "auto") {
    return {.backend = backend,
            .rank = rank,
            .ranks = endpoints,
            .listen_fd = sockets[static_cast<size_t>(rank)].release(),
            .job = "test",
            .join_within = std::chrono::seconds(60),
            .deadline = std::chrono::seconds(60)};
  }

  std::vector<Descriptor> sockets;
  std::vector<Endpoint> endpoints;
};

/// Collects the ranks' log lines. Thread safety: full.
class RankLog {
 public:
  std::function<void(const std::string&)> writer() {
    return [this](const std::string& line) {
      const Lock lock(mutex_);
      text_ += line + "\n";
      changed_.notify_all();
    };
  }
  std::string text() const {
    const Lock lock(mutex_);
    return text_;
  }
  /// Waits until each of these has been logged; false if that takes too long.
  bool await(const std::vector<std::string>& parts) {
    const Lock lock(mutex_);
    return changed_.wait_for(mutex_, std::chrono::seconds(60), [&]() REQUIRES(mutex_) {
      return std::ranges::all_of(parts, [&](const std::string& part) REQUIRES(mutex_) {
        return text_.find(part) != std::string::npos;
      });
    });
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::string text_ GUARDED_BY(mutex_);
};

/// Calls f(rank) on a thread each and throws the first exception, by rank.
inline void on_threads(int ranks, const std::function<void(int)>& f) {
  std::vector<std::exception_ptr> failures(static_cast<size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&f, &failures, rank] {
        try {
          f(rank);
        } catch (...) {
          failures[static_cast<size_t>(rank)] = std::current_exception();
        }
      });
  }
  for (const std::exception_ptr& failure : failures)
    if (failure != nullptr) std::rethrow_exception(failure);
}

/// Parameters of a test process that a launcher starts: the backend, the number of ranks, this
/// one's, and a folder to meet in.
struct LaunchedTest {
  std::string backend, folder;
  int ranks = 0, rank = 0;
};
/// Absent if no launcher started this process.
inline std::optional<LaunchedTest> launched_test() {
  const char* const backend = std::getenv("ARGOSY_TEST_BACKEND");
  const char* const folder = std::getenv("ARGOSY_TEST_FOLDER");
  const char* const ranks = std::getenv("OMPI_COMM_WORLD_SIZE");
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (backend == nullptr || folder == nullptr || ranks == nullptr || rank == nullptr) return {};
  return LaunchedTest{backend, folder, std::stoi(ranks), std::stoi(rank)};
}

/// This process is one rank; the others are processes that run the same test.
inline GroupOptions launched_options(const LaunchedTest& test) {
  const auto* const info = testing::UnitTest::GetInstance()->current_test_info();
  return {.backend = test.backend,
          // Not in the order of tasks.
          .rank = test.ranks - 1 - test.rank,
          .meeting = MeetingPlace{.ranks = test.ranks, .folder = test.folder, .host = "127.0.0.1"},
          .job = std::string(info->test_suite_name()) + "." + info->name(),
          .join_within = std::chrono::seconds(60),
          .deadline = std::chrono::seconds(60)};
}

/// Two ranks per host if the backend knows hosts.
inline void on_group(
    const std::string& backend, int ranks, const std::function<void(Group&)>& f,
    const std::function<void(GroupOptions&)>& change = [](GroupOptions&) {}) {
  const auto env = real_env();
  if (const auto launched = launched_test()) {
    GroupOptions options = launched_options(*launched);
    change(options);
    return f(*connect_group(*env, options));
  }
  if (backend == "inproc") {
    GroupOptions options{.deadline = std::chrono::seconds(60)};
    change(options);
    auto groups = inproc_groups(*env, ranks, options.deadline);
    return on_threads(ranks, [&](int rank) {
      const auto own = std::move(groups[static_cast<size_t>(rank)]);
      f(*own);
    });
  }
  TestRanks test(ranks, backend == "hierarchical" ? 2 : ranks);
  on_threads(ranks, [&](int rank) {
    GroupOptions options = test.options(rank, backend);
    change(options);
    f(*connect_group(*env, options));
  });
}

}  // namespace argosy::comm
