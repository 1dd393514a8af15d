#pragma once

#include <optional>
#include <string>

namespace argosy::device {

/// Number of emulated devices, which run the device kernels on the processor.
inline constexpr const char* kEmulated = "ARGOSY_EMULATED_DEVICES";

/// The devices that a Stream can use.
struct Devices {
  int count = 0;
  bool emulated = false;

  /// "gpu:0" or "gpu:0 (emulated: the device kernels run on the CPU)".
  std::string label(int number) const;
  /// Throws ConfigError that lists the devices unless `number` is one.
  void expect(int number) const;
};

/// In a CUDA build the machine's devices, else those that ARGOSY_EMULATED_DEVICES makes (the
/// argument: its text, "" if unset). Throws ConfigError if it is no number.
Devices devices(const std::string& emulated);
Devices devices();  // as the environment says

/// "this build has no CUDA kernels (make cuda)"
std::string why_none();

/// The first of FLAGS_selected_gpus, by which the launcher assigns devices; none if it is empty or
/// not set.
std::optional<int> selected_device();

/// The target of this build's kernels: "cuda" or "cpu".
const char* backend();

}  // namespace argosy::device
