#pragma once

#include <chrono>
#include <functional>
#include <initializer_list>
#include <optional>
#include <stop_token>
#include <string>

#include "argosy/base/descriptor.h"
#include "argosy/base/function_ref.h"
#include "argosy/base/reminder.h"

namespace argosy {

/// About a source that gives nothing.
struct SourceNews {
  std::string source;  // "train/part-0 through 'sort -u'"
  std::string line;    // for people; "": there is none
  std::string note;    // what is wrong with it; "": it gives something again, or is done with
};

/// How a source that gives nothing is waited for.
struct SourceOptions {
  std::chrono::milliseconds patience{5000};  // a longer silence is spoken of, again and again
  /// A pipe command has ended and something else holds its output open: after so long without
  /// data that is the end of the file.
  std::chrono::milliseconds held{10000};
  /// A pipe command that neither writes nor ends for so long is killed and reported.
  std::chrono::milliseconds give_up = std::chrono::minutes(10);
  /// From any thread; none: lines go to stderr.
  std::function<void(const SourceNews&)> log = {};
};

/// Waits for one source, and speaks of it while it gives nothing. For one thread.
class SourceWatch {
 public:
  SourceWatch(std::string source, SourceOptions options, const std::stop_token& stop);
  ~SourceWatch();
  SourceWatch(const SourceWatch&) = delete;
  SourceWatch& operator=(const SourceWatch&) = delete;

  const std::string& source() const { return source_; }
  const SourceOptions& options() const { return options_; }

  static constexpr std::chrono::milliseconds kMoment{1000};
  /// Waits until one of the descriptors can be read, for a moment at most; whether one can. Speaks
  /// of the source where it is time to, and adds what `more` says. Throws IoError once the token is
  /// stopped.
  bool wait(
      std::initializer_list<int> descriptors, std::chrono::milliseconds most = kMoment,
      FunctionRef<std::string()> more = [] { return std::string(); });
  /// It has given something.
  void gave();
  /// Time without data, counted while somebody waits.
  Reminder::Duration silence() const;
  /// Throws IoError if the token is stopped.
  void check_stop() const;
  /// Says something else about it.
  void warn(const std::string& line) const;

 private:
  struct Ring {
    int event;
    void operator()() const;
  };
  void tell(const std::string& line) const;

  std::string source_;
  SourceOptions options_;
  Descriptor stopped_;  // readable when the token is stopped
  std::stop_token stop_;
  std::stop_callback<Ring> callback_;
  std::optional<Reminder> reminder_;  // of the silence there is
  std::string note_;                  // what has been told of this silence
};

}  // namespace argosy
