#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "argosy/base/descriptor.h"

namespace argosy::launch {

/// A job's output: scrolling text and, on a terminal, one progress line below it, updated in place.
class Screen {
 public:
  Screen(std::FILE* out, std::FILE* errors);
  bool is_terminal() const { return terminal_; }
  /// Whole lines of a process.
  void text(std::string_view lines);
  /// One of our own, to `errors`.
  void message(const std::string& line);
  void progress(const std::string& line);
  /// Keeps the last progress line; later output goes below it.
  void settle();

 private:
  void clear();
  void draw();
  void flush();

  std::FILE *out_, *errors_;
  bool terminal_;
  std::string line_;     // that is on the terminal now
  bool failed_ = false;  // something could not be shown, and that was said
};

/// Reads what was appended to a file since the last look.
class LogTail {
 public:
  explicit LogTail(const std::string& path);  // throws IoError
  /// Whole lines; an unfinished one is kept for later unless it has become long.
  std::string read();
  /// All of it, ended by a newline.
  std::string read_rest();

 private:
  Descriptor file_;
  std::string waiting_;
};

/// The last lines of a file, each prefixed with `indent`; "" if it is empty or missing.
std::string last_lines(const std::string& path, size_t count, std::string_view indent);

}  // namespace argosy::launch
