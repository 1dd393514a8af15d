#pragma once

#include <memory>

#include "argosy/comm/group.h"
#include "argosy/watch/activity.h"
#include "bindings.h"

namespace argosy::python {

/// A group of ranks as Python's Group. `activity` is told of its steps, and may be null.
nb::object group_object(std::shared_ptr<comm::Group> group, std::shared_ptr<Activity> activity);

}  // namespace argosy::python
