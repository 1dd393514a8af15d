#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argosy/launch/launcher.h"

namespace argosy::launch {

/// The launchers of one job on their machines, in touch from before its start to its end. Without a
/// meeting this one is alone and every call is done at once. Not thread-safe.
class Launchers {
 public:
  using Clock = std::chrono::steady_clock;
  struct Failure {
    std::string text;  // from the launcher where it happened
    int code;
  };

  /// Returns when all have come, with the job complete: members, their nodes, and which are here.
  /// Throws IoError naming launchers that are missing, or how command lines differ. `say` gets a
  /// line about the waiting now and then.
  Launchers(Reservation& reserved, const std::function<void(const std::string&)>& say);
  ~Launchers();
  Launchers(const Launchers&) = delete;
  Launchers& operator=(const Launchers&) = delete;

  /// Descriptors to poll for reading; may be empty.
  std::vector<int> descriptors() const;
  /// Reads the others' messages and sends a heartbeat: call it at least once a second.
  void tend(Clock::time_point now);

  /// The first failure elsewhere, also that a launcher is dead or gone.
  const std::optional<Failure>& failure() const;
  /// Lines about silent launchers since the last call.
  std::vector<std::string> take_notes();
  void fail(const std::string& text, int code);
  /// The workers of this machine have ended well.
  void done();
  /// The workers of all other machines have ended well too.
  bool all_done() const;
  /// Machines whose workers have not, as far as known here: "10.0.0.2:41734".
  std::string not_done() const;

 private:
  class Links;
  std::unique_ptr<Links> links_;  // null: alone
  bool done_ = false;
};

}  // namespace argosy::launch
