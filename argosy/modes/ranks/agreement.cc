#include "argosy/modes/ranks/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "argosy/base/bytes.h"
#include "argosy/base/error.h"
#include "argosy/base/hash.h"
#include "argosy/graph/sum_over_ranks.h"
#include "argosy/modes/ranks/rank_bytes.h"
#include "argosy/ps/table_file.h"

namespace argosy {
namespace {

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The first line that is not the same, with its number.
struct Difference {
  int line;
  std::string a, b;
};

Difference first_difference(const std::string& a, const std::string& b) {
  constexpr const char* kEnd = "nothing";
  std::istringstream lines_a(a), lines_b(b);
  for (int line = 1;; ++line) {
    std::string x, y;
    const bool more_a = static_cast<bool>(std::getline(lines_a, x));
    const bool more_b = static_cast<bool>(std::getline(lines_b, y));
    if (!more_a && !more_b) return {line, kEnd, kEnd};
    if (x != y || more_a != more_b) return {line, more_a ? x : kEnd, more_b ? y : kEnd};
  }
}

class HashSink final : public ByteSink {
 public:
  void write(std::span<const std::byte> bytes) override { hash_.add(bytes); }
  uint64_t digest() const { return hash_.digest(); }

 private:
  RunningHash hash_;
};

/// "ranks 0, 2 have 1f and rank 1 has 2e".
std::string who_has_what(std::span<const int64_t> hashes) {
  std::map<int64_t, std::vector<size_t>> ranks;
  for (size_t rank = 0; rank < hashes.size(); ++rank) ranks[hashes[rank]].push_back(rank);
  std::vector<std::string> parts;
  parts.reserve(ranks.size());
  for (const auto& [hash, who] : ranks)
    parts.push_back(fmt::format("rank{} {} {} {:x}", who.size() == 1 ? "" : "s",
                                fmt::join(who, ", "), who.size() == 1 ? "has" : "have",
                                static_cast<uint64_t>(hash)));
  return fmt::format("{}", fmt::join(parts, " and "));
}

uint64_t all_rows(ps::RowTable& table) {
  HashSink hash;
  save_table(table, hash);
  return hash.digest();
}

/// The first one of those that have most.
int rank_with_most(comm::Group& group, uint64_t own) {
  const std::array<int64_t, 1> mine = {static_cast<int64_t>(own)};
  std::vector<int64_t> all(static_cast<size_t>(group.size()));
  group.all_gather(std::span<const int64_t>(mine), std::span(all));
  return static_cast<int>(std::ranges::max_element(all) - all.begin());
}

/// All tables' rows as bytes, table after table.
void save_rows(LocalStore& store, ByteSink& out) {
  for (size_t i = 0; i < store.tables(); ++i) save_table(store.table(i), out);
}

void load_rows(LocalStore& store, std::span<const std::byte> bytes) {
  ByteSource in(bytes, "the rows of rank 0");
  for (size_t i = 0; i < store.tables(); ++i) load_table(store.table(i), in);
}

}  // namespace

void check_same_text(comm::Group& group, const std::string& text) {
  const auto texts = gather_bytes(group, "compare programs", std::as_bytes(std::span(text)));
  const std::string first = text_of(texts[0]);
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    const std::string other = text_of(texts[rank]);
    if (other == first) continue;
    const Difference found = first_difference(first, other);
    fail<ConfigError>("ranks 0 and ", rank, " do not train the same: line ", found.line, " is '",
                      found.a, "' on rank 0 and '", found.b, "' on rank ", rank);
  }
}

void take_from_first(comm::Group& group, LocalStore& store, bool rows) {
  for (NamedTensor& tensor : store.persistables()) {
    if (tensor.value.dtype() == DType::f32)
      group.broadcast(tensor.value.as<float>(), 0);
    else
      group.broadcast(tensor.value.as<int64_t>(), 0);
  }
  ByteBuffer saved;
  if (rows && group.rank() == 0) save_rows(store, saved);
  const std::vector<std::byte> bytes = bytes_of_first(group, saved.bytes());
  if (!bytes.empty() && group.rank() != 0) load_rows(store, bytes);
}

void average_states(comm::Group& group, const Plan& plan, LocalStore& store, uint64_t batches) {
  const int busiest = rank_with_most(group, batches);
  for (NamedTensor& state : store.states().tensors()) {
    const auto edge = std::ranges::find_if(plan.edges, [&](const Edge& each) {
      return each.kind == VarKind::state && plan.states[each.target].name == state.name;
    });
    if (edge == plan.edges.end()) continue;
    if (is_from_rank_sum(plan.worker, edge->value))
      group.broadcast(state.value.as<float>(), busiest);
    else
      group.all_reduce(state.value.as<float>(), comm::Reduce::avg);
  }
}

void check_same_values(comm::Group& group, const Plan& plan, LocalStore& store,
                       std::span<DirtyRows> dirty, Compared compared) {
  std::vector<std::string> names;
  std::vector<int64_t> own;
  for (const NamedTensor& tensor : store.persistables()) {
    const bool is_state =
        std::ranges::find(plan.states, tensor.name, &VarDesc::name) != plan.states.end();
    if (is_state && compared == Compared::recent) continue;
    names.push_back(tensor.name);
    own.push_back(static_cast<int64_t>(
        hash64(std::span<const std::byte>(tensor.value.data(), tensor.value.bytes()))));
  }
  for (size_t i = 0; i < dirty.size(); ++i) {
    ps::RowTable& table = store.table(i);
    const uint64_t recent = dirty[i].take_hash(table);
    names.push_back(table.spec().name);
    own.push_back(static_cast<int64_t>(compared == Compared::all ? all_rows(table) : recent));
  }
  const auto ranks = static_cast<size_t>(group.size());
  std::vector<int64_t> all(own.size() * ranks), hashes(ranks);
  group.all_gather(std::span<const int64_t>(own), std::span(all));
  for (size_t i = 0; i < own.size(); ++i) {
    for (size_t rank = 0; rank < ranks; ++rank) hashes[rank] = all[rank * own.size() + i];
    check<DataError>(std::ranges::count(hashes, hashes[0]) == group.size(), "'", names[i],
                     "' is not the same on all ranks after step ", store.step.load(), ": ",
                     who_has_what(hashes));
  }
}

}  // namespace argosy
