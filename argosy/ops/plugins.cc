// Collects the ops of this folder: every other .cc file here defines std::vector<OpDef> <file>().
// CMake writes argosy/ops.def from the folder, so a new op is a new file and nothing else. Device
// kernels are collected from on_device/ in the same way.
#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/graph/op.h"
#include "argosy/ops/on_device/kernel.h"

namespace argosy {
namespace ops {

#define PLUGIN(file) std::vector<OpDef> file();
#include "argosy/ops.def"
#undef PLUGIN

namespace on_device {

#define PLUGIN(file) std::vector<DeviceKernel> file();
#include "argosy/ops/on_device.def"
#undef PLUGIN

}  // namespace on_device

namespace {

void attach(std::vector<OpDef>& ops, const std::vector<on_device::DeviceKernel>& kernels) {
  for (const on_device::DeviceKernel& kernel : kernels) {
    const auto op = std::ranges::find(ops, kernel.op, &OpDef::name);
    check<Error>(op != ops.end(), "ops/on_device: there is no op '", kernel.op, "'");
    op->on_device = kernel.run;
  }
}

}  // namespace
}  // namespace ops

std::vector<OpDef> builtin_ops() {
  std::vector<OpDef> all;
  const auto add = [&](std::vector<OpDef> some) {
    for (OpDef& op : some) all.push_back(std::move(op));
  };
#define PLUGIN(file) add(ops::file());
#include "argosy/ops.def"
#undef PLUGIN
#define PLUGIN(file) ops::attach(all, ops::on_device::file());
#include "argosy/ops/on_device.def"
#undef PLUGIN
  return all;
}

}  // namespace argosy
