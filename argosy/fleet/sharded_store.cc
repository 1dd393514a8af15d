#include "argosy/fleet/sharded_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "argosy/base/error.h"
#include "argosy/fleet/rank_bytes.h"

namespace argosy {
namespace {

std::string ending(uint64_t generation, int rank, int ranks) {
  return fmt::format("{}.{}-of-{}.rows", generation, rank, ranks);
}

/// What follows the first word.
std::string rest_of(std::istringstream& line) {
  std::string rest;
  std::getline(line >> std::ws, rest);
  return rest;
}

struct Row {
  Key key;
  const float* values;
};

TableRows in_order(std::vector<Row> rows, int64_t dim) {
  std::ranges::sort(rows, {}, &Row::key);
  TableRows result{.keys = {},
                   .rows = Tensor({static_cast<int64_t>(rows.size()), dim}, DType::f32)};
  float* to = result.rows.as<float>().data();
  for (const Row& row : rows) {
    result.keys.push_back(row.key);
    to = std::copy_n(row.values, dim, to);
  }
  return result;
}

}  // namespace

/// Tells the others what to do with the first rank now.
void ShardedStore::order(const std::string& text, std::string_view what) {
  if (group_.size() == 1) return;
  check<ConfigError>(is_alone_ && is_first(), what, ": the rows are on all ", group_.size(),
                     " ranks (embedding_mode: sharded), and rank ", group_.rank(),
                     " asks for them by itself; expected a call that every rank makes, such as ",
                     "fleet.save_persistables");
  bytes_of_first(group_, std::as_bytes(std::span(text)));
}

void ShardedStore::end_alone() {
  order("done", "end_alone");
  is_alone_ = false;
}

void ShardedStore::help(Env& env) {
  for (;;) {
    const std::vector<std::byte> bytes = bytes_of_first(group_, {});
    std::istringstream text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    std::string line, verb;
    std::getline(text, line);
    std::istringstream words(line);
    words >> verb;
    if (verb == "done") return;
    if (verb == "infer") rows_.infer_nothing();
    if (verb == "rows") send_rows(rest_of(words));
    if (verb == "save") {
      uint64_t generation = 0;
      words >> generation;
      save_part(env, rest_of(words), generation);
    }
    if (verb == "load") {
      std::vector<SavedTable> tables;
      for (SavedTable table; text >> table.table >> table.file;) tables.push_back(table);
      load_part(env, rest_of(words), tables);
    }
    if (verb == "shrink") {
      uint32_t unseen = 0;
      words >> unseen;
      shrink_part(unseen);
    }
  }
}

void ShardedStore::save_part(Env& env, const std::string& folder, uint64_t generation) {
  env.make_directories(folder);
  own_.save_tables(env, folder, ending(generation, group_.rank(), group_.size()));
  group_.barrier();  // all files are there
}

SavedTables ShardedStore::save(Env& env, const std::string& folder, uint64_t generation) {
  order(fmt::format("save {} {}", generation, folder), "save");
  save_part(env, folder, generation);
  SavedTables saved;
  for (const std::string& name : own_.sparse_tables())
    for (int rank = 0; rank < group_.size(); ++rank)
      saved.files.push_back({name, name + "." + ending(generation, rank, group_.size())});
  return saved;
}

void ShardedStore::load_part(Env& env, const std::string& folder,
                             std::span<const SavedTable> tables) {
  own_.load_tables(env, folder, tables, [&](Key key) { return rows_.owns(key); });
  group_.barrier();
}

void ShardedStore::load(Env& env, const std::string& folder, std::span<const SavedTable> tables) {
  std::string text = "load " + folder + "\n";
  for (const SavedTable& table : tables) text += fmt::format("{} {}\n", table.table, table.file);
  order(text, "load");
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
  order("rows " + table, "rows");
  const TableRows own = own_.rows(table);
  const int64_t dim = own.rows.shape()[1];
  std::vector<std::vector<int64_t>> keys(static_cast<size_t>(group_.size()));
  std::vector<std::vector<float>> values(keys.size());
  std::vector<Row> all;
  for (size_t i = 0; i < own.keys.size(); ++i)
    all.push_back({own.keys[i], own.rows.as<float>().data() + i * static_cast<size_t>(dim)});
  for (int rank = 1; rank < group_.size(); ++rank) {
    const auto at = static_cast<size_t>(rank);
    std::array<int64_t, 1> count = {};
    group_.receive(std::span<int64_t>(count), rank);
    if (count[0] == 0) continue;
    keys[at].resize(static_cast<size_t>(count[0]));
    values[at].resize(static_cast<size_t>(count[0] * dim));
    group_.receive(std::span(keys[at]), rank);
    group_.receive(std::span(values[at]), rank);
    for (size_t i = 0; i < keys[at].size(); ++i)
      all.push_back(
          {static_cast<Key>(keys[at][i]), values[at].data() + i * static_cast<size_t>(dim)});
  }
  return in_order(std::move(all), dim);
}

size_t ShardedStore::shrink_part(uint32_t unseen) {
  std::array<int64_t, 1> erased = {static_cast<int64_t>(own_.shrink(unseen))};
  group_.all_reduce(std::span<int64_t>(erased));
  return static_cast<size_t>(erased[0]);
}

size_t ShardedStore::shrink(uint32_t unseen) {
  order(fmt::format("shrink {}", unseen), "shrink");
  return shrink_part(unseen);
}

void ShardedStore::infer(Batch& batch) {
  if (is_alone_) order("infer", "infer");
  rows_.infer(batch);
}

void ShardedStore::end_inference() {
  while (!is_alone_ && rows_.infer_nothing()) continue;
}

}  // namespace argosy
