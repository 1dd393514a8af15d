#include "argosy/tensor/finite.h"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "argosy/base/call.h"
#include "argosy/base/error.h"

namespace argosy {

CheckNan parse_check_nan(std::string_view text) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::find(words, text) != words.end();
  };
  if (is_one_of({"fail", "True", "true", "TRUE", "yes", "on", "1"})) return CheckNan::fail;
  if (text == "warn") return CheckNan::warn;
  if (is_one_of({"off", "False", "false", "FALSE", "no", "0"})) return CheckNan::off;
  const std::string near = nearest(text, {"fail", "warn", "off"});
  fail<ConfigError>("check_nan is '", text, "', expected fail, warn or off",
                    near.empty() ? "" : ", did you mean " + near + "?");
}

bool all_finite(const Tensor& value) {
  if (value.dtype() == DType::f32) return all_finite(value.as<float>());
  if (value.dtype() == DType::f64) return all_finite(value.as<double>());
  return true;
}

}  // namespace argosy
