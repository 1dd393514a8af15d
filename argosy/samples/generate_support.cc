#include "argosy/samples/generate_support.h"

#include <algorithm>
#include <span>

namespace argosy {

AtomicTextFile::AtomicTextFile(Env& env, std::string path)
    : env_(env), path_(std::move(path)), beside_(path_ + ".new"), file_(env.create_file(beside_)) {
  constexpr size_t kBuffer = 1 << 20;
  buffer_.resize(kBuffer);
}

void AtomicTextFile::append(std::string_view text) {
  append(text.size(), [text](char* at) { return std::ranges::copy(text, at).out; });
}

void AtomicTextFile::finish() {
  flush();
  file_->sync();
  file_.reset();
  env_.rename_file(beside_, path_);
}

void AtomicTextFile::make_room(size_t most) {
  flush();
  if (buffer_.size() < most) buffer_.resize(most);
}

void AtomicTextFile::flush() {
  file_->append(std::as_bytes(std::span(buffer_).first(used_)));
  used_ = 0;
}

}  // namespace argosy
