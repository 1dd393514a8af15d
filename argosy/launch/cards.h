#pragma once

#include "argosy/launch/launcher.h"

namespace argosy::launch {

/// Devices of NVIDIA's driver that this process sees; 0 without the driver.
int cuda_device_count();

/// Whether the cards of --gpus are emulated: ARGOSY_EMULATED_DEVICES=N makes N of them. Throws
/// ConfigError for a card that there is neither so nor on the machine.
bool cards_are_emulated(const Flags& flags, const Machine& machine);

}  // namespace argosy::launch
