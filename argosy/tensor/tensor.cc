#include "argosy/tensor/tensor.h"

#include <array>
#include <cstring>
#include <new>
#include <string_view>

namespace argosy {
namespace {

struct DTypeInfo {
  const char* name;
  size_t size;
};
constexpr std::array<DTypeInfo, 6> kTypes{
    {{"f32", 4}, {"f64", 8}, {"i32", 4}, {"i64", 8}, {"u8", 1}, {"b8", 1}}};

constexpr std::align_val_t kAlignment{64};

}  // namespace

size_t size_of(DType dtype) { return kTypes[static_cast<size_t>(dtype)].size; }
const char* name(DType dtype) { return kTypes[static_cast<size_t>(dtype)].name; }
std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name(dtype); }

DType parse_dtype(std::string_view text) {
  for (size_t i = 0; i < kTypes.size(); ++i)
    if (text == kTypes[i].name) return static_cast<DType>(i);
  fail<ConfigError>("unknown type '", text, "', expected one of f32 f64 i32 i64 u8 b8");
}

std::shared_ptr<void> allocate_aligned(size_t bytes) {
  return {::operator new(std::max<size_t>(bytes, 1), kAlignment),
          [](void* p) { ::operator delete(p, kAlignment); }};
}

Tensor::Tensor(const Shape& shape, DType dtype) : Tensor(uninitialized(shape, dtype)) {
  if (numel_ > 0) std::memset(data_, 0, bytes());
}

Tensor Tensor::uninitialized(const Shape& shape, DType dtype) {
  check<ConfigError>(shape.known(), "a tensor needs a known shape, got ", shape);
  const size_t bytes = static_cast<size_t>(shape.numel()) * size_of(dtype);
  auto owner = allocate_aligned(bytes);
  void* data = owner.get();
  Tensor tensor = wrap(data, shape, dtype, std::move(owner));
  tensor.capacity_ = bytes;
  return tensor;
}

void Tensor::renew(const Shape& shape, DType dtype) {
  const size_t bytes = static_cast<size_t>(shape.numel()) * size_of(dtype);
  if (owner_ == nullptr || bytes > capacity_) {
    const size_t room = std::max(bytes, capacity_ + capacity_ / 2);
    owner_ = allocate_aligned(room);
    data_ = static_cast<std::byte*>(owner_.get());
    capacity_ = room;
  }
  shape_ = shape;
  numel_ = shape.numel();
  dtype_ = dtype;
}

Tensor Tensor::wrap(void* data, const Shape& shape, DType dtype, std::shared_ptr<void> owner) {
  Tensor tensor;
  tensor.owner_ = std::move(owner);
  tensor.data_ = static_cast<std::byte*>(data);
  tensor.shape_ = shape;
  tensor.numel_ = shape.numel();
  tensor.dtype_ = dtype;
  return tensor;
}

Tensor Tensor::reshape(const Shape& shape) const {
  check<ConfigError>(shape.numel() == numel_, "cannot reshape ", shape_, " to ", shape);
  return wrap(data_, shape, dtype_, owner_);
}

Tensor Tensor::clone() const {
  Tensor copy = uninitialized(shape_, dtype_);
  if (numel_ > 0) std::memcpy(copy.data_, data_, bytes());
  return copy;
}

void Tensor::fail_type(DType wanted) const {
  fail<ConfigError>("a tensor of ", dtype_, " ", shape_, " was read as ", wanted);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.numel() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

}  // namespace argosy
