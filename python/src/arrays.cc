#include <cstring>

#include "bindings.h"

namespace argosy::python {
namespace {

DType dtype_of_array(const nb::dlpack::dtype& dtype, const std::string& what) {
  using Code = nb::dlpack::dtype_code;
  const auto is = [&](Code code, int bits) {
    return dtype.code == static_cast<uint8_t>(code) && dtype.bits == bits && dtype.lanes == 1;
  };
  if (is(Code::Float, 32)) return DType::f32;
  if (is(Code::Float, 64)) return DType::f64;
  if (is(Code::Int, 32)) return DType::i32;
  if (is(Code::Int, 64) || is(Code::UInt, 64)) return DType::i64;
  if (is(Code::UInt, 8)) return DType::u8;
  if (is(Code::Bool, 8)) return DType::b8;
  fail<ConfigError>(what, ": an array of ", static_cast<int>(dtype.bits),
                    "-bit elements of another kind, expected float32, float64, int32, int64, "
                    "uint8 or bool");
}

nb::dlpack::dtype array_dtype(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return nb::dtype<float>();
    case DType::f64:
      return nb::dtype<double>();
    case DType::i32:
      return nb::dtype<int32_t>();
    case DType::i64:
      return nb::dtype<int64_t>();
    case DType::u8:
      return nb::dtype<uint8_t>();
    case DType::b8:
      return nb::dtype<bool>();
  }
  fail("a type of elements that arrays do not have");
}

using AnyArray = nb::ndarray<nb::device::cpu, nb::c_contig>;

/// A contiguous array of what NumPy takes for one; int16, float16 and the like become the next
/// type that the engine has.
nb::object as_array(nb::handle object) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  nb::object array = numpy.attr("ascontiguousarray")(object);
  const std::string kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  const auto size = nb::cast<int>(array.attr("dtype").attr("itemsize"));
  const char* wanted = nullptr;
  if (kind == "f" && size < 4) wanted = "float32";
  if ((kind == "i" && size < 4) || (kind == "u" && size == 2)) wanted = "int32";
  if (kind == "u" && size == 4) wanted = "int64";
  if (!nb::cast<bool>(array.attr("dtype").attr("isnative"))) {
    array = array.attr("astype")(array.attr("dtype").attr("newbyteorder")("="));
  }
  return wanted == nullptr ? array : nb::object(array.attr("astype")(wanted));
}

/// Releases the array wherever the last holder is. The view owns the memory: if a copy was needed,
/// the script's array does not.
std::shared_ptr<void> keep(AnyArray view) {
  return {new AnyArray(std::move(view)), [](void* held) {
            const nb::gil_scoped_acquire gil;
            delete static_cast<AnyArray*>(held);
          }};
}

}  // namespace

Tensor tensor_of(nb::handle array, const std::string& what) {
  AnyArray view;
  if (!nb::try_cast(array, view)) {
    nb::object held = as_array(array);
    const std::string kind = nb::cast<std::string>(held.attr("dtype").attr("kind"));
    check<ConfigError>(kind != "O" && kind != "U" && kind != "S", what,
                       ": its rows are not of one length, or not numbers");
    // A read-only array is copied: engine code may write where it owns.
    if (!nb::try_cast(held, view)) {
      held = nb::module_::import_("numpy").attr("array")(held);
      view = nb::cast<AnyArray>(held);
    }
  }
  Shape shape;
  for (size_t i = 0; i < view.ndim(); ++i) shape.push_back(static_cast<int64_t>(view.shape(i)));
  return Tensor::wrap(view.data(), shape, dtype_of_array(view.dtype(), what), keep(view));
}

nb::object array_of(const Tensor& tensor) {
  std::vector<size_t> shape;
  for (int64_t size : tensor.shape()) shape.push_back(static_cast<size_t>(size));
  if (shape.empty()) shape.push_back(1);
  auto* owner = new Tensor(tensor);
  const nb::capsule capsule(owner, [](void* held) noexcept { delete static_cast<Tensor*>(held); });
  const nb::ndarray<nb::numpy> array(owner->data(), shape.size(), shape.data(), capsule, nullptr,
                                     array_dtype(tensor.dtype()));
  return nb::cast(array, nb::rv_policy::reference);
}

}  // namespace argosy::python
