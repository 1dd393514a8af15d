#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/mutex.h"
#include "argosy/base/thread.h"
#include "argosy/base/trained.h"
#include "argosy/modes/table_store.h"

namespace argosy {

/// How often cuts are taken: by time or by steps. Both 0: never.
struct CutInterval {
  Env::Duration time = {};
  uint64_t steps = 0;
  bool never() const { return time == Env::Duration() && steps == 0; }
};
/// "60s", "10m", "2h", or a number of steps; "" and "0": never. Throws ConfigError.
CutInterval parse_cut_interval(const std::string& text);

struct CutOptions {
  std::string folder;  // that of the saves: cuts are its cut-1, cut-2, ...
  CutInterval interval = {};
  size_t keep = 2;  // the newest ones
  std::function<void(const std::string&)> log = {};
};

/// The cuts of a training, taken while it goes on: the training thread only asks for one, first to
/// be prepared and then to be taken; a thread of its own waits for the servers, writes the manifest
/// and removes what is older. One that fails is told, and the next one tried when it is due. Thread
/// safety: full.
class Cuts {
 public:
  /// Trainer::prepare_cut and begin_cut: they ask, and return what waits for the answer.
  struct Asking {
    std::function<std::function<void()>()> prepare;
    std::function<std::function<SavedCut()>(const std::string& folder)> begin;
  };

  Cuts(Env& env, Asking asking, CutOptions options);
  /// Waits for the one under way.
  ~Cuts() = default;

  /// After each step of the first worker, between it and the next; does not wait.
  void after_step(int epoch);

 private:
  enum class Stage : uint8_t { idle, preparing, prepared, cutting };
  struct Cut {
    uint64_t number = 0;
    int epoch = 1;
    std::function<SavedCut()> wait;
  };
  bool is_due() REQUIRES(mutex_);
  Stage prepare(const std::function<void()>& wait);
  void run(const std::stop_token& stop);
  Stage finish(const Cut& cut);
  void remove_older(uint64_t number);

  Env& env_;
  const Asking asking_;
  const CutOptions options_;
  Mutex mutex_;
  CondVar changed_;
  Stage stage_ GUARDED_BY(mutex_) = Stage::idle;
  std::function<Stage()> task_ GUARDED_BY(mutex_);  // of the thread, which gives the next stage
  uint64_t next_ GUARDED_BY(mutex_) = 1;            // number
  uint64_t steps_ GUARDED_BY(mutex_) = 0;           // since the last one
  Env::Time last_ GUARDED_BY(mutex_);
  Thread thread_;  // last, so that it ends first
};

std::string cut_folder(const std::string& folder, uint64_t number);
/// The numbers of the cuts in a folder, finished or not, in order.
std::vector<uint64_t> cut_numbers(const std::string& folder);

/// How far each worker was, by what any server has of it; nothing: the folder is no cut.
std::vector<Trained> cursors_of_cut(Env& env, const std::string& dir);

}  // namespace argosy
