#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "argosy/base/bytes.h"
#include "argosy/base/env.h"

namespace argosy {

/// A ByteReader over a file of any size, of which it holds a buffer.
class FileSource final : public ByteReader {
 public:
  FileSource(Env& env, const std::string& path) : ByteReader(path), file_(env.open_file(path)) {}

  std::span<const std::byte> take(size_t n) override {
    check_left(n);
    if (n > end_ - begin_) refill(n);
    const auto part = std::span(buffer_).subspan(begin_, n);
    begin_ += n;
    return part;
  }
  size_t left() const override { return file_->size() - read_ + (end_ - begin_); }

 private:
  static constexpr size_t kBuffer = 1 << 20;

  void refill(size_t n) {
    const size_t kept = end_ - begin_;
    std::copy_n(buffer_.begin() + static_cast<ptrdiff_t>(begin_), kept, buffer_.begin());
    const auto more =
        static_cast<size_t>(std::min<uint64_t>(std::max(n - kept, kBuffer), file_->size() - read_));
    buffer_.resize(std::max(buffer_.size(), kept + more));
    file_->read_at(read_, std::span(buffer_).subspan(kept, more));
    read_ += more;
    begin_ = 0;
    end_ = kept + more;
  }

  std::unique_ptr<ReadableFile> file_;
  std::vector<std::byte> buffer_;
  size_t begin_ = 0, end_ = 0;  // what of the buffer is not taken yet
  uint64_t read_ = 0;           // bytes of the file
};

}  // namespace argosy
