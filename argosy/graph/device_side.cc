#include "argosy/graph/device_side.h"

#include <algorithm>

namespace argosy {
namespace {

bool has_kernel(const Node& node, const RunCtx& ctx) {
  const auto is_double = [](const Tensor* value) { return value->dtype() == DType::f64; };
  return node.op->on_device != nullptr && std::ranges::none_of(ctx.inputs, is_double) &&
         std::ranges::none_of(ctx.outputs, is_double);
}

}  // namespace

DeviceSide::DeviceSide(const Program& program, int device)
    : program_(program),
      stream_(device),
      buffers_(program.vars.size()),
      host_(program.vars.size()),
      copies_(program.vars.size()) {}

std::shared_ptr<void> DeviceSide::allocate(size_t bytes) {
  auto buffer = std::make_shared<device::Buffer>();
  void* memory = buffer->room(bytes);
  return {std::move(buffer), memory};
}

Tensor DeviceSide::upload(VarId id, const Tensor& value) {
  host_[id.index()] = value;
  Tensor there = room(id, {value.shape(), value.dtype()});
  stream_.upload(there.data(), value.data(), value.bytes());
  return there;
}

Tensor DeviceSide::room(VarId id, const VarType& type) {
  const size_t bytes = static_cast<size_t>(type.shape.numel()) * size_of(type.dtype);
  return Tensor::wrap(buffers_[id.index()].room(bytes), type.shape, type.dtype);
}

void DeviceSide::run(const Node& node, const RunCtx& ctx) {
  if (has_kernel(node, ctx)) return node.op->on_device(ctx, stream_);
  if (node.op->trait != OpTrait::view) return run_on_processor(node, ctx);
  stream_.copy(ctx.out(0).data(), ctx.in(0).data(), ctx.out(0).bytes());
}

void DeviceSide::run_on_processor(const Node& node, const RunCtx& ctx) {
  const auto copy_of = [this](VarId id, const Tensor& value) {
    Tensor& copy = copies_[id.index()];
    copy.renew(value.shape(), value.dtype());
    return &copy;
  };
  inputs_.clear();
  outputs_.clear();
  for (size_t i = 0; i < node.in.size(); ++i) {
    inputs_.push_back(copy_of(node.in[i], ctx.in(i)));
    stream_.download(inputs_.back()->data(), ctx.in(i).data(), ctx.in(i).bytes());
  }
  for (size_t i = 0; i < node.out.size(); ++i) outputs_.push_back(copy_of(node.out[i], ctx.out(i)));
  stream_.wait();
  node.op->run({inputs_, outputs_, ctx.attrs, ctx.random_seed, ctx.ranks});
  for (size_t i = 0; i < node.out.size(); ++i)
    stream_.upload(ctx.out(i).data(), outputs_[i]->data(), outputs_[i]->bytes());
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
