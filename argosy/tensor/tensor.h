#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <span>
#include <string>

#include "argosy/base/error.h"
#include "argosy/tensor/shape.h"

namespace argosy {

enum class DType : uint8_t { f32, f64, i32, i64, u8, b8 };

size_t size_of(DType dtype);
const char* name(DType dtype);
DType parse_dtype(std::string_view name);  // throws ConfigError listing the known ones
inline bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }
std::ostream& operator<<(std::ostream& out, DType dtype);

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::u8;
}
template <>
constexpr DType dtype_of<bool>() {
  return DType::b8;
}

/// Contiguous row-major array. Copying shares the memory; clone() copies it. The memory is its
/// own (64-byte aligned) or the caller's, as wrap() says.
class Tensor {
 public:
  Tensor() = default;
  /// Zero-filled.
  explicit Tensor(const Shape& shape, DType dtype = DType::f32);

  /// Content undefined.
  static Tensor uninitialized(const Shape& shape, DType dtype);
  /// Over memory of the caller, which must outlive every copy unless `owner` keeps it alive.
  static Tensor wrap(void* data, const Shape& shape, DType dtype, std::shared_ptr<void> owner = {});
  template <class T>
  static Tensor of(const Shape& shape, std::span<const T> values);
  template <class T>
  static Tensor of(const Shape& shape, std::initializer_list<T> values) {
    return of(shape, std::span<const T>(values.begin(), values.size()));
  }
  static Tensor scalar(float value) { return of<float>({1}, {value}); }

  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  int64_t numel() const { return numel_; }
  size_t bytes() const { return static_cast<size_t>(numel_) * size_of(dtype_); }
  bool defined() const { return data_ != nullptr || numel_ == 0; }

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  template <class T>
  std::span<T> as() {
    check_type(dtype_of<T>());
    return {reinterpret_cast<T*>(data_), static_cast<size_t>(numel_)};
  }
  template <class T>
  std::span<const T> as() const {
    check_type(dtype_of<T>());
    return {reinterpret_cast<const T*>(data_), static_cast<size_t>(numel_)};
  }

  Tensor reshape(const Shape& shape) const;  // same memory
  /// Takes this shape and type, content undefined. Reuses owned memory if it is large enough, even
  /// if shared with other tensors; so buffers that are filled repeatedly end up allocating nothing.
  void renew(const Shape& shape, DType dtype);
  Tensor clone() const;

 private:
  void check_type(DType wanted) const {
    if (wanted != dtype_) [[unlikely]]
      fail_type(wanted);
  }
  [[noreturn]] void fail_type(DType wanted) const;

  std::shared_ptr<void> owner_;
  std::byte* data_ = nullptr;
  size_t capacity_ = 0;  // bytes of owned memory; 0: not owned
  int64_t numel_ = 0;
  Shape shape_{0};
  DType dtype_ = DType::f32;
};

template <class T>
Tensor Tensor::of(const Shape& shape, std::span<const T> values) {
  Tensor tensor = uninitialized(shape, dtype_of<T>());
  check<ConfigError>(static_cast<int64_t>(values.size()) == tensor.numel(), "a tensor of ", shape,
                     " needs ", tensor.numel(), " values, got ", values.size());
  std::copy(values.begin(), values.end(), tensor.as<T>().begin());
  return tensor;
}

/// Same type, shape and bits.
bool same_bits(const Tensor& a, const Tensor& b);

using Feeds = std::map<std::string, Tensor, std::less<>>;  // by variable name

/// Memory for `bytes` bytes, 64-byte aligned, content undefined.
std::shared_ptr<void> allocate_aligned(size_t bytes);

}  // namespace argosy
