#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <vector>

// The work that argosy's ranks and OpenMPI's have in common. Also for programs without the library.
namespace argosy::benches::allreduce_work {

struct Time {
  double median = 0, best = 0;  // seconds
};

inline constexpr std::array<size_t, 3> kSizes = {1024, 300'000, 4'000'000};  // floats
using Times = std::array<Time, kSizes.size()>;

/// Calls `all_reduce` on fresh data. The barrier is not in the time.
template <class Barrier, class AllReduce>
Time measure(std::span<float> data, int rank, int ranks, int rounds, const Barrier& barrier,
             const AllReduce& all_reduce) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  constexpr int kWarmUp = 5;
  for (int round = 0; round < rounds + kWarmUp; ++round) {
    const auto mine = static_cast<float>(round % 100 + rank);
    std::ranges::fill(data, mine);
    barrier();
    const auto start = Clock::now();
    all_reduce();
    const std::chrono::duration<double> time = Clock::now() - start;
    const auto expected = static_cast<float>(ranks * (round % 100) + ranks * (ranks - 1) / 2);
    if (data.front() != expected || data.back() != expected) std::abort();  // wrong sums
    if (round >= kWarmUp) times.push_back(time.count());
  }
  std::ranges::sort(times);
  return {times[times.size() / 2], times.front()};
}

}  // namespace argosy::benches::allreduce_work
