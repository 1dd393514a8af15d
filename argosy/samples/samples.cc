#include "argosy/samples/samples.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "argosy/base/rng.h"
#include "argosy/data/byte_stream.h"

namespace argosy {
namespace {

constexpr size_t kPixels = 784, kClasses = 10, kFeatures = 13;

/// The file under its plain name or with .gz.
std::string plain_or_packed(Env& env, const std::string& folder, const std::string& name) {
  const std::string plain = folder + "/" + name;
  return env.file_exists(plain) ? plain : plain + ".gz";
}

Digits read_digits(Env& env, const std::string& folder, const std::string& prefix) {
  const std::string images_path = plain_or_packed(env, folder, prefix + "-images-idx3-ubyte");
  const std::string labels_path = plain_or_packed(env, folder, prefix + "-labels-idx1-ubyte");
  const Tensor images = read_idx(env, images_path), labels = read_idx(env, labels_path);
  check<DataError>(images.shape().rank() == 3 && images.shape()[1] * images.shape()[2] == kPixels,
                   images_path, ": expected images of 28 by 28, got ", images.shape());
  check<DataError>(labels.shape() == Shape{images.shape()[0]}, labels_path, ": ", labels.shape(),
                   " labels for ", images.shape()[0], " images");
  const int64_t n = images.shape()[0];
  Digits digits{Tensor::uninitialized({n, kPixels}, DType::f32),
                Tensor::uninitialized({n, 1}, DType::i64)};
  std::ranges::transform(images.as<uint8_t>(), digits.x.as<float>().begin(),
                         [](uint8_t pixel) { return static_cast<float>(pixel) / 255.0F; });
  std::ranges::copy(labels.as<uint8_t>(), digits.label.as<int64_t>().begin());
  return digits;
}

/// Rows of `columns` numbers separated by white space.
std::vector<double> read_numbers(const std::vector<std::byte>& bytes, size_t columns,
                                 const std::string& path) {
  std::vector<double> values;
  const char* at = reinterpret_cast<const char*>(bytes.data());
  const char* const end = at + bytes.size();
  for (size_t line = 1; at < end; ++line) {
    const char* const line_end = std::find(at, end, '\n');
    const size_t before = values.size();
    while (true) {
      at = std::find_if(at, line_end, [](char c) { return c != ' ' && c != '\t' && c != '\r'; });
      if (at == line_end) break;
      double value = 0;
      const auto [stop, error] = std::from_chars(at, line_end, value);
      check<DataError>(error == std::errc(), path, ":", line, ": '",
                       std::string(at, std::min(line_end, at + 12)), "' is not a number");
      values.push_back(value);
      at = stop;
    }
    const size_t found = values.size() - before;
    check<DataError>(found == columns || found == 0, path, ":", line, ": ", found,
                     " numbers, expected ", columns);
    at = std::min(line_end + 1, end);
  }
  return values;
}

/// Scales features as paddle.dataset.uci_housing does and cuts off the last fifth for test.
Samples split_housing(std::vector<double> rows, std::string source) {
  constexpr size_t kColumns = kFeatures + 1;
  const size_t n = rows.size() / kColumns;
  for (size_t column = 0; column < kFeatures; ++column) {
    double low = rows[column], high = low, total = 0;
    for (size_t r = 0; r < n; ++r) {
      const double value = rows[r * kColumns + column];
      low = std::min(low, value);
      high = std::max(high, value);
      total += value;
    }
    const double range = high > low ? high - low : 1;
    for (size_t r = 0; r < n; ++r) {
      double& value = rows[r * kColumns + column];
      value = (value - total / static_cast<double>(n)) / range;
    }
  }
  const auto part = [&](size_t first, size_t last) {
    const auto count = static_cast<int64_t>(last - first);
    Tensor x({count, kFeatures}), y({count, 1});
    for (size_t r = first; r < last; ++r) {
      for (size_t c = 0; c < kFeatures; ++c)
        x.as<float>()[(r - first) * kFeatures + c] = static_cast<float>(rows[r * kColumns + c]);
      y.as<float>()[r - first] = static_cast<float>(rows[r * kColumns + kFeatures]);
    }
    return Feeds{{"x", x}, {"y", y}};
  };
  const size_t cut = n * 8 / 10;
  return {part(0, cut), part(cut, n), std::move(source)};
}

}  // namespace

std::string data_folder(const std::string& name) {
  const char* root = std::getenv("ARGOSY_DATA");
  if (root == nullptr) return "";
  const std::filesystem::path folder = std::filesystem::path(root) / name;
  return std::filesystem::is_directory(folder) ? folder.string() : "";
}

Tensor read_idx(Env& env, const std::string& path) {
  const auto stream = unpack(memory_stream(env.read_file(path), path));
  const std::vector<std::byte> bytes = read_all(*stream);
  const auto u32 = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<uint32_t>(bytes[at + i]);
    return value;
  };
  constexpr uint32_t kUnsignedBytes = 0x0800;
  check<DataError>(bytes.size() >= 4 && (u32(0) & ~0xFFU) == kUnsignedBytes, path,
                   ": not an IDX file of unsigned bytes");
  const size_t rank = u32(0) & 0xFFU;
  check<DataError>(rank >= 1 && rank <= 4 && bytes.size() >= 4 + 4 * rank, path,
                   ": an IDX header of ", rank, " dimensions is cut off or too long");
  Shape shape;
  uint64_t count = 1;
  for (size_t i = 0; i < rank; ++i) {
    shape.push_back(u32(4 + 4 * i));
    count *= u32(4 + 4 * i);
    check<DataError>(count <= bytes.size(), path, ": the header promises more than the file has");
  }
  const size_t start = 4 + 4 * rank;
  check<DataError>(bytes.size() - start == count, path, ": ", shape, " needs ", count,
                   " bytes, the file has ", bytes.size() - start);
  Tensor tensor = Tensor::uninitialized(shape, DType::u8);
  std::ranges::copy(std::span(bytes).subspan(start), tensor.data());
  return tensor;
}

