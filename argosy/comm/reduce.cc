#include "argosy/comm/reduce.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "argosy/base/denormals.h"
#include "argosy/base/isa.h"

namespace argosy::comm {
namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kBlock = 8192;  // bytes; the sum of a block stays in the first cache

template <Reduce op, class T>
T combined(T a, T b) {
  if constexpr (op == Reduce::max) return a < b ? b : a;
  if constexpr (op == Reduce::min) return b < a ? b : a;
  // Signed integers wrap around as unsigned ones do.
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    if constexpr (op == Reduce::prod)
      return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    else
      return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return op == Reduce::prod ? a * b : a + b;
  }
}

template <Reduce op, class T>
void combine(const T* a, const T* b, T* out, size_t n) {
  vectorized([=] {
    for (size_t i = 0; i < n; ++i) out[i] = combined<op>(a[i], b[i]);
  });
}

template <class T>
void divide(T* values, T by, size_t n) {
  vectorized([=] {
    for (size_t i = 0; i < n; ++i) values[i] /= by;
  });
}

template <Reduce op, class T>
void reduce_block(std::span<const std::byte* const> inputs, size_t offset, size_t n, T* sum) {
  const auto input = [&](size_t q) { return reinterpret_cast<const T*>(inputs[q] + offset); };
  combine<op>(input(0), input(1), sum, n);
  for (size_t q = 2; q < inputs.size(); ++q) combine<op>(sum, input(q), sum, n);
}

template <Reduce op, class T>
void reduce_typed(size_t count, std::span<const std::byte* const> inputs,
                  std::span<std::byte* const> outputs, size_t divide_by) {
  alignas(kCacheLine) T sum[kBlock / sizeof(T)];
  constexpr size_t kEach = kBlock / sizeof(T);
  for (size_t done = 0; done < count; done += kEach) {
    const size_t n = std::min(kEach, count - done), offset = done * sizeof(T);
    // Sum two inputs into a single output directly: even in place, each element is read first.
    T* const to =
        outputs.size() == 1 && inputs.size() == 2 ? reinterpret_cast<T*>(outputs[0] + offset) : sum;
    reduce_block<op>(inputs, offset, n, to);
    if (divide_by > 1) divide(to, static_cast<T>(divide_by), n);
    for (std::byte* const output : outputs)
      if (output + offset != reinterpret_cast<std::byte*>(to))
        std::memcpy(output + offset, to, n * sizeof(T));
  }
}

template <class T>
void reduce_any(Reduce reduce, size_t count, std::span<const std::byte* const> inputs,
                std::span<std::byte* const> outputs, size_t divide_by) {
  switch (reduce) {
    case Reduce::avg:
      return reduce_typed<Reduce::sum, T>(count, inputs, outputs, divide_by);
    case Reduce::sum:
      return reduce_typed<Reduce::sum, T>(count, inputs, outputs, 1);
    case Reduce::max:
      return reduce_typed<Reduce::max, T>(count, inputs, outputs, 1);
    case Reduce::min:
      return reduce_typed<Reduce::min, T>(count, inputs, outputs, 1);
    case Reduce::prod:
      return reduce_typed<Reduce::prod, T>(count, inputs, outputs, 1);
  }
}

void copy_one(const std::byte* input, std::span<std::byte* const> outputs, size_t bytes) {
  for (std::byte* const output : outputs)
    if (output != input && bytes > 0) std::memcpy(output, input, bytes);
}

}  // namespace

void reduce_elements(ElementType type, Reduce reduce, size_t count,
                     std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                     size_t divide_by) {
  const FlushDenormals flush;  // whichever thread it is: the same bits
  if (inputs.size() == 1) return copy_one(inputs[0], outputs, count * size_of(type));
  switch (type) {
    case ElementType::f32:
      return reduce_any<float>(reduce, count, inputs, outputs, divide_by);
    case ElementType::f64:
      return reduce_any<double>(reduce, count, inputs, outputs, divide_by);
    case ElementType::i32:
      return reduce_any<int32_t>(reduce, count, inputs, outputs, divide_by);
    case ElementType::i64:
      return reduce_any<int64_t>(reduce, count, inputs, outputs, divide_by);
  }
}

void divide_elements(ElementType type, std::byte* data, size_t count, size_t by) {
  const auto divide_typed = [&]<class T>(T divisor) {
    divide(reinterpret_cast<T*>(data), divisor, count);
  };
  switch (type) {
    case ElementType::f32:
      return divide_typed(static_cast<float>(by));
    case ElementType::f64:
      return divide_typed(static_cast<double>(by));
    case ElementType::i32:
      return divide_typed(static_cast<int32_t>(by));
    case ElementType::i64:
      return divide_typed(static_cast<int64_t>(by));
  }
}

Slices::Slices(size_t count, size_t parts, ElementType type) : count_(count) {
  const size_t line = kCacheLine / size_of(type);
  each_ = ((count + parts - 1) / parts + line - 1) / line * line;
}

size_t Slices::begin(size_t part) const { return std::min(count_, part * each_); }

}  // namespace argosy::comm
