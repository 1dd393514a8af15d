#include "argosy/device/devices.h"

#include <charconv>
#include <cstdlib>

#include "argosy/base/error.h"
#include "argosy/device/runtime.h"

namespace argosy::device {
namespace {

constexpr int kMost = 1024;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return {};
  return value;
}

}  // namespace

std::string Devices::label(int number) const {
  const std::string name = "gpu:" + std::to_string(number);
  return emulated ? name + " (emulated: the device kernels run on the CPU)" : name;
}

void Devices::expect(int number) const {
  if (number >= 0 && number < count) return;
  if (count > 0)
    fail<ConfigError>("there is no device gpu:", number, ", expected gpu:0 to gpu:", count - 1,
                      emulated ? std::string(", as ") + kEmulated + " says" : "");
  fail<ConfigError>("there is no device gpu:", number, ": ", runtime::why_none(), "; ", kEmulated,
                    "=N makes N devices that run the device kernels on the CPU");
}

Devices devices(const std::string& emulated) {
  if (emulated.empty()) return {.count = runtime::device_count(), .emulated = false};
  const std::optional<int> count = whole_number(emulated);
  check<ConfigError>(count && *count <= kMost, kEmulated, " is '", emulated,
                     "', expected a number of devices from 0 to ", kMost);
  check<ConfigError>(*count == 0 || runtime::can_emulate(), kEmulated, " is ", *count,
                     " but this build has its device kernels for CUDA only, expected 0");
  return {.count = *count, .emulated = true};
}

Devices devices() { return devices(variable(kEmulated)); }

std::optional<int> selected_device() {
  const std::string all = variable("FLAGS_selected_gpus");
  const std::string first = all.substr(0, all.find(','));
  if (first.empty()) return {};
  const std::optional<int> number = whole_number(first);
  check<ConfigError>(number.has_value(), "FLAGS_selected_gpus is '", all,
                     "', expected numbers of devices");
  return number;
}

std::string why_none() { return runtime::why_none(); }
const char* backend() { return runtime::can_emulate() ? "cpu" : "cuda"; }

}  // namespace argosy::device
