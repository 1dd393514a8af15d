#pragma once

#include "argosy/device/algorithms.h"
// Behind ours, which says what Thrust runs on.
#include <thrust/reduce.h>
#include <thrust/sort.h>

namespace argosy::device {

/// Sorts keys, and values with them; equal keys keep their order.
template <class Key, class Value>
void sort_by_key(Stream& stream, Key* keys, Value* values, size_t n) {
  ThrustMemory memory(stream);
  thrust::stable_sort_by_key(policy(stream, memory), keys, keys + n, values);
}

/// Reduces sorted keys to unique ones with the sums of their values; returns their number, for
/// which it waits.
template <class Key, class Value>
size_t sum_by_key(Stream& stream, const Key* keys, const Value* values, size_t n, Key* unique,
                  Value* sums) {
  ThrustMemory memory(stream);
  const auto ends =
      thrust::reduce_by_key(policy(stream, memory), keys, keys + n, values, unique, sums);
  return static_cast<size_t>(ends.first - unique);
}

/// The sum of values, for which it waits.
template <class Value>
Value sum(Stream& stream, const Value* values, size_t n) {
  ThrustMemory memory(stream);
  return thrust::reduce(policy(stream, memory), values, values + n, Value{0});
}

}  // namespace argosy::device
