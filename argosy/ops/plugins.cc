// Collects the ops of this folder: every other .cc file here defines std::vector<OpDef> <file>().
// A new op is a new file and nothing else. Device kernels are collected from on_device/ likewise.
#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/base/plugins.h"
#include "argosy/graph/op.h"
#include "argosy/ops/on_device/kernel.h"

namespace argosy {

using OpsPlugin = Plugin<std::vector<OpDef>()>;
using KernelsPlugin = Plugin<std::vector<ops::on_device::DeviceKernel>()>;

#include "argosy/ops.def"
ARGOSY_COLLECT(ops, OpsPlugin, files_of_ops)

namespace ops {

#include "argosy/ops/on_device.def"
ARGOSY_COLLECT(on_device, KernelsPlugin, files_of_kernels)

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
  for (const OpsPlugin& plugin : files_of_ops())
    for (OpDef& op : plugin.make()) all.push_back(std::move(op));
  for (const KernelsPlugin& plugin : ops::files_of_kernels()) ops::attach(all, plugin.make());
  return all;
}

}  // namespace argosy
