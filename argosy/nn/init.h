#pragma once

#include <span>
#include <string>

#include "argosy/tensor/shape.h"

/// Initializers by name, as ps/initializer.h reads them. Their draws depend on the seed and the
/// parameter's name only. Fans are taken from a weight [in, out]; further axes multiply both, as in
/// [in, out, kernel...].
namespace argosy::nn::init {

std::string constant(double value);
std::string uniform(double low, double high);
std::string normal(double mean, double deviation);
std::string truncated_normal(double mean, double deviation);
std::string xavier_uniform(const Shape& weight);
std::string xavier_normal(const Shape& weight);
std::string kaiming_uniform(const Shape& weight);
std::string kaiming_normal(const Shape& weight);
std::string assign(std::span<const double> values);

}  // namespace argosy::nn::init
