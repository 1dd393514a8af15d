#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace argosy::benches {

/// Layers of the CTR model's tower.
inline constexpr std::array<int64_t, 6> kTowerSizes{247, 512, 256, 128, 32, 1};

/// The limit that training a CTR tower is measured against: the fifteen matrix products of its five
/// layers (forward and both gradients) in plain oneDNN on one thread, one loop for each.
class GemmLimit {
 public:
  explicit GemmLimit(int64_t batch);
  ~GemmLimit();
  double examples_per_second();  // measures for some hundred milliseconds

 private:
  class Product;
  int64_t batch_;
  std::vector<std::unique_ptr<Product>> products_;
};

}  // namespace argosy::benches
