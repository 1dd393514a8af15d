// NCCL between devices of CUDA. Memory of the host goes through buffers of the device, in the order
// of one stream.
#include <cuda_runtime.h>
#include <nccl.h>

#include <charconv>
#include <chrono>
#include <climits>
#include <cstring>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/comm/engine.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 1ms;

void require(cudaError_t code, const char* what) {
  if (code == cudaSuccess) [[likely]]
    return;
  fail<IoError>("CUDA cannot do ", what, ": ", cudaGetErrorString(code));
}

/// Calls that go on in the background are asked for later.
void require(ncclResult_t code, const char* what) {
  if (code == ncclSuccess || code == ncclInProgress) [[likely]]
    return;
  fail<IoError>("NCCL cannot do ", what, ": ", ncclGetErrorString(code));
}

int device_number(const std::string& text) {
  int devices = 0;
  const cudaError_t code = cudaGetDeviceCount(&devices);
  check<ConfigError>(code == cudaSuccess && devices > 0,
                     "backend nccl: there is no device of CUDA here: ", cudaGetErrorString(code));
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = text.empty() || (error == std::errc() && end == text.data() + text.size());
  check<ConfigError>(whole && number >= 0 && number < devices, "backend nccl: device '", text,
                     "', expected 0 to ", devices - 1);
  return number;
}

/// Device memory, or host memory that the device can access; grows as needed.
class Buffer {
 public:
  enum class Place : uint8_t { device, host };
  explicit Buffer(Place place) : place_(place) {}
  ~Buffer() { release(); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* of(size_t bytes) {
    if (bytes > size_) {
      release();
      void* memory = nullptr;
      require(place_ == Place::device ? cudaMalloc(&memory, bytes) : cudaMallocHost(&memory, bytes),
              "memory for a call");
      memory_ = static_cast<std::byte*>(memory);
      size_ = bytes;
    }
    return memory_;
  }

 private:
  void release() {
    place_ == Place::device ? cudaFree(memory_) : cudaFreeHost(memory_);
    memory_ = nullptr;
    size_ = 0;
  }

  const Place place_;
  std::byte* memory_ = nullptr;
  size_t size_ = 0;
};

ncclDataType_t type_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return ncclFloat32;
    case ElementType::f64:
      return ncclFloat64;
    case ElementType::i32:
      return ncclInt32;
    case ElementType::i64:
      return ncclInt64;
  }
  return ncclInt8;
}

ncclRedOp_t op_of(Reduce reduce) {
  switch (reduce) {
    case Reduce::sum:
    case Reduce::avg:
      return ncclSum;
    case Reduce::max:
      return ncclMax;
    case Reduce::min:
      return ncclMin;
    case Reduce::prod:
      return ncclProd;
  }
  return ncclSum;
}

