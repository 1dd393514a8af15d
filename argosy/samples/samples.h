#pragma once

#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/tensor/tensor.h"

namespace argosy {

/// A small data set whole in memory, ready for array_dataset.
struct Samples {
  Feeds train, test;
  std::string source;  // one line: which files, or that it was generated
};

/// x f32[n,784] in [0,1], label i64[n,1]. From `folder` (the four idx files, plain or gzip), or
/// generated from ten noisy shapes where `folder` is empty.
Samples mnist_samples(Env& env, const std::string& folder);

/// x f32[n,13], y f32[n,1]: each feature is (x - mean) / (max - min) over all rows, the first four
/// fifths train. From `folder`/housing.data, or generated where `folder` is empty.
Samples housing_samples(Env& env, const std::string& folder);

struct Digits {
  Tensor x, label;  // f32[n,784] in [0,1] and i64[n,1]
};
/// Generated images drawn around ten smooth shapes, with noise and a shift.
Digits generated_digits(int64_t n, uint64_t seed);

/// Generated rows of 13 features in [0,1) and a price that depends on them.
std::vector<double> generated_houses(size_t rows, uint64_t seed);

/// An IDX array of unsigned bytes, plain or packed. Throws DataError with path and reason.
Tensor read_idx(Env& env, const std::string& path);

/// `$ARGOSY_DATA/name` if that folder exists, else "".
std::string data_folder(const std::string& name);

}  // namespace argosy
