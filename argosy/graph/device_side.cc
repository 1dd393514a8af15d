#include "argosy/graph/device_side.h"

namespace argosy {
namespace {

void check_runs(const Program& program, const Node& node) {
  const bool is_view = node.op->trait == OpTrait::view;
  check<ConfigError>(is_view || node.op->on_device != nullptr, node.at, ": ",
                     signature(program, node),
                     " has no device kernel, expected an op of ops/on_device; run it on the CPU");
  for (const VarId id : node.out)
    check<ConfigError>(program.var(id).type.dtype != DType::f64, node.at, ": ",
                       signature(program, node), " gives f64, device kernels compute in f32");
}

}  // namespace

DeviceSide::DeviceSide(const Program& program, std::span<const size_t> live, int device)
    : program_(program),
      stream_(device),
      buffers_(program.vars.size()),
      host_(program.vars.size()) {
  for (const size_t n : live) check_runs(program, program.nodes[n]);
}

std::shared_ptr<void> DeviceSide::allocate(size_t bytes) {
  auto buffer = std::make_shared<device::Buffer>();
  void* memory = buffer->room(bytes);
  return {std::move(buffer), memory};
}

Tensor DeviceSide::upload(VarId id, const Tensor& value) {
  host_[id.index()] = value;
  const Tensor there = room(id, {value.shape(), value.dtype()});
  stream_.upload(const_cast<std::byte*>(there.data()), value.data(), value.bytes());
  return there;
}

Tensor DeviceSide::room(VarId id, const VarType& type) {
  const size_t bytes = static_cast<size_t>(type.shape.numel()) * size_of(type.dtype);
  return Tensor::wrap(buffers_[id.index()].room(bytes), type.shape, type.dtype);
}

void DeviceSide::run(const Node& node, const RunCtx& ctx) {
  if (node.op->on_device != nullptr) return node.op->on_device(ctx, stream_);
  stream_.copy(ctx.out(0).data(), ctx.in(0).data(), ctx.out(0).bytes());  // a view
}

void DeviceSide::download(VarId id, const Tensor& value, const Tensor& to) {
  Tensor& here = host_[id.index()];
  if (program_.var(id).kind != VarKind::temp) return;  // it is what was fed
  if (to.numel() > 0) {
    here = Tensor::wrap(const_cast<std::byte*>(to.data()), value.shape(), value.dtype());
  } else {
    here.renew(value.shape(), value.dtype());
  }
  stream_.download(here.data(), value.data(), value.bytes());
}

std::vector<Tensor> DeviceSide::look(std::span<Tensor* const> values) {
  std::vector<Tensor> copies;
  for (const Tensor* value : values) {
    copies.push_back(Tensor::uninitialized(value->shape(), value->dtype()));
    stream_.download(copies.back().data(), value->data(), value->bytes());
  }
  stream_.wait();
  return copies;
}

}  // namespace argosy
