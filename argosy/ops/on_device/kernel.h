#pragma once

#include <string>
#include <vector>

#include "argosy/device/stream.h"
#include "argosy/graph/op.h"

namespace argosy::ops::on_device {

/// The device kernel of an op: it puts its work on the stream and returns.
struct DeviceKernel {
  std::string op;
  void (*run)(const RunCtx& c, device::Stream& stream);
};

}  // namespace argosy::ops::on_device
