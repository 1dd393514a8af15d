#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace argosy {

/// XXH3, 64 bits: for checksums, slots of keys and random streams. Stable for ever.
uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed = 0);
uint64_t hash64(std::string_view text, uint64_t seed = 0);

/// XXH64, the older algorithm: for raw features (docs/formats/criteo-hash.md). Stable for ever.
uint64_t xxh64(std::span<const std::byte> bytes, uint64_t seed = 0);

/// A checksum taken piece by piece; equals hash64 of the pieces joined.
class RunningHash {
 public:
  RunningHash();
  ~RunningHash();
  RunningHash(const RunningHash&) = delete;
  RunningHash& operator=(const RunningHash&) = delete;
  void add(std::span<const std::byte> bytes);
  uint64_t digest() const;

 private:
  void* state_;
};

}  // namespace argosy
