#pragma once

#include <memory>

#include "argosy/comm/group.h"
#include "bindings.h"

namespace argosy::python {

/// A group of ranks as Python's Group.
nb::object group_object(std::shared_ptr<Group> group);

}  // namespace argosy::python
