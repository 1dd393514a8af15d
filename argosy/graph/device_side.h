#pragma once

#include <memory>
#include <span>
#include <vector>

#include "argosy/device/stream.h"
#include "argosy/graph/program.h"

namespace argosy {

/// An executor's device memory: copies of fed values, temporaries, and host copies of outputs.
/// Memory only grows. The program outlives it.
class DeviceSide {
 public:
  DeviceSide(const Program& program, int device);

  /// The calling thread works for it from now on.
  void enter() { stream_.enter(); }
  std::shared_ptr<void> allocate(size_t bytes);
  /// A fed value on the device.
  Tensor upload(VarId id, const Tensor& value);
  /// Memory on the device for an output that is no part of the arena.
  Tensor room(VarId id, const VarType& type);
  /// By the op's device kernel; one that has none, or computes in f64, runs on the processor
  /// between copies of its inputs and outputs.
  void run(const Node& node, const RunCtx& ctx);

  /// Copies an output back, into `to` if that is defined; valid after wait().
  void download(VarId id, const Tensor& value, const Tensor& to);
  void wait() { stream_.wait(); }
  const Tensor& output(VarId id) const { return host_[id.index()]; }
  /// Copies of values on the device, for a look at them.
  std::vector<Tensor> look(std::span<Tensor* const> values);

 private:
  void run_on_processor(const Node& node, const RunCtx& ctx);

  const Program& program_;
  device::Stream stream_;
  std::vector<device::Buffer> buffers_;  // by variable
  std::vector<Tensor> host_;             // by variable: outputs
  std::vector<Tensor> copies_;           // by variable: for ops that run on the processor
  std::vector<Tensor*> inputs_, outputs_;
};

}  // namespace argosy
