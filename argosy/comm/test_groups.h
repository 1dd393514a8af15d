#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "argosy/base/descriptor.h"
#include "argosy/comm/group.h"
#include "argosy/net/env.h"
#include "argosy/net/sockets.h"

/// Groups of threads for tests, by any backend.
namespace argosy {

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

/// Calls f(rank) on a thread each and throws the first exception, by rank.
inline void on_threads(int ranks, const std::function<void(int)>& f) {
  std::vector<std::exception_ptr> failures(static_cast<size_t>(ranks));
  {
    std::vector<std::jthread> threads;
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

/// Two ranks per host where the backend knows hosts.
inline void on_group(
    const std::string& backend, int ranks, const std::function<void(Group&)>& f,
    const std::function<void(GroupOptions&)>& change = [](GroupOptions&) {}) {
  const auto env = real_env();
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

}  // namespace argosy
