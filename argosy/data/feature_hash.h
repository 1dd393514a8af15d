#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace argosy {

/// The id of a raw feature: XXH64, seed 0, of the decimal column number followed by the value's
/// bytes, modulo the table size. Fixed for ever; test vectors in docs/formats/criteo-hash.md.
class FeatureHash {
 public:
  /// `column` counts from 0 in the line. Throws ConfigError unless table_size > 0.
  FeatureHash(size_t column, uint64_t table_size);
  uint64_t operator()(std::string_view value) const;

 private:
  uint64_t id_of(std::string_view text) const;

  std::string prefix_;
  uint64_t prefix_word_ = 0;  // its bytes, if fewer than eight
  uint64_t table_size_, empty_id_;
};

}  // namespace argosy