Digits generated_digits(int64_t n, uint64_t seed) {
  Digits digits{Tensor::uninitialized({n, kPixels}, DType::f32),
                Tensor::uninitialized({n, 1}, DType::i64)};
  const RandomStream random(seed);
  auto x = digits.x.as<float>();
  auto label = digits.label.as<int64_t>();
  uint64_t draw = 0;
  for (size_t i = 0; i < label.size(); ++i) {
    const size_t digit = random.below(draw++, kClasses);
    const int dx = static_cast<int>(random.below(draw++, 5)) - 2,
              dy = static_cast<int>(random.below(draw++, 5)) - 2;
    const RandomStream shape(17, digit);
    for (size_t p = 0; p < kPixels; ++p) {
      const double u = static_cast<double>(static_cast<int>(p % 28) + dx) / 28,
                   v = static_cast<double>(static_cast<int>(p / 28) + dy) / 28;
      double value = 0;
      for (uint64_t blob = 0; blob < 4; ++blob) {
        const double a = u - shape.uniform(2 * blob), b = v - shape.uniform(2 * blob + 1);
        value += std::exp(-(a * a + b * b) * 60);
      }
      value += 1.5 * (random.uniform(draw++) - 0.5);
      x[i * kPixels + p] = static_cast<float>(std::clamp(value, 0.0, 1.0));
    }
    label[i] = static_cast<int64_t>(digit);
  }
  return digits;
}

std::vector<double> generated_houses(size_t rows, uint64_t seed) {
  std::vector<double> values;
  values.reserve(rows * (kFeatures + 1));
  const RandomStream random(seed), weights(4);
  for (size_t r = 0; r < rows; ++r) {
    double price = 22.5;
    for (size_t c = 0; c < kFeatures; ++c) {
      values.push_back(random.uniform(r * 32 + c));
      price += 2 * weights.normal(c) * (values.back() - 0.5);
    }
    values.push_back(price + random.normal(r * 16 + 8));
  }
  return values;
}

Samples mnist_samples(Env& env, const std::string& folder) {
  const bool real = !folder.empty();
  const Digits train = real ? read_digits(env, folder, "train") : generated_digits(6000, 1);
  const Digits test = real ? read_digits(env, folder, "t10k") : generated_digits(1000, 2);
  return {{{"x", train.x}, {"label", train.label}},
          {{"x", test.x}, {"label", test.label}},
          real ? "MNIST from " + folder
               : "generated digits (set ARGOSY_DATA to a folder with mnist/ for the real ones)"};
}

Samples housing_samples(Env& env, const std::string& folder) {
  if (!folder.empty()) {
    const std::string path = folder + "/housing.data";
    return split_housing(read_numbers(env.read_file(path), kFeatures + 1, path),
                         "housing data from " + folder);
  }
  return split_housing(
      generated_houses(506, 3),
      "generated prices (set ARGOSY_DATA to a folder with uci_housing/ for the real ones)");
}

}  // namespace argosy
