#pragma once

#include "argosy/ops/on_device/kernel_support.h"

namespace argosy::ops::on_device {

/// Rows of bytes that lie at a steady distance in both places.
struct RowCopy {
  const std::byte* from;
  std::byte* to;
  size_t from_step, to_step, bytes, rows;
};

template <class Word>
struct CopyWords {
  const Word* from;
  Word* to;
  size_t from_step, to_step, width;
  ARGOSY_DEVICE void operator()(size_t i) const {
    to[i / width * to_step + i % width] = from[i / width * from_step + i % width];
  }
};

/// `size`: of an element; rows and steps hold whole elements.
inline void copy_rows(Stream& stream, const RowCopy& c, size_t size) {
  if (c.bytes == 0 || c.rows == 0) return;
  const auto by_words = [&](auto zero) {
    using Word = decltype(zero);
    constexpr size_t kSize = sizeof(Word);
    for_each_index(
        stream, c.rows * (c.bytes / kSize),
        CopyWords<Word>{reinterpret_cast<const Word*>(c.from), reinterpret_cast<Word*>(c.to),
                        c.from_step / kSize, c.to_step / kSize, c.bytes / kSize});
  };
  if (size == 8) return by_words(uint64_t{});
  if (size == 4) return by_words(uint32_t{});
  by_words(uint8_t{});
}

/// An axis of a tensor as rows of bytes: how many, and the bytes of each.
struct AxisRows {
  size_t rows = 1, bytes;
  AxisRows(const Tensor& x, int axis) : bytes(size_of(x.dtype())) {
    for (int i = 0; i < x.shape().rank(); ++i)
      (i < axis ? rows : bytes) *= static_cast<size_t>(x.shape()[i]);
  }
};

}  // namespace argosy::ops::on_device
