#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "argosy/tensor/tensor.h"

namespace argosy {

/// Settings of a benchmark by name, all with defaults.
using BenchFlags = std::map<std::string, std::string>;
/// Results in the order they are printed.
using BenchResults = std::vector<std::pair<std::string, double>>;

/// One question about speed. Each other .cc file of this folder defines `Bench <file>()`.
struct Bench {
  std::string help;
  BenchFlags flags;  // known flags and their defaults
  BenchResults (*run)(const BenchFlags& flags);
};

std::map<std::string, Bench> all_benches();

int64_t integer(const BenchFlags& flags, const std::string& name,
                int64_t least = 1);  // throws ConfigError
double seconds_now();
double median(std::vector<double> values);
Tensor random_floats(const Shape& shape, uint64_t seed);  // within 0.05 of 0

}  // namespace argosy
