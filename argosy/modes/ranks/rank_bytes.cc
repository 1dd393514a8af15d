#include "argosy/modes/ranks/rank_bytes.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "argosy/base/hash.h"

namespace argosy {
namespace {

/// Groups send numbers; the last one may be filled up.
std::vector<int32_t> as_numbers(std::span<const std::byte> bytes, size_t numbers) {
  std::vector<int32_t> result(numbers);
  if (!bytes.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

size_t numbers_for(size_t bytes) { return (bytes + sizeof(int32_t) - 1) / sizeof(int32_t); }

}  // namespace

std::vector<std::vector<std::byte>> gather_bytes(comm::Group& group, std::string_view name,
                                                 std::span<const std::byte> mine) {
  const auto ranks = static_cast<size_t>(group.size());
  const std::array<int64_t, 2> own = {static_cast<int64_t>(mine.size()),
                                      static_cast<int64_t>(hash64(name))};
  std::vector<int64_t> heads(ranks * own.size());
  group.all_gather(std::span<const int64_t>(own), std::span(heads));
  size_t most = 0;
  for (size_t rank = 0; rank < ranks; ++rank) {
    check<ConfigError>(heads[rank * 2 + 1] == own[1], "rank ", group.rank(), " is at '", name,
                       "' and rank ", rank, " at something else: ranks make the same calls in ",
                       "the same order");
    most = std::max(most, static_cast<size_t>(heads[rank * 2]));
  }
  const size_t each = numbers_for(most);
  const std::vector<int32_t> padded = as_numbers(mine, each);
  std::vector<int32_t> all(each * ranks);
  if (each > 0) group.all_gather(std::span<const int32_t>(padded), std::span(all));
  std::vector<std::vector<std::byte>> result;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const auto part = std::as_bytes(std::span(all).subspan(rank * each, each));
    result.emplace_back(part.begin(), part.begin() + heads[rank * 2]);
  }
  return result;
}

std::vector<std::byte> bytes_of_first(comm::Group& group, std::span<const std::byte> mine) {
  std::array<int64_t, 1> size = {static_cast<int64_t>(mine.size())};
  group.broadcast(std::span<int64_t>(size), 0);
  const auto bytes = static_cast<size_t>(size[0]);
  std::vector<int32_t> numbers =
      as_numbers(group.rank() == 0 ? mine : std::span<const std::byte>(), numbers_for(bytes));
  if (bytes > 0) group.broadcast(std::span(numbers), 0);
  const auto all = std::as_bytes(std::span(numbers)).first(bytes);
  return {all.begin(), all.end()};
}

}  // namespace argosy
