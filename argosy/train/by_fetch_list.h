#pragma once

#include <algorithm>
#include <list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "argosy/graph/program.h"

namespace argosy {

/// Cache of objects by fetch list, bounded to the most recent lists, so that a program that keeps
/// making new ones does not grow. Thread safety: none.
template <class T>
class ByFetchList {
 public:
  static constexpr size_t kMost = 16;

  /// make() returns a unique_ptr. The result is valid until kMost other lists have been asked for.
  template <class Make>
  T& get(std::span<const VarId> fetch, const Make& make) {
    const auto found = std::ranges::find_if(
        latest_, [&](const Entry& entry) { return std::ranges::equal(entry.fetch, fetch); });
    if (found != latest_.end()) {
      latest_.splice(latest_.begin(), latest_, found);
      return *latest_.front().made;
    }
    latest_.push_front({{fetch.begin(), fetch.end()}, make()});
    if (latest_.size() > kMost) latest_.pop_back();
    return *latest_.front().made;
  }

 private:
  struct Entry {
    std::vector<VarId> fetch;
    std::unique_ptr<T> made;
  };
  std::list<Entry> latest_;  // the last one first
};

}  // namespace argosy
