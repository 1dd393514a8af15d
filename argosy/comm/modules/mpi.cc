// OpenMPI for ranks that mpirun or srun has started: one task is one rank.
#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "argosy/base/error.h"
#include "argosy/comm/engine.h"

namespace argosy::comm {
namespace {

/// Threads of one process take turns: no call here waits for another rank.
std::mutex& turn() {
  static std::mutex mutex;
  return mutex;
}

void require(int code, const char* what) {
  if (code == MPI_SUCCESS) [[likely]]
    return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail<IoError>("MPI cannot do ", what, ": ", text);
}

/// From the variables that launchers known to MPI set.
int tasks_of_launcher() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char* value = std::getenv(name); value != nullptr) return std::atoi(value);
  return 0;
}

/// MPI can be begun and ended once in a process.
class Library {
 public:
  static Library& of_this_process() {
    static Library library;
    return library;
  }
  /// Ranks are lost: do not wait for them at the end.
  void give_up() noexcept { broken_ = true; }
  int rank() const { return rank_; }
  int size() const { return size_; }

 private:
  Library() {
    MPI_Initialized(&begun_before_);
    int provided = MPI_THREAD_SERIALIZED;
    if (begun_before_ == 0)
      require(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "its start");
    else
      MPI_Query_thread(&provided);
    check<ConfigError>(provided >= MPI_THREAD_SERIALIZED,
                       "backend mpi: this MPI cannot be called by several threads in turn");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~Library() {
    int ended = 0;
    MPI_Finalized(&ended);
    if (begun_before_ == 0 && ended == 0 && !broken_) MPI_Finalize();
  }

  int begun_before_ = 0, rank_ = 0, size_ = 0;
  bool broken_ = false;
};

/// Before MPI begins: two ranks that are one task to it would wait for each other for ever.
void check_tasks(int ranks) {
  const int tasks = tasks_of_launcher();
  check<ConfigError>(tasks > 0,
                     "backend mpi: neither mpirun nor srun --mpi=pmix has started this process, "
                     "expected one of them with a task for each of ",
                     ranks, " ranks");
  check<ConfigError>(ranks <= tasks, "backend mpi: ", ranks, " ranks, but mpirun or srun has ",
                     "started ", tasks, " tasks, expected a task for each rank");
}

/// Maps ranks to tasks, whose numbers may differ.
std::vector<int> tasks_of_ranks(const EngineOptions& options, int own) {
  Token mine = {};
  std::memcpy(mine.data(), &own, sizeof(own));
  std::vector<int> tasks;
  for (const Token& each : options.exchange(mine)) {
    int task = 0;
    std::memcpy(&task, each.data(), sizeof(task));
    const auto before = std::ranges::find(tasks, task);
    check<ConfigError>(before == tasks.end(), "backend mpi: ranks ", before - tasks.begin(),
                       " and ", tasks.size(), " are both task ", task,
                       " of MPI, expected a task for each rank");
    tasks.push_back(task);
  }
  return tasks;
}

MPI_Datatype type_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return MPI_FLOAT;
    case ElementType::f64:
      return MPI_DOUBLE;
    case ElementType::i32:
      return MPI_INT32_T;
    case ElementType::i64:
      return MPI_INT64_T;
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op op_of(Reduce reduce) {
  switch (reduce) {
    case Reduce::sum:
    case Reduce::avg:
      return MPI_SUM;
    case Reduce::max:
      return MPI_MAX;
    case Reduce::min:
      return MPI_MIN;
    case Reduce::prod:
      return MPI_PROD;
  }
  return MPI_OP_NULL;
}

class Mpi final : public Engine {
 public:
  explicit Mpi(const EngineOptions& options) : rank_(options.rank) {
    check_tasks(options.ranks);
    {
      const std::lock_guard lock(turn());
      library_ = &Library::of_this_process();
    }
    const std::vector<int> tasks = tasks_of_ranks(options, library_->rank());
    // All are here now, or the exchange had not ended.
    const std::lock_guard lock(turn());
    MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
    require(MPI_Comm_group(MPI_COMM_WORLD, &world), "a group of ranks");
    require(MPI_Group_incl(world, options.ranks, tasks.data(), &group), "a group of ranks");
    require(MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &ranks_), "a group of ranks");
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    MPI_Comm_set_errhandler(ranks_, MPI_ERRORS_RETURN);
  }
  ~Mpi() override {
    const std::lock_guard lock(turn());
    if (request_ == MPI_REQUEST_NULL) MPI_Comm_free(&ranks_);
  }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  void start(const Collective& work) override {
    const std::lock_guard lock(turn());
    require(begin(work), "a call");
  }
  bool done() override {
    const std::lock_guard lock(turn());
    int over = 0;
    require(MPI_Test(&request_, &over, MPI_STATUS_IGNORE), "what was started");
    return over != 0;
  }
  void give_up() noexcept override { library_->give_up(); }

 private:
  int begin(const Collective& work) {
    const int count = static_cast<int>(work.call.count), root = work.call.step.root;
    MPI_Datatype type = type_of(work.call.type);
    MPI_Op op = op_of(work.call.step.reduce);
    const size_t bytes = work.call.count * (type == MPI_FLOAT || type == MPI_INT32_T ? 4 : 8);
    const void* const in = work.in == work.out ? MPI_IN_PLACE : work.in;
    switch (work.call.step.kind) {
      case CallKind::all_reduce:
        return MPI_Iallreduce(in, work.out, count, type, op, ranks_, &request_);
      case CallKind::reduce:
        return MPI_Ireduce(rank_ == root ? in : work.in, work.out, count, type, op, root, ranks_,
                           &request_);
      case CallKind::reduce_scatter:
        return MPI_Ireduce_scatter_block(work.in, work.out, count, type, op, ranks_, &request_);
      case CallKind::all_gather: {
        const bool in_place = work.in == work.out + static_cast<size_t>(rank_) * bytes;
        return MPI_Iallgather(in_place ? MPI_IN_PLACE : work.in, count, type, work.out, count, type,
                              ranks_, &request_);
      }
      case CallKind::broadcast:
        return MPI_Ibcast(work.out, count, type, root, ranks_, &request_);
      case CallKind::scatter:
        return MPI_Iscatter(work.in, count, type, work.out, count, type, root, ranks_, &request_);
      case CallKind::all_to_all:
        return MPI_Ialltoall(work.in, count, type, work.out, count, type, ranks_, &request_);
      case CallKind::send:
        return MPI_Isend(work.in, count, type, root, 0, ranks_, &request_);
      case CallKind::receive:
        return MPI_Irecv(work.out, count, type, root, 0, ranks_, &request_);
      default:
        return MPI_ERR_OTHER;
    }
  }

  const int rank_;
  Library* library_ = nullptr;
  MPI_Comm ranks_ = MPI_COMM_NULL;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

std::unique_ptr<Engine> open_mpi(const EngineOptions& options) {
  return std::make_unique<Mpi>(options);
}

}  // namespace
}  // namespace argosy::comm

const argosy::comm::EngineModule argosy_engine_module = {.most_elements = INT_MAX,
                                                         .open = &argosy::comm::open_mpi};
