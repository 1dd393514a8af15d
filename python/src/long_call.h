#pragma once

#include <atomic>
#include <functional>

#include "bindings.h"

namespace argosy::python {

/// Thrown inside a long call that has been told to stop.
struct Interrupted {};

/// Polled by a long call; true once the user has pressed Ctrl-C.
using StopAsked = std::atomic<bool>;

/// Runs `work` on the engine's thread without the interpreter's lock, while this thread waits for
/// signals. When a signal's handler raises, `work` is asked to stop; if it does not within two
/// seconds it is abandoned, and the process will exit without waiting for it. Calls of one process
/// run one after the other; on another thread than the main one, which sees no signals, it just
/// runs. `work` must own what it uses, as it may outlive its caller.
void long_call(const std::function<void(const StopAsked&)>& work);

}  // namespace argosy::python