class Nccl final : public Engine {
 public:
  explicit Nccl(const EngineOptions& options)
      : rank_(options.rank), ranks_(options.ranks), device_(device_number(options.device)) {
    require(cudaSetDevice(device_), "the choice of a device");
    require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
    Token mine = {};
    static_assert(sizeof(ncclUniqueId) <= sizeof(Token));
    ncclUniqueId id = {};
    if (rank_ == 0) require(ncclGetUniqueId(&id), "a name for the ranks");
    std::memcpy(mine.data(), &id, sizeof(id));
    const Token first = options.exchange(mine).front();
    std::memcpy(&id, first.data(), sizeof(id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    require(ncclCommInitRankConfig(&comm_, ranks_, id, rank_, &config), "a group of ranks");
    while (!settled()) {
      options.look();
      std::this_thread::sleep_for(kLook);
    }
  }
  ~Nccl() override {
    cudaSetDevice(device_);
    if (given_up_ || !over_)
      ncclCommAbort(comm_);
    else
      ncclCommDestroy(comm_);
    cudaStreamDestroy(stream_);
  }
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  void start(const Collective& work) override {
    require(cudaSetDevice(device_), "the choice of a device");
    work_ = work;
    const size_t to = bytes_in(), from = bytes_out();
    std::byte* const in = device_in_.of(to);
    std::byte* const out = device_out_.of(from);
    if (to > 0) {
      std::memcpy(host_in_.of(to), work.in, to);
      require(cudaMemcpyAsync(in, host_in_.of(to), to, cudaMemcpyHostToDevice, stream_), "a copy");
    }
    require(begin(in, out), "a call");
    copied_ = over_ = false;
  }
  bool done() override {
    if (over_) return true;
    if (!settled()) return false;
    require(cudaSetDevice(device_), "the choice of a device");
    const size_t from = bytes_out();
    if (!copied_ && from > 0)
      require(cudaMemcpyAsync(host_out_.of(from), device_out_.of(from), from,
                              cudaMemcpyDeviceToHost, stream_),
              "a copy");
    copied_ = true;
    const cudaError_t state = cudaStreamQuery(stream_);
    if (state == cudaErrorNotReady) return false;
    require(state, "what was started");
    if (from > 0) std::memcpy(work_.out, host_out_.of(from), from);
    return over_ = true;
  }
  void give_up() noexcept override { given_up_ = true; }

 private:
  bool is_root() const { return rank_ == work_.call.step.root; }
  size_t part() const {
    const bool narrow = work_.call.type == ElementType::f32 || work_.call.type == ElementType::i32;
    return work_.call.count * (narrow ? 4 : 8);
  }
  size_t all() const { return part() * static_cast<size_t>(ranks_); }

  /// Bytes of this rank's input.
  size_t bytes_in() const {
    switch (work_.call.step.kind) {
      case CallKind::reduce_scatter:
      case CallKind::all_to_all:
        return all();
      case CallKind::scatter:
        return is_root() ? all() : 0;
      case CallKind::broadcast:
        return is_root() ? part() : 0;
      case CallKind::receive:
        return 0;
      default:
        return part();
    }
  }
  /// Bytes of its output.
  size_t bytes_out() const {
    switch (work_.call.step.kind) {
      case CallKind::all_gather:
      case CallKind::all_to_all:
        return all();
      case CallKind::reduce:
        return is_root() ? part() : 0;
      case CallKind::send:
        return 0;
      default:
        return part();
    }
  }

  /// Whether NCCL has accepted the call. Throws if it has failed.
  bool settled() const {
    ncclResult_t state = ncclSuccess;
    require(ncclCommGetAsyncError(comm_, &state), "its work");
    require(state, "its work");
    return state == ncclSuccess;
  }

  ncclResult_t begin(const std::byte* in, std::byte* out) {
    const size_t count = work_.call.count;
    const int root = work_.call.step.root;
    const ncclDataType_t type = type_of(work_.call.type);
    const ncclRedOp_t op = op_of(work_.call.step.reduce);
    switch (work_.call.step.kind) {
      case CallKind::all_reduce:
        return ncclAllReduce(in, out, count, type, op, comm_, stream_);
      case CallKind::reduce:
        return ncclReduce(in, out, count, type, op, root, comm_, stream_);
      case CallKind::reduce_scatter:
        return ncclReduceScatter(in, out, count, type, op, comm_, stream_);
      case CallKind::all_gather:
        return ncclAllGather(in, out, count, type, comm_, stream_);
      case CallKind::broadcast:
        return ncclBroadcast(in, out, count, type, root, comm_, stream_);
      case CallKind::scatter:
        return scatter(in, out);
      case CallKind::all_to_all:
        return all_to_all(in, out);
      case CallKind::send:
        return ncclSend(in, count, type, root, comm_, stream_);
      case CallKind::receive:
        return ncclRecv(out, count, type, root, comm_, stream_);
      default:
        return ncclInvalidArgument;
    }
  }
  ncclResult_t scatter(const std::byte* in, std::byte* out) {
    const ncclDataType_t type = type_of(work_.call.type);
    ncclGroupStart();
    for (int peer = 0; is_root() && peer < ranks_; ++peer)
      ncclSend(in + static_cast<size_t>(peer) * part(), work_.call.count, type, peer, comm_,
               stream_);
    ncclRecv(out, work_.call.count, type, work_.call.step.root, comm_, stream_);
    return ncclGroupEnd();
  }
  ncclResult_t all_to_all(const std::byte* in, std::byte* out) {
    const ncclDataType_t type = type_of(work_.call.type);
    ncclGroupStart();
    for (int peer = 0; peer < ranks_; ++peer) {
      const size_t at = static_cast<size_t>(peer) * part();
      ncclSend(in + at, work_.call.count, type, peer, comm_, stream_);
      ncclRecv(out + at, work_.call.count, type, peer, comm_, stream_);
    }
    return ncclGroupEnd();
  }

  const int rank_, ranks_, device_;
  cudaStream_t stream_ = nullptr;
  ncclComm_t comm_ = nullptr;
  Buffer device_in_{Buffer::Place::device}, device_out_{Buffer::Place::device};
  Buffer host_in_{Buffer::Place::host}, host_out_{Buffer::Place::host};
  Collective work_ = {};
  bool copied_ = false, over_ = true, given_up_ = false;
};

std::unique_ptr<Engine> open_nccl(const EngineOptions& options) {
  return std::make_unique<Nccl>(options);
}

}  // namespace
}  // namespace argosy::comm

const argosy::comm::EngineModule argosy_engine_module = {.most_elements = INT64_MAX / 8,
                                                         .open = &argosy::comm::open_nccl};
