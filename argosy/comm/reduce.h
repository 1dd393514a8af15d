#pragma once

#include <cstddef>
#include <span>

#include "argosy/comm/call.h"

namespace argosy::comm {

/// outputs[..][i] = inputs[0][i] op inputs[1][i] op ..., in this order, so that everybody gets the
/// same bits. With Reduce::avg the sum is divided by `divide_by`; integers are cut. An output may
/// be an input.
void reduce_elements(ElementType type, Reduce reduce, size_t count,
                     std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                     size_t divide_by);

/// data[i] /= by; integers are cut.
void divide_elements(ElementType type, std::byte* data, size_t count, size_t by);

/// How `count` elements are cut into one slice for each rank; on cache lines.
struct Slices {
  Slices(size_t count, size_t parts, ElementType type);
  size_t begin(size_t part) const;
  size_t end(size_t part) const { return begin(part + 1); }
  size_t size(size_t part) const { return end(part) - begin(part); }

 private:
  size_t count_, each_;
};

}  // namespace argosy::comm
