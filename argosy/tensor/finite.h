#pragma once

#include <cstdint>
#include <string_view>

#include "argosy/base/finite.h"
#include "argosy/tensor/tensor.h"

namespace argosy {

/// What training does about a loss, gradient or state that is NaN or infinite: end with a
/// DataError that names the step and the first such variable, say so and go on, or not look.
/// Whatever it is, a model with such a value is not saved.
enum class CheckNan : uint8_t { fail, warn, off };

/// "fail", "warn" or "off", or a flag as YAML has it: True is fail, False is off. Throws
/// ConfigError.
CheckNan parse_check_nan(std::string_view text);

/// For any type; integers always are.
bool all_finite(const Tensor& value);

}  // namespace argosy
