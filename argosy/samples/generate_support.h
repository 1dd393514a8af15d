#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "argosy/base/env.h"

namespace argosy {

/// A text file written from front to back, in its place only once it is complete and safe.
class AtomicTextFile {
 public:
  AtomicTextFile(Env& env, std::string path);

  /// Room for `most` characters; gives them to `write`, which returns the end of what it wrote.
  template <class Write>
  void append(size_t most, const Write& write) {
    if (buffer_.size() - used_ < most) make_room(most);
    used_ = static_cast<size_t>(write(buffer_.data() + used_) - buffer_.data());
  }
  void append(std::string_view text);
  /// Without it there is no file, or the old one.
  void finish();

 private:
  void make_room(size_t most);
  void flush();

  Env& env_;
  std::string path_, beside_;
  std::unique_ptr<WritableFile> file_;
  std::string buffer_;
  size_t used_ = 0;
};

}  // namespace argosy
