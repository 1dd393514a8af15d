#pragma once

#include <memory>

#include "argosy/launch/launcher.h"
#include "argosy/world/child.h"

namespace argosy::launch {

/// Descriptors handed to a process, and how to open its log.
struct Inheritance {
  int listening, progress;  // become its kListenFd (-1: it has none) and kProgressFd
  bool goes_on = false;     // keep the log instead of truncating it
};

/// Throws IoError; a command that cannot be run is an ending with status 126 or 127 and a line in
/// the log.
std::unique_ptr<Child> spawn(const Process& process, const Inheritance& inheritance, Guard& guard);

}  // namespace argosy::launch
