#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "argosy/base/descriptor.h"
#include "argosy/data/source_watch.h"

namespace argosy {

/// A stream of bytes: a file, its unpacked content, a program's output.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// Some of the next bytes; 0 only at the end. Throws IoError or DataError naming the source.
  virtual size_t read(std::span<char> into) = 0;
  /// For messages: the path.
  virtual const std::string& name() const = 0;
};

/// A file, unpacked if its content (not its name) is gzip, of one or more members, or zstd. Throws
/// IoError if it cannot be read, or is a folder; read() throws DataError with the file's offset if
/// the packed bytes are damaged or truncated. A FIFO without a writer is reported, and waited for
/// until the token is stopped.
std::unique_ptr<ByteStream> open_file(const std::string& path, const SourceOptions& options = {},
                                      const std::stop_token& stop = {});

/// Unpacks any stream likewise.
std::unique_ptr<ByteStream> unpack(std::unique_ptr<ByteStream> packed);

/// Bytes that are in memory already.
std::unique_ptr<ByteStream> memory_stream(std::vector<std::byte> bytes, std::string name);

std::vector<std::byte> read_all(ByteStream& stream);

/// A file that is open, closed in children.
struct OpenFile {
  Descriptor fd;
  bool plain;  // else it may have no data yet, and is not waited for
};
/// Throws IoError if it is no readable file.
OpenFile open_for_reading(const std::string& path);

}  // namespace argosy
