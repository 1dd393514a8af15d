#include "argosy/fleet/local_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/base/file_sink.h"

namespace argosy {

LocalStore::LocalStore(const Plan& plan, const WorkerStates& states)
    : plan_(plan), states_(states) {
  for (const TableSpec& spec : plan.tables) {
    dense_.emplace_back();
    sparse_.emplace_back();
    parameters_.emplace_back();
    if (spec.elements == 0) {
      sparse_.back() = std::make_unique<SparseTable>(spec);
      continue;
    }
    dense_.back() = std::make_unique<DenseTable>(spec);
    const VarDesc& desc = plan.worker.var(plan.worker.find(spec.name));
    parameters_.back() = Tensor::wrap(dense_.back()->weights().data(), desc.type.shape, DType::f32);
  }
}

std::vector<NamedTensor> LocalStore::persistables() {
  std::vector<NamedTensor> all;
  for (size_t i = 0; i < dense_.size(); ++i)
    if (dense_[i] != nullptr) all.push_back({plan_.tables[i].name, parameters_[i]});
  for (NamedTensor& state : states_.tensors()) all.push_back(std::move(state));
  for (size_t i = 0; i < dense_.size(); ++i) {
    if (dense_[i] == nullptr || dense_[i]->state().empty()) continue;
    const std::span<float> state = dense_[i]->state();
    all.push_back({plan_.tables[i].name + "@state",
                   Tensor::wrap(state.data(), {static_cast<int64_t>(state.size())}, DType::f32)});
  }
  static_assert(sizeof(step) == sizeof(int64_t));
  all.push_back({"@step", Tensor::wrap(&step, {1}, DType::i64)});
  return all;
}

std::vector<std::string> LocalStore::sparse_tables() const {
  std::vector<std::string> names;
  for (const auto& table : sparse_)
    if (table != nullptr) names.push_back(table->spec().name);
  return names;
}

SavedTables LocalStore::save(Env& env, const std::string& folder, uint64_t generation) {
  return {.files = save_tables(env, folder, fmt::format("{}.rows", generation)), .marks = {}};
}

std::vector<SavedTable> LocalStore::save_tables(Env& env, const std::string& folder,
                                                const std::string& ending) {
  std::vector<SavedTable> files;
  for (const auto& table : sparse_) {
    if (table == nullptr) continue;
    const std::string& name = table->spec().name;
    files.push_back({name, fmt::format("{}.{}", name, ending)});
    FileSink file(env, folder + "/" + files.back().file);
    table->save(file);
    file.finish();
  }
  return files;
}

void LocalStore::load(Env& env, const std::string& folder, std::span<const SavedTable> tables) {
  load_tables(env, folder, tables, [](Key) { return true; });
}

void LocalStore::load_tables(Env& env, const std::string& folder,
                             std::span<const SavedTable> tables, FunctionRef<bool(Key)> keep) {
  ++loads_;
  for (const auto& table : sparse_) {
    if (table == nullptr) continue;
    auto next = tables.begin();
    table->load_parts(
        [&](SparseTable::TakePart take) {
          next = std::ranges::find(next, tables.end(), table->spec().name, &SavedTable::table);
          if (next == tables.end()) return false;
          const std::string path = folder + "/" + next++->file;
          const std::vector<std::byte> content = env.read_file(path);
          ByteSource part(content, path);
          take(part);
          check<DataError>(part.left() == 0, path, ": ", part.left(), " bytes too many");
          return true;
        },
        keep);
  }
}

TableRows LocalStore::rows(const std::string& name) {
  const auto table = std::ranges::find_if(
      sparse_, [&](const auto& t) { return t != nullptr && t->spec().name == name; });
  check<ConfigError>(table != sparse_.end(), "no table '", name, "'");
  TableRows all{.keys = (*table)->keys(), .rows = {}};
  all.rows =
      Tensor({static_cast<int64_t>(all.keys.size()), static_cast<int64_t>((*table)->spec().dim)});
  (*table)->pull_existing(all.keys, all.rows.as<float>());
  return all;
}

size_t LocalStore::shrink(uint32_t unseen) {
  size_t erased = 0;
  for (const auto& table : sparse_)
    if (table != nullptr && table->spec().track_unseen) erased += table->shrink(unseen);
  return erased;
}

}  // namespace argosy
