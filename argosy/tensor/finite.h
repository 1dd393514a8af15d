#pragma once

#include <cstdint>
#include <string_view>

#include "argosy/base/finite.h"
#include "argosy/tensor/tensor.h"

namespace argosy {

/// Reaction of training to a NaN or infinite loss, gradient or state: fail with a DataError that
/// names the step and the first such variable, warn and continue, or do not check. In all cases a
/// model with such a value is not saved.
enum class CheckNan : uint8_t { fail, warn, off };

/// "fail", "warn" or "off", or a flag as YAML has it: True is fail, False is off. Throws
/// ConfigError.
CheckNan parse_check_nan(std::string_view text);

/// For any type; integers always are.
bool all_finite(const Tensor& value);

}  // namespace argosy
