#pragma once

#include <memory>
#include <string>
#include <vector>

#include "argosy/base/bytes.h"
#include "argosy/base/env.h"

namespace argosy {

/// Collects small writes, so that a table of many rows makes few system calls.
class FileSink final : public ByteSink {
 public:
  FileSink(Env& env, const std::string& path) : file_(env.create_file(path)) {
    buffer_.reserve(kBuffer);
  }
  void write(std::span<const std::byte> bytes) override {
    if (buffer_.size() + bytes.size() > kBuffer) flush();
    if (bytes.size() > kBuffer)
      file_->append(bytes);
    else
      buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  void finish() {
    flush();
    file_->sync();
  }

 private:
  static constexpr size_t kBuffer = 1 << 20;
  void flush() {
    file_->append(buffer_);
    buffer_.clear();
  }

  std::unique_ptr<WritableFile> file_;
  std::vector<std::byte> buffer_;
};

}  // namespace argosy
