#include "argosy/data/feature_hash.h"

#include <array>
#include <cstring>
#include <span>

#include "argosy/base/bytes.h"
#include "argosy/base/error.h"
#include "argosy/base/hash.h"

namespace argosy {

FeatureHash::FeatureHash(size_t column, uint64_t table_size)
    : prefix_(std::to_string(column)), table_size_(table_size) {
  check<ConfigError>(table_size > 0, "the size of a hashed table must be positive");
  if (prefix_.size() < sizeof(prefix_word_))
    std::memcpy(&prefix_word_, prefix_.data(), prefix_.size());
  empty_id_ = id_of(prefix_);
}

uint64_t FeatureHash::operator()(std::string_view value) const {
  if (value.empty()) return empty_id_;
  if (value.size() != sizeof(uint64_t) || prefix_word_ == 0)
    return id_of(prefix_ + std::string(value));
  // Eight bytes, as Criteo's categories have: joined in registers, as reading what was just
  // written in other pieces stalls.
  uint64_t word = 0;
  std::memcpy(&word, value.data(), sizeof(word));
  const size_t bits = 8 * prefix_.size();
  const std::array<uint64_t, 2> text = {prefix_word_ | word << bits, word >> (64 - bits)};
  const auto bytes = std::as_bytes(std::span(text)).first(prefix_.size() + sizeof(word));
  return xxh64(bytes) % table_size_;
}

uint64_t FeatureHash::id_of(std::string_view text) const {
  return xxh64(std::as_bytes(std::span(text))) % table_size_;
}

}  // namespace argosy
