#pragma once

#include <algorithm>

#include "argosy/device/algorithms.h"

namespace argosy::device {

/// The sum of load(out, i) over i in begin ... end - 1.
template <class T, class Load>
ARGOSY_DEVICE T sum_range(const Load& load, size_t out, size_t begin, size_t end) {
  T total = 0;
  for (size_t i = begin; i < end; ++i) total += load(out, i);
  return total;
}

namespace sums_internal {

template <class T, class Load>
struct Part {
  Load load;
  size_t terms, parts;
  T* partial;
  ARGOSY_DEVICE void operator()(size_t at) const {
    const size_t out = at / parts, part = at % parts;
    partial[at] = sum_range<T>(load, out, part * terms / parts, (part + 1) * terms / parts);
  }
};

template <class T>
struct Stored {
  const T* partial;
  ARGOSY_DEVICE T operator()(size_t out, size_t part) const { return partial[out + part]; }
};

template <class T, class Store>
struct Total {
  const T* partial;
  size_t parts;
  Store store;
  ARGOSY_DEVICE void operator()(size_t out) const {
    store(out, sum_range<T>(Stored<T>{partial}, out * parts, 0, parts));
  }
};

template <class T, class Load, class Store>
struct Whole {
  Load load;
  size_t terms;
  Store store;
  ARGOSY_DEVICE void operator()(size_t out) const { store(out, sum_range<T>(load, out, 0, terms)); }
};

}  // namespace sums_internal

/// store(out, load(out, 0) + ... + load(out, terms - 1)) for out in 0 ... outs - 1. Few long sums
/// are cut into parts that run side by side; how depends on the sizes only, and so do the bits.
template <class T, class Load, class Store>
void sums(Stream& stream, size_t outs, size_t terms, Load load, Store store) {
  constexpr size_t kTermsOfPart = 32, kSideBySide = 16384;
  using namespace sums_internal;
  if (outs == 0) return;
  const size_t parts = std::min(terms / kTermsOfPart, std::max<size_t>(kSideBySide / outs, 1));
  if (parts <= 1) return for_each_index(stream, outs, Whole<T, Load, Store>{load, terms, store});
  const Scratch<T> partial(stream, outs * parts);
  for_each_index(stream, outs * parts, Part<T, Load>{load, terms, parts, partial.data()});
  for_each_index(stream, outs, Total<T, Store>{partial.data(), parts, store});
}

}  // namespace argosy::device
