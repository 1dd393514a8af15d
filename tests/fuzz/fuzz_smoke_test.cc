// Every fuzz target on its seeds and on mutations of them, the same ones in every run. `make fuzz`
// looks much longer, and with a fuzzer that sees which branches it reaches.
#include <gtest/gtest.h>

#include "argosy/base/rng.h"
#include "targets.h"

namespace argosy::fuzz {
namespace {

/// Changes, cuts, repeats or inserts some bytes.
std::string mutated(std::string text, const RandomStream& random, uint64_t at) {
  const uint64_t changes = 1 + random.below(at, 4);
  for (uint64_t i = 0; i < changes; ++i) {
    const uint64_t draw = at + 1 + 4 * i;
    const size_t place = text.empty() ? 0 : random.below(draw, text.size());
    const char byte = static_cast<char>(random.below(draw + 1, 256));
    switch (random.below(draw + 2, 5)) {
      case 0:
        if (!text.empty()) text[place] = byte;
        break;
      case 1:
        text.resize(place);
        break;
      case 2:
        text.insert(place, 1, byte);
        break;
      case 3:
        text.insert(place, text.substr(place, random.below(draw + 3, 40)));
        break;
      default:
        text.erase(place, random.below(draw + 3, 20));
    }
  }
  return text;
}

TEST(FuzzSmoke, EveryTargetSurvivesItsSeedsAndTheirMutations) {
  constexpr uint64_t kMutations = 3000;
  for (const auto& [name, target] : all_targets()) {
    SCOPED_TRACE(name);
    ASSERT_FALSE(target.seeds.empty());
    target.run({});
    const RandomStream random(17);
    for (const std::string& seed : target.seeds) {
      target.run(std::as_bytes(std::span(seed)));
      for (uint64_t i = 0; i < kMutations; ++i) {
        const std::string input = mutated(seed, random, i * 32);
        target.run(std::as_bytes(std::span(input)));
      }
    }
  }
}

}  // namespace
}  // namespace argosy::fuzz
