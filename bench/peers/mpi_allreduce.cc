// The all-reduces of bench/allreduce.cc by MPI: a median and a best time, in seconds, for each
// size.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/allreduce_work.h"

int main(int argc, char** argv) {
  namespace work = argosy::benches::allreduce_work;
  MPI_Init(&argc, &argv);
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 100;
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (const size_t size : work::kSizes) {
    std::vector<float> data(size);
    const work::Time time = work::measure(
        data, rank, ranks, rounds, [] { MPI_Barrier(MPI_COMM_WORLD); },
        [&] {
          MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(size), MPI_FLOAT, MPI_SUM,
                        MPI_COMM_WORLD);
        });
    if (rank == 0) std::printf("%.9f %.9f\n", time.median, time.best);
  }
  MPI_Finalize();
}
