#include "argosy/nn/init.h"

#include <fmt/format.h>

#include <cmath>

namespace argosy::nn::init {
namespace {

struct Fans {
  double in, out;
};

Fans fans(const Shape& weight) {
  check<ConfigError>(weight.rank() >= 2 && weight.known(),
                     "fans are taken from a weight [in, out], got ", weight);
  double rest = 1;
  for (int i = 2; i < weight.rank(); ++i) rest *= static_cast<double>(weight[i]);
  return {static_cast<double>(weight[0]) * rest, static_cast<double>(weight[1]) * rest};
}

std::string symmetric(double limit) { return uniform(-limit, limit); }

}  // namespace

std::string constant(double value) { return fmt::format("constant({})", value); }
std::string uniform(double low, double high) { return fmt::format("uniform({}, {})", low, high); }
std::string normal(double mean, double deviation) {
  return fmt::format("normal({}, {})", mean, deviation);
}
std::string truncated_normal(double mean, double deviation) {
  return fmt::format("truncated_normal({}, {})", mean, deviation);
}

std::string xavier_uniform(const Shape& weight) {
  const auto [in, out] = fans(weight);
  return symmetric(std::sqrt(6.0 / (in + out)));
}
std::string xavier_normal(const Shape& weight) {
  const auto [in, out] = fans(weight);
  return normal(0, std::sqrt(2.0 / (in + out)));
}
std::string kaiming_uniform(const Shape& weight) {
  return symmetric(std::sqrt(6.0 / fans(weight).in));
}
std::string kaiming_normal(const Shape& weight) {
  return normal(0, std::sqrt(2.0 / fans(weight).in));
}

std::string assign(std::span<const double> values) {
  return fmt::format("assign({})", fmt::join(values, ", "));
}

}  // namespace argosy::nn::init
