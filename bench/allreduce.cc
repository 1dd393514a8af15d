// An all-reduce of 4 KB, 1.2 MB and 16 MB of floats between real processes of this host: on any
// memory, in the arena, over sockets, and by OpenMPI where mpirun and argosy_mpi_allreduce are, in
// turns. Every round writes its data anew.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/own_folder.h"
#include "argosy/comm/group.h"
#include "argosy/world/env.h"
#include "bench/allreduce_work.h"
#include "bench/bench.h"
#include "bench/processes.h"

namespace argosy::benches {
namespace {

using allreduce_work::kSizes;
using allreduce_work::Times;

enum class Memory { any, arena };

/// One rank: the times of this part.
Times run_rank(const comm::GroupOptions& options, Memory memory, int rounds) {
  const auto env = real_env();
  const auto group = comm::connect_group(*env, options);
  Times times;
  for (size_t i = 0; i < kSizes.size(); ++i) {
    std::vector<float> own(kSizes[i]);
    std::span<float> data = own;
    if (memory == Memory::arena)
      data = {reinterpret_cast<float*>(group->arena(data.size_bytes()).data()), data.size()};
    times[i] = allreduce_work::measure(
        data, options.rank, static_cast<int>(options.ranks.size()), rounds,
        [&] { group->barrier(); }, [&] { group->all_reduce(data); });
  }
  return times;
}

/// The times of rank 0.
Times with_group(int ranks, const std::string& backend, Memory memory, int rounds) {
  comm::GroupOptions options{.backend = backend,
                             .ranks = std::vector<Endpoint>(static_cast<size_t>(ranks))};
  std::vector<int> sockets;
  for (Endpoint& at : options.ranks) sockets.push_back(listening_socket(at));
  std::vector<BenchProcess<Times>> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    options.rank = rank;
    options.listen_fd = sockets[static_cast<size_t>(rank)];
    processes.emplace_back([&] { return run_rank(options, memory, rounds); });
  }
  for (const int socket : sockets) ::close(socket);
  std::vector<Times> all;
  for (auto& process : processes) all.push_back(process.wait());
  return all.front();
}

/// Absent without OpenMPI.
std::optional<Times> with_mpi(int ranks, int rounds) {
  const std::filesystem::path program = own_folder() / "argosy_mpi_allreduce";
  if (!std::filesystem::exists(program) || std::system("command -v mpirun >/dev/null") != 0)
    return std::nullopt;
  const std::string out = (std::filesystem::temp_directory_path() /
                           ("argosy-bench-allreduce-" + std::to_string(::getpid())))
                              .string();
  const std::string line = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -n " +
                           std::to_string(ranks) + " --oversubscribe '" + program.string() + "' " +
                           std::to_string(rounds) + " >'" + out + "'";
  check<IoError>(std::system(line.c_str()) == 0, "mpirun failed: ", line);
  Times times;
  std::ifstream in(out);
  for (auto& [median, best] : times) in >> median >> best;
  check<IoError>(in.good(), "argosy_mpi_allreduce has not written its times to ", out);
  std::filesystem::remove(out);
  return times;
}

constexpr std::array kNames = {"4KB", "1.2MB", "16MB"};

void report(BenchResults& results, const std::string& name, const std::vector<Times>& turns) {
  for (size_t i = 0; i < kSizes.size(); ++i) {
    std::vector<double> medians, bests;
    for (const Times& times : turns) {
      medians.push_back(times[i].median);
      bests.push_back(times[i].best);
    }
    results.emplace_back(name + "_" + kNames[i] + "_us", median(medians) * 1e6);
    results.emplace_back(name + "_" + kNames[i] + "_best_us",
                         *std::ranges::min_element(bests) * 1e6);
  }
}

void compare(BenchResults& results, const std::string& name, const std::vector<Times>& turns,
             const std::vector<Times>& mpi) {
  for (size_t i = 0; i < kSizes.size(); ++i) {
    std::vector<double> ratios;
    for (size_t turn = 0; turn < mpi.size(); ++turn)
      ratios.push_back(turns[turn][i].median / mpi[turn][i].median);
    results.emplace_back(name + "_" + kNames[i] + "_to_openmpi", median(ratios));
  }
}

BenchResults run(const BenchFlags& flags) {
  const auto ranks = static_cast<int>(integer(flags, "ranks", 2));
  const auto rounds = static_cast<int>(integer(flags, "rounds"));
  std::vector<Times> any, arena, tcp, mpi;
  for (int64_t turn = 0; turn < integer(flags, "turns"); ++turn) {
    any.push_back(with_group(ranks, "shm", Memory::any, rounds));
    if (const auto times = with_mpi(ranks, rounds)) mpi.push_back(*times);
    arena.push_back(with_group(ranks, "shm", Memory::arena, rounds));
    tcp.push_back(with_group(ranks, "tcp", Memory::any, rounds));
  }
  BenchResults results;
  report(results, "any", any);
  report(results, "arena", arena);
  report(results, "tcp", tcp);
  if (mpi.empty()) return results;
  report(results, "openmpi", mpi);
  compare(results, "any", any, mpi);
  compare(results, "arena", arena, mpi);
  return results;
}

}  // namespace

Bench allreduce() {
  return {.help = "an all-reduce between processes of this host, beside OpenMPI's",
          .flags = {{"ranks", "2"}, {"rounds", "100"}, {"turns", "5"}},
          .run = run};
}

}  // namespace argosy::benches
