#pragma once

#include <optional>
#include <string>

namespace argosy::device {

/// Makes so many devices that run the device kernels on the processor.
inline constexpr const char* kEmulated = "ARGOSY_EMULATED_DEVICES";

/// The devices that a Stream can use.
struct Devices {
  int count = 0;
  bool emulated = false;

  /// "gpu:0" or "gpu:0 (emulated: the device kernels run on the CPU)".
  std::string label(int number) const;
  /// Throws ConfigError that says what there is.
  void expect(int number) const;
};

/// Those of the machine where this is a CUDA build, else those that ARGOSY_EMULATED_DEVICES (the
/// argument: its text, "" where it is not set) makes. Throws ConfigError where it is no number.
Devices devices(const std::string& emulated);
Devices devices();  // as the environment says

/// "this build has no CUDA kernels (make cuda)"
std::string why_none();

/// The first of FLAGS_selected_gpus, by which the launcher deals devices out; none where it is
/// empty or not set.
std::optional<int> selected_device();

/// "cuda" or "cpu": what the kernels of this build are compiled for.
const char* backend();

}  // namespace argosy::device
