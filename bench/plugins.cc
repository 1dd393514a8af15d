// Collects the benchmarks of this folder, and what they share.
#include <algorithm>
#include <charconv>
#include <chrono>

#include "argosy/base/error.h"
#include "argosy/base/plugins.h"
#include "argosy/base/rng.h"
#include "bench.def"
#include "bench/bench.h"

namespace argosy {

using BenchPlugin = Plugin<Bench()>;
ARGOSY_COLLECT(benches, BenchPlugin, builtin_benches)

std::map<std::string, Bench> all_benches() {
  std::map<std::string, Bench> all;
  for (const BenchPlugin& plugin : builtin_benches()) all.emplace(plugin.name, plugin.make());
  return all;
}

int64_t integer(const BenchFlags& flags, const std::string& name, int64_t least) {
  const std::string& text = flags.at(name);
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check<ConfigError>(error == std::errc() && stop == text.data() + text.size() && value >= least,
                     "--", name, " ", text, ": expected an integer of at least ", least);
  return value;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Tensor random_floats(const Shape& shape, uint64_t seed) {
  Tensor tensor(shape);
  const RandomStream stream(seed);
  auto values = tensor.as<float>();
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(stream.uniform(i) - 0.5) * 0.1F;
  return tensor;
}

}  // namespace argosy
