#include "argosy/modes/ranks/sharded_store.h"

#include <fmt/format.h>

#include <array>

#include "argosy/base/error.h"
#include "argosy/modes/ranks/rank_bytes.h"

namespace argosy {
namespace {

std::string ending(uint64_t generation, int rank, int ranks) {
  return fmt::format("{}.{}-of-{}.rows", generation, rank, ranks);
}

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace

/// Tells the others what to do with the first rank now.
void ShardedStore::order(const Order& order, std::string_view what) {
  if (group_.size() == 1) return;
  check<ConfigError>(is_alone_ && is_first(), what, ": the rows are on all ", group_.size(),
                     " ranks (embedding_mode: sharded), and rank ", group_.rank(),
                     " asks for them by itself; expected a call that every rank makes, such as ",
                     "fleet.save_persistables");
  bytes_of_first(group_, ps::encode_variant(order));
}

void ShardedStore::end_alone() {
  order(EndAlone{}, "end_alone");
  is_alone_ = false;
}

void ShardedStore::help(Env& env) {
  for (bool more = true; more;) {
    const std::vector<std::byte> bytes = bytes_of_first(group_, {});
    const auto ordered = ps::decode_variant<Order>(bytes, "an order of rank 0");
    std::visit(Overloaded{[&](const EndAlone&) { more = false; },
                          [&](const Infer&) { rows_.infer_nothing(); },
                          [&](const ps::verbs::ReadRows& o) { send_rows(o.table); },
                          [&](const ps::verbs::Save& o) { save_part(env, o.folder, o.generation); },
                          [&](const ps::verbs::Load& o) { load_part(env, o.folder, o.files); },
                          [&](const ps::verbs::Shrink& o) { shrink_part(o.unseen); }},
               ordered);
  }
}

std::vector<ps::SavedTable> ShardedStore::save_part(Env& env, const std::string& folder,
                                                    uint64_t generation) {
  env.make_directories(folder);
  const std::vector<ps::SavedTable> own =
      own_.save_tables(env, folder, ending(generation, group_.rank(), group_.size()));
  std::vector<int64_t> sums;  // of this rank's files
  for (const auto& [table, file, sum] : own)
    for (const uint64_t number : {sum.rows, sum.bytes, sum.sum})
      sums.push_back(static_cast<int64_t>(number));
  std::vector<int64_t> all(sums.size() * static_cast<size_t>(group_.size()));
  group_.barrier();  // all files are written
  if (!sums.empty()) group_.all_gather(std::span<const int64_t>(sums), std::span(all));
  std::vector<ps::SavedTable> files;
  for (size_t i = 0; i < own.size(); ++i)
    for (int rank = 0; rank < group_.size(); ++rank) {
      const int64_t* const sum = all.data() + static_cast<size_t>(rank) * sums.size() + 3 * i;
      files.push_back({own[i].table,
                       own[i].table + "." + ending(generation, rank, group_.size()),
                       {static_cast<uint64_t>(sum[0]), static_cast<uint64_t>(sum[1]),
                        static_cast<uint64_t>(sum[2])}});
    }
  return files;
}

SavedTables ShardedStore::save(Env& env, const std::string& folder, uint64_t generation) {
  order(ps::verbs::Save{generation, folder}, "save");
  return {.files = save_part(env, folder, generation), .marks = {}};
}

void ShardedStore::load_part(Env& env, const std::string& folder,
                             std::span<const ps::SavedTable> tables) {
  own_.load_tables(env, folder, tables, [&](Key key) { return rows_.owns(key); });
  group_.barrier();
}

void ShardedStore::load(Env& env, const std::string& folder,
                        std::span<const ps::SavedTable> tables) {
  order(ps::verbs::Load{folder, {tables.begin(), tables.end()}}, "load");
  load_part(env, folder, tables);
}

void ShardedStore::send_rows(const std::string& table) {
  const TableRows own = own_.rows(table);
  const std::array<int64_t, 1> count = {static_cast<int64_t>(own.keys.size())};
  group_.send(std::span<const int64_t>(count), 0);
  if (own.keys.empty()) return;
  // A key is the same bits, signed or not.
  const auto* const keys = reinterpret_cast<const int64_t*>(own.keys.data());
  group_.send(std::span(keys, own.keys.size()), 0);
  group_.send(std::span<const float>(own.rows.as<float>()), 0);
}

TableRows ShardedStore::rows(const std::string& table) {
  order(ps::verbs::ReadRows{.table = table, .from = {}}, "rows");
  const TableRows own = own_.rows(table);
  const int64_t dim = own.rows.shape()[1];
  RowsByKey all(static_cast<size_t>(dim));
  const std::span<const float> values = own.rows.as<float>();
  all.add(own.keys, {values.begin(), values.end()});
  for (int rank = 1; rank < group_.size(); ++rank) {
    std::array<int64_t, 1> count = {};
    group_.receive(std::span<int64_t>(count), rank);
    if (count[0] == 0) continue;
    std::vector<int64_t> keys(static_cast<size_t>(count[0]));
    std::vector<float> rows(static_cast<size_t>(count[0] * dim));
    group_.receive(std::span(keys), rank);
    group_.receive(std::span(rows), rank);
    all.add({reinterpret_cast<const Key*>(keys.data()), keys.size()}, std::move(rows));
  }
  return all.take();
}

size_t ShardedStore::shrink_part(uint32_t unseen) {
  std::array<int64_t, 1> erased = {static_cast<int64_t>(own_.shrink(unseen))};
  group_.all_reduce(std::span<int64_t>(erased));
  return static_cast<size_t>(erased[0]);
}

size_t ShardedStore::shrink(uint32_t unseen) {
  order(ps::verbs::Shrink{unseen}, "shrink");
  return shrink_part(unseen);
}

void ShardedStore::infer(Batch& batch) {
  if (is_alone_) order(Infer{}, "infer");
  rows_.infer(batch);
}

void ShardedStore::end_inference() {
  while (!is_alone_ && rows_.infer_nothing()) continue;
}

}  // namespace argosy
