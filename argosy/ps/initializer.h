#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "argosy/base/rng.h"

namespace argosy::ps {

/// First values of a parameter or of a row. Element i depends on the stream and i only, so any
/// server can fill any part of it:
///   zeros   ones   constant(0.1)   uniform(-0.1, 0.1)   normal(0, 0.01)
///   truncated_normal(0, 0.01)   (redrawn outside two standard deviations)
///   assign(1, 2, 3)             (these values in order; the size must fit)
class Initializer {
 public:
  /// Throws ConfigError that quotes the text and lists the known names.
  explicit Initializer(std::string_view text);

  /// Elements first, first + 1, ... of the stream.
  void fill(std::span<float> values, const RandomStream& stream, uint64_t first = 0) const;
  /// How many values an assign lists; nothing if the initializer fits any size.
  std::optional<size_t> size() const { return size_; }

 private:
  std::function<double(const RandomStream&, uint64_t)> value_;
  std::optional<size_t> size_;
};

/// The stream of a dense parameter: depends on (seed, name), never on call order.
RandomStream parameter_stream(uint64_t seed, std::string_view name);

}  // namespace argosy::ps
