#include "argosy/data/byte_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/data/unpack.h"

namespace argosy {
namespace {

class FileStream final : public ByteStream {
 public:
  FileStream(const std::string& path, Descriptor file) : path_(path), file_(std::move(file)) {
    posix_fadvise(file_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  }

  size_t read(std::span<char> into) override {
    while (true) {
      const ssize_t n = ::read(file_.get(), into.data(), into.size());
      if (n >= 0) {
        offset_ += static_cast<size_t>(n);
        return static_cast<size_t>(n);
      }
      if (errno != EINTR) fail<IoError>(path_, " at byte ", offset_, ": ", std::strerror(errno));
    }
  }
  const std::string& name() const override { return path_; }

 private:
  std::string path_;
  Descriptor file_;
  size_t offset_ = 0;
};

/// A stream that may be silent for long: a FIFO, a device.
class SlowStream final : public ByteStream {
 public:
  SlowStream(const std::string& path, Descriptor file, const SourceOptions& options,
             const std::stop_token& stop)
      : file_(std::move(file)), watch_(path, options, stop) {}

  size_t read(std::span<char> into) override {
    // Before the first writer opens it, a read would report the end.
    if (!begun_) wait();
    begun_ = true;
    while (true) {
      const ssize_t n = ::read(file_.get(), into.data(), into.size());
      if (n >= 0) {
        watch_.gave();
        return static_cast<size_t>(n);
      }
      check<IoError>(errno == EAGAIN || errno == EINTR, name(), ": ", std::strerror(errno));
      wait();
    }
  }
  const std::string& name() const override { return watch_.source(); }

 private:
  void wait() {
    while (!watch_.wait({file_.get()})) continue;
  }

  Descriptor file_;
  SourceWatch watch_;
  bool begun_ = false;
};

class MemoryStream final : public ByteStream {
 public:
  MemoryStream(std::vector<std::byte> bytes, std::string name)
      : bytes_(std::move(bytes)), name_(std::move(name)) {}

  size_t read(std::span<char> into) override {
    const size_t n = std::min(into.size(), bytes_.size() - at_);
    if (n != 0) std::memcpy(into.data(), bytes_.data() + at_, n);
    at_ += n;
    return n;
  }
  const std::string& name() const override { return name_; }

 private:
  std::vector<std::byte> bytes_;
  std::string name_;
  size_t at_ = 0;
};

/// Gives back the bytes that were read to look at them, then the rest.
class PeekedStream final : public ByteStream {
 public:
  PeekedStream(std::string start, std::unique_ptr<ByteStream> rest)
      : start_(std::move(start)), rest_(std::move(rest)) {}

  size_t read(std::span<char> into) override {
    if (at_ == start_.size()) return rest_->read(into);
    const size_t n = start_.copy(into.data(), into.size(), at_);
    at_ += n;
    return n;
  }
  const std::string& name() const override { return rest_->name(); }

 private:
  std::string start_;
  std::unique_ptr<ByteStream> rest_;
  size_t at_ = 0;
};

}  // namespace

std::unique_ptr<ByteStream> open_file(const std::string& path, const SourceOptions& options,
                                      const std::stop_token& stop) {
  OpenFile file = open_for_reading(path);
  if (file.plain) return unpack(std::make_unique<FileStream>(path, std::move(file.fd)));
  return unpack(std::make_unique<SlowStream>(path, std::move(file.fd), options, stop));
}

std::unique_ptr<ByteStream> unpack(std::unique_ptr<ByteStream> packed) {
  std::string start(kMagicSize, '\0');
  size_t size = 0;
  while (size < start.size()) {
    const size_t n = packed->read(std::span(start).subspan(size));
    if (n == 0) break;
    size += n;
  }
  start.resize(size);
  const Packing packing = packing_of(start);
  auto whole = std::make_unique<PeekedStream>(std::move(start), std::move(packed));
  switch (packing) {
    case Packing::gzip:
      return gunzip(std::move(whole));
    case Packing::zstd:
      return unzstd(std::move(whole));
    case Packing::none:
      break;
  }
  return whole;
}

std::unique_ptr<ByteStream> memory_stream(std::vector<std::byte> bytes, std::string name) {
  return std::make_unique<MemoryStream>(std::move(bytes), std::move(name));
}

std::vector<std::byte> read_all(ByteStream& stream) {
  constexpr size_t kBlock = 1 << 16;
  std::vector<std::byte> bytes;
  size_t size = 0, n = 0;
  do {
    bytes.resize(std::max(size + kBlock, size + size / 2));
    n = stream.read({reinterpret_cast<char*>(bytes.data()) + size, bytes.size() - size});
    size += n;
  } while (n != 0);
  bytes.resize(size);
  return bytes;
}

OpenFile open_for_reading(const std::string& path) {
  // Opening a FIFO would block until it has a writer.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  check<IoError>(file.get() >= 0, path, ": ", std::strerror(errno));
  struct stat status {};
  check<IoError>(fstat(file.get(), &status) == 0, path, ": ", std::strerror(errno));
  check<IoError>(!S_ISDIR(status.st_mode), path, ": is a folder, expected a file");
  return {std::move(file), S_ISREG(status.st_mode)};
}

}  // namespace argosy
