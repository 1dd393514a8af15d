#pragma once

#include <memory>
#include <string_view>

#include "argosy/data/byte_stream.h"

namespace argosy {

enum class Packing : uint8_t { none, gzip, zstd };

/// Bytes at the start of a stream that packing_of wants to see.
inline constexpr size_t kMagicSize = 4;
Packing packing_of(std::string_view start);

std::unique_ptr<ByteStream> gunzip(std::unique_ptr<ByteStream> packed);
std::unique_ptr<ByteStream> unzstd(std::unique_ptr<ByteStream> packed);

}  // namespace argosy
