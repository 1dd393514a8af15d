#include "argosy/watch/activity.h"

#include <algorithm>
#include <array>

namespace argosy {
namespace {

struct Words {
  std::string_view word, phrase;
  bool needs_nobody;
};

/// In the order of Doing.
constexpr std::array kWords = {
    Words{"starting", "starts", true},       Words{"generating", "generates data", true},
    Words{"reading", "reads data", true},    Words{"fetching", "fetches parameters", false},
    Words{"computing", "computes", true},    Words{"sending", "sends gradients", false},
    Words{"evaluating", "evaluates", false}, Words{"saving", "saves", false},
    Words{"loading", "loads", false},        Words{"meeting", "meets the other workers", false},
    Words{"serving", "serves", false},       Words{"ending", "leaves the job", false},
};

const Words& words(Doing doing) { return kWords[static_cast<size_t>(doing)]; }

}  // namespace

std::string_view word(Doing doing) { return words(doing).word; }
std::string_view phrase(Doing doing) { return words(doing).phrase; }
bool needs_nobody(Doing doing) { return words(doing).needs_nobody; }

std::optional<Doing> doing_of(std::string_view word) {
  const auto found = std::ranges::find(kWords, word, &Words::word);
  if (found == kWords.end()) return std::nullopt;
  return static_cast<Doing>(found - kWords.begin());
}

std::string Activity::note() const {
  const Lock lock(mutex_);
  return note_;
}

Activity::View Activity::view() const {
  const uint64_t state = state_.load(std::memory_order_relaxed);
  return {.doing = static_cast<Doing>(state & ((1 << kBits) - 1)),
          .since = Env::Time(Env::Duration(static_cast<Env::Duration::rep>(state >> kBits))),
          .epoch = epoch_.load(std::memory_order_relaxed),
          .step = step_.load(std::memory_order_relaxed),
          .samples = samples_.load(std::memory_order_relaxed),
          .note = note()};
}

}  // namespace argosy
