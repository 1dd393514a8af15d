// Every operation of every backend, against a plain computation.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"
#include "argosy/comm/test_groups.h"

namespace argosy::comm {
namespace {

constexpr size_t kLarge = 1'500'017;  // does not fit a stage at once
const std::vector<std::string> kBackends = {"inproc", "shm", "tcp", "hierarchical"};

/// Rank r's element i: a small integer, exact in every type.
template <class T>
T value(int rank, size_t i) {
  return static_cast<T>(RandomStream(7, static_cast<uint64_t>(rank)).below(i, 7)) - 3;
}

template <class T>
std::vector<T> values(int rank, size_t count) {
  std::vector<T> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = value<T>(rank, i);
  return all;
}

template <class T>
T reduced(Reduce op, int ranks, size_t i) {
  T result = value<T>(0, i);
  for (int rank = 1; rank < ranks; ++rank) {
    const T next = value<T>(rank, i);
    if (op == Reduce::max) result = std::max(result, next);
    if (op == Reduce::min) result = std::min(result, next);
    if (op == Reduce::prod) result *= next;
    if (op == Reduce::sum || op == Reduce::avg) result += next;
  }
  return op == Reduce::avg ? result / static_cast<T>(ranks) : result;
}

template <class T>
std::vector<T> reduced_values(Reduce op, int ranks, size_t count) {
  std::vector<T> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = reduced<T>(op, ranks, i);
  return all;
}

/// In place, in any memory and in the arena.
template <class T>
void check_all_reduce(Group& group, size_t count, Reduce op) {
  const std::vector<T> expected = reduced_values<T>(op, group.size(), count);
  std::vector<T> data = values<T>(group.rank(), count);
  group.all_reduce<T>(data, op);
  EXPECT_TRUE(data == expected) << name(op) << " of " << count;

  const std::span<std::byte> memory = group.arena(count * sizeof(T));
  const std::span<T> shared(reinterpret_cast<T*>(memory.data()), count);
  for (int round = 0; round < 2; ++round) {
    std::ranges::copy(values<T>(group.rank(), count), shared.begin());
    group.all_reduce(shared, op);
    EXPECT_TRUE(std::ranges::equal(shared, expected)) << name(op) << " of " << count << ", arena";
  }
  // One rank's in the arena, the others' elsewhere.
  std::ranges::copy(values<T>(group.rank(), count), shared.begin());
  data = values<T>(group.rank(), count);
  group.all_reduce(group.rank() == 0 ? shared : std::span<T>(data), op);
  EXPECT_TRUE(std::ranges::equal(group.rank() == 0 ? shared : std::span<T>(data), expected))
      << name(op) << " of " << count << ", mixed";
}

template <class T>
void check_reduce(Group& group, size_t count, Reduce op) {
  const int root = group.size() - 1;
  const std::vector<T> mine = values<T>(group.rank(), count);
  std::vector<T> result(group.rank() == root ? count : 0, T{99});
  group.reduce<T>(mine, result, root, op);
  EXPECT_TRUE(mine == values<T>(group.rank(), count));
  if (group.rank() != root) return;
  EXPECT_TRUE(result == reduced_values<T>(op, group.size(), count)) << name(op) << count;
}

template <class T>
void check_reduce_scatter(Group& group, size_t count, Reduce op) {
  const auto ranks = static_cast<size_t>(group.size());
  const std::vector<T> all = values<T>(group.rank(), count * ranks);
  std::vector<T> mine(count);
  group.reduce_scatter<T>(all, mine, op);
  for (size_t i = 0; i < count; ++i)
    ASSERT_EQ(mine[i], reduced<T>(op, group.size(), static_cast<size_t>(group.rank()) * count + i));
}

template <class T>
void check_moves(Group& group, size_t count) {
  const auto ranks = static_cast<size_t>(group.size());
  const auto own = static_cast<size_t>(group.rank());
  const std::vector<T> mine = values<T>(group.rank(), count);
  std::vector<T> all(count * ranks);
  group.all_gather<T>(mine, all);
  for (size_t from = 0; from < ranks; ++from)
    ASSERT_TRUE(std::ranges::equal(std::span(all).subspan(from * count, count),
                                   values<T>(static_cast<int>(from), count)));
  std::vector<T> again(count * ranks);
  std::ranges::copy(mine, again.begin() + static_cast<ptrdiff_t>(own * count));
  group.all_gather<T>(std::span(again).subspan(own * count, count), again);
  EXPECT_TRUE(again == all) << "in place";

  for (int root = 0; root < group.size(); ++root) {
    std::vector<T> data = mine;
    group.broadcast<T>(data, root);
    EXPECT_TRUE(data == values<T>(root, count)) << "broadcast of " << root;

    std::vector<T> part(count);
    const std::vector<T> parts =
        group.rank() == root ? values<T>(root, count * ranks) : std::vector<T>();
    group.scatter<T>(parts, part, root);
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(part[i], value<T>(root, own * count + i));
  }

  std::vector<T> to = values<T>(group.rank(), count * ranks), from(count * ranks);
  group.all_to_all<T>(to, from);
  for (size_t i = 0; i < from.size(); ++i)
    ASSERT_EQ(from[i], value<T>(static_cast<int>(i / count), own * count + i % count));
  group.all_to_all<T>(to, to);
  EXPECT_TRUE(to == from) << "in place";
}

/// Round the ranks; the last one receives first.
template <class T>
void check_messages(Group& group, size_t count) {
  if (group.size() == 1) return;
  const int next = (group.rank() + 1) % group.size();
  const int before = (group.rank() + group.size() - 1) % group.size();
  const std::vector<T> mine = values<T>(group.rank(), count);
  std::vector<T> theirs(count);
  if (group.rank() != 0) group.receive<T>(theirs, before);
  group.send<T>(mine, next);
  if (group.rank() == 0) group.receive<T>(theirs, before);
  EXPECT_TRUE(theirs == values<T>(before, count));
}

template <class T>
void check_everything(Group& group, size_t count) {
  for (const Reduce op : {Reduce::sum, Reduce::avg, Reduce::max, Reduce::min, Reduce::prod}) {
    check_all_reduce<T>(group, count, op);
    check_reduce<T>(group, count, op);
    check_reduce_scatter<T>(group, count, op);
  }
  check_moves<T>(group, count);
  check_messages<T>(group, count);
  group.barrier();
}

class Backends : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  static void on_ranks(const std::function<void(Group&)>& f) {
    const auto& [backend, ranks] = GetParam();
    if (backend != "nccl") return on_group(backend, ranks, f);
    try {
      on_group(backend, ranks, f,
               [](GroupOptions& options) { options.device = std::to_string(options.rank); });
    } catch (const ConfigError& e) {
      const std::string text = e.what();
      if (!text.starts_with("backend nccl: ")) throw;
      GTEST_SKIP() << text;
    }
  }
};

TEST_P(Backends, KnowTheirRanks) {
  on_ranks([](Group& group) {
    EXPECT_EQ(group.size(), std::get<1>(GetParam()));
    std::vector<int32_t> all(static_cast<size_t>(group.size()));
    std::vector<int32_t> expected = all;
    std::iota(expected.begin(), expected.end(), 0);
    group.all_gather<int32_t>(std::vector<int32_t>{group.rank()}, all);
    EXPECT_EQ(all, expected);
  });
}

TEST_P(Backends, ComputeEveryOperationOnEveryType) {
  on_ranks([](Group& group) {
    for (const size_t count : {0, 1, 7, 1000, 65'537}) {
      check_everything<float>(group, count);
      check_everything<double>(group, count);
      check_everything<int32_t>(group, count);
      check_everything<int64_t>(group, count);
    }
  });
}

TEST_P(Backends, TakeMoreThanFitsTheStages) {
  on_ranks([](Group& group) {
    check_all_reduce<float>(group, kLarge, Reduce::sum);
    check_reduce<double>(group, kLarge, Reduce::sum);
    check_reduce_scatter<double>(group, kLarge / 3, Reduce::sum);
    check_moves<float>(group, kLarge / 2);
    check_messages<float>(group, kLarge);
  });
}

TEST_P(Backends, RunManyCallsWithoutATrace) {
  on_ranks([](Group& group) {
    std::vector<float> data(3000);
    for (int step = 0; step < 2000; ++step) {
      data.assign(data.size(), static_cast<float>(step + group.rank()));
      group.all_reduce<float>(std::span(data).first(step % 2 == 0 ? 10 : data.size()));
      const auto n = static_cast<float>(group.size());
      ASSERT_EQ(data[3], n * static_cast<float>(step) + n * (n - 1) / 2) << step;
    }
  });
}

TEST_P(Backends, MakeStartedCallsInOrder) {
  on_ranks([](Group& group) {
    std::vector<std::vector<float>> data;
    std::vector<Work> works;
    for (size_t i = 0; i < 200; ++i) data.push_back(values<float>(group.rank(), 100 * i));
    for (auto& each : data) works.push_back(group.start(calls::all_reduce(std::span(each))));
    std::vector<int64_t> one = {1};
    group.all_reduce<int64_t>(one);  // queued after those
    EXPECT_EQ(one[0], group.size());
    for (size_t i = 0; i < data.size(); ++i)
      EXPECT_TRUE(data[i] == reduced_values<float>(Reduce::sum, group.size(), 100 * i));
    for (Work& work : works) work.wait();
    Work().wait();
  });
}

TEST_P(Backends, HaveSubGroups) {
  on_ranks([](Group& group) {
    std::vector<int> backwards(static_cast<size_t>(group.size()));
    std::iota(backwards.rbegin(), backwards.rend(), 0);
    const auto turned = group.sub_group(backwards);
    ASSERT_NE(turned, nullptr);
    EXPECT_EQ(turned->rank(), group.size() - 1 - group.rank());
    check_all_reduce<float>(*turned, 5000, Reduce::sum);

    std::vector<int> even, odd;
    for (int rank = 0; rank < group.size(); ++rank) (rank % 2 == 0 ? even : odd).push_back(rank);
    const auto evens = group.sub_group(even), odds = group.sub_group(odd);
    EXPECT_EQ(evens != nullptr, group.rank() % 2 == 0);
    EXPECT_EQ(odds != nullptr, group.rank() % 2 == 1);
    Group& mine = evens ? *evens : *odds;
    check_everything<float>(mine, 1000);
    group.barrier();
  });
}

std::string param_name(const testing::TestParamInfo<std::tuple<std::string, int>>& info) {
  return std::get<0>(info.param) + "_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(All, Backends,
                         testing::Combine(testing::ValuesIn(kBackends), testing::Range(1, 5)),
                         param_name);

/// Skipped, with the reason, unless there is a CUDA device for each rank.
INSTANTIATE_TEST_SUITE_P(Devices, Backends,
                         testing::Combine(testing::Values("nccl"), testing::Range(1, 5)),
                         param_name);

/// The backend of a launcher, among processes; by module_test.cc.
std::vector<std::tuple<std::string, int>> of_launcher() {
  const auto test = launched_test();
  if (!test) return {};
  return {{test->backend, test->ranks}};
}
INSTANTIATE_TEST_SUITE_P(Launched, Backends, testing::ValuesIn(of_launcher()), param_name);

}  // namespace
}  // namespace argosy::comm
