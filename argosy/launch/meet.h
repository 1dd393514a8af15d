#pragma once

#include <functional>
#include <string>
#include <vector>

#include "argosy/launch/launcher.h"
#include "argosy/launch/launcher_link.h"

namespace argosy::launch {

/// Returns when all launchers of the job's meeting have come, as Launchers says: the head has a
/// link to each of the others, which have one to the head. A meeting of one has none.
std::vector<LauncherLink> meet(Reservation& reserved,
                               const std::function<void(const std::string&)>& say);

}  // namespace argosy::launch
