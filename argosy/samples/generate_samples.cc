#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "argosy/base/error.h"
#include "argosy/samples/generate.h"
#include "argosy/samples/generate_support.h"
#include "argosy/samples/samples.h"

namespace argosy {
namespace {

/// The header of an IDX file of unsigned bytes, then the bytes.
void write_idx(Env& env, const std::string& path, std::initializer_list<uint32_t> shape,
               std::string_view bytes) {
  AtomicTextFile file(env, path);
  const auto append_u32 = [&file](uint32_t value) {
    std::array<char, 4> text;
    for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(value >> (24 - 8 * i));
    file.append({text.data(), text.size()});
  };
  constexpr uint32_t kUnsignedBytes = 0x0800;
  append_u32(kUnsignedBytes | static_cast<uint32_t>(shape.size()));
  for (const uint32_t extent : shape) append_u32(extent);
  file.append(bytes);
  file.finish();
}

/// Pixels come from the C library's exp, whose last bit is not the same everywhere; rounding to 256
/// steps takes it away.
void write_digits(Env& env, const std::string& prefix, size_t n, uint64_t seed) {
  constexpr uint32_t kSide = 28;
  const Digits digits = generated_digits(static_cast<int64_t>(n), seed);
  std::string images, labels;
  images.reserve(n * kSide * kSide);
  labels.reserve(n);
  for (const float x : digits.x.as<float>())
    images.push_back(static_cast<char>(static_cast<uint8_t>(std::lround(x * 255.0F))));
  for (const int64_t label : digits.label.as<int64_t>()) labels.push_back(static_cast<char>(label));
  const auto count = static_cast<uint32_t>(n);
  write_idx(env, prefix + "-images-idx3-ubyte", {count, kSide, kSide}, images);
  write_idx(env, prefix + "-labels-idx1-ubyte", {count}, labels);
}

/// How a column of housing.data is printed, and the range of the real values.
struct HousingColumn {
  double low, high;
  int width, decimals;
};
constexpr std::array<HousingColumn, 14> kHousing = {{
    {0, 89, 8, 5},       // CRIM
    {0, 100, 7, 2},      // ZN
    {0.4, 27.8, 7, 3},   // INDUS
    {0, 1, 7, 4},        // CHAS, 0 or 1 in the real file
    {0.38, 0.88, 7, 4},  // NOX
    {3.5, 8.8, 7, 4},    // RM
    {2, 100, 6, 2},      // AGE
    {1.1, 12.2, 8, 4},   // DIS
    {1, 24, 8, 4},       // RAD, whole in the real file
    {187, 711, 7, 2},    // TAX, whole in the real file
    {12.6, 22, 6, 2},    // PTRATIO
    {0.3, 397, 7, 2},    // B
    {1.7, 38, 6, 2},     // LSTAT
    {0, 1, 6, 2},        // MEDV, an untransformed price
}};

char* write_right(char* at, double value, const HousingColumn& column) {
  std::array<char, 32> text;
  char* const end = std::to_chars(text.data(), text.data() + text.size(), value,
                                  std::chars_format::fixed, column.decimals)
                        .ptr;
  const auto size = static_cast<int>(end - text.data());
  at = std::fill_n(at, std::max(1, column.width - size), ' ');
  return std::copy(text.data(), end, at);
}

}  // namespace

void generate_mnist(Env& env, const std::string& out_dir, const MnistOptions& options) {
  constexpr size_t kMost = 10'000'000;
  check<ConfigError>(options.train > 0 && options.train <= kMost, "train is ", options.train,
                     ", expected 1 to ", kMost, " images");
  check<ConfigError>(options.test > 0 && options.test <= kMost, "test is ", options.test,
                     ", expected 1 to ", kMost, " images");
  env.make_directories(out_dir);
  // Seed 1 gives streams 1 and 2, the ones mnist_samples uses.
  write_digits(env, out_dir + "/train", options.train, 2 * options.seed - 1);
  write_digits(env, out_dir + "/t10k", options.test, 2 * options.seed);
}

void generate_housing(Env& env, const std::string& out_dir, const HousingOptions& options) {
  constexpr size_t kMost = 10'000'000, kLongestLine = 512;
  check<ConfigError>(options.rows >= 2 && options.rows <= kMost, "rows is ", options.rows,
                     ", expected 2 to ", kMost);
  env.make_directories(out_dir);
  // Seed 1 gives stream 3, the one of housing_samples.
  const std::vector<double> values = generated_houses(options.rows, 2 * options.seed + 1);
  AtomicTextFile file(env, out_dir + "/housing.data");
  for (size_t row = 0; row < options.rows; ++row) {
    file.append(kLongestLine, [&](char* at) {
      for (size_t i = 0; i < kHousing.size(); ++i) {
        const HousingColumn& column = kHousing[i];
        const double value = values[row * kHousing.size() + i];
        at = write_right(at, column.low + (column.high - column.low) * value, column);
      }
      *at++ = '\n';
      return at;
    });
  }
  file.finish();
}

}  // namespace argosy
