#include "long_call.h"

#include <chrono>
#include <memory>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/base/mutex.h"

namespace argosy::python {
namespace {

using namespace std::chrono_literals;

struct Call {
  std::function<void(const StopAsked&)> work;
  StopAsked stop = false;
  bool done = false;
  std::exception_ptr failure;
};

/// One thread for the life of the process, so that what threads own (OpenMP teams, caches) stays.
class EngineThread {
 public:
  bool busy() {
    const Lock lock(mutex_);
    return call_ != nullptr;
  }

  void begin(std::shared_ptr<Call> call) {
    const Lock lock(mutex_);
    call_ = std::move(call);
    if (!started_) {
      started_ = true;
      std::thread([this] { serve(); }).detach();
    }
    changed_.notify_all();
  }

  /// True if it ended in time.
  bool wait(Call& call, std::chrono::milliseconds time) {
    const Lock lock(mutex_);
    return changed_.wait_for(mutex_, time, [&] { return call.done; });
  }

 private:
  void serve() {
    const Lock lock(mutex_);
    while (true) {
      changed_.wait(mutex_, [&]() REQUIRES(mutex_) { return call_ != nullptr && !call_->done; });
      const std::shared_ptr<Call> call = call_;
      {
        const Unlocked unlocked(mutex_);
        work_on(*call);
      }
      call->done = true;
      call_ = nullptr;
      changed_.notify_all();
    }
  }

  static void work_on(Call& call) {
    try {
      call.work(call.stop);
    } catch (...) {
      call.failure = std::current_exception();
    }
  }

  Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<Call> call_ GUARDED_BY(mutex_);
  bool started_ GUARDED_BY(mutex_) = false;
};

EngineThread& engine() {
  static auto* thread = new EngineThread;  // never destroyed: it may still be in a call at exit
  return *thread;
}

/// Python's own exit would run destructors under the feet of a call that still runs.
void exit_without_waiting() {
  nb::module_::import_("atexit").attr("register")(nb::module_::import_("argosy._exit").attr("now"));
}

bool main_thread() {
  const nb::module_ threading = nb::module_::import_("threading");
  return threading.attr("current_thread")().is(threading.attr("main_thread")());
}

}  // namespace

void long_call(const std::function<void(const StopAsked&)>& work) {
  if (!main_thread()) {
    const StopAsked never = false;
    const nb::gil_scoped_release release;
    work(never);
    return;
  }
  check<Error>(!engine().busy(), "an interrupted call is still running");
  const auto call = std::make_shared<Call>();
  call->work = work;
  {
    const nb::gil_scoped_release release;
    engine().begin(call);
  }
  while (true) {
    bool done = false;
    {
      const nb::gil_scoped_release release;
      done = engine().wait(*call, 50ms);
    }
    if (done) break;
    if (PyErr_CheckSignals() == 0) continue;
    nb::python_error raised;
    call->stop = true;
    {
      const nb::gil_scoped_release release;
      done = engine().wait(*call, 2s);
    }
    if (!done) exit_without_waiting();
    throw raised;
  }
  if (call->failure) std::rethrow_exception(call->failure);
}

}  // namespace argosy::python
