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

/// News of a silent source.
struct SourceNews {
  std::string source;  // "train/part-0 through 'sort -u'"
  std::string line;    // for people; "": there is none
  std::string note;    // the trouble; "": it gives data again, or is finished
};

/// How to wait for a silent source.
struct SourceOptions {
  std::chrono::milliseconds patience{5000};  // longer silences are reported, repeatedly
  /// A pipe command has ended and something else holds its output open: after so long without
  /// data that is the end of the file.
  std::chrono::milliseconds held{10000};
  /// A pipe command that neither writes nor ends for so long is killed and reported.
  std::chrono::milliseconds give_up = std::chrono::minutes(10);
  /// From any thread; none: lines go to stderr.
  std::function<void(const SourceNews&)> log = {};
};

/// Waits for one source, and reports it while it is silent. For one thread.
class SourceWatch {
 public:
  SourceWatch(std::string source, SourceOptions options, const std::stop_token& stop);
  ~SourceWatch();
  SourceWatch(const SourceWatch&) = delete;
  SourceWatch& operator=(const SourceWatch&) = delete;

  const std::string& source() const { return source_; }
  const SourceOptions& options() const { return options_; }

  static constexpr std::chrono::milliseconds kMoment{1000};
  /// Waits until one of the descriptors can be read, at most `most`; true if one can. Reports a
  /// silence when it is due, with the text of `more`. Throws IoError once the token is stopped.
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
  std::string note_;                  // the note of this silence, as reported
};

}  // namespace argosy
