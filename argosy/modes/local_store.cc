#include "argosy/modes/local_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/error.h"

namespace argosy {

LocalStore::LocalStore(const Plan& plan, const WorkerStates& states, const ps::TableHome& home)
    : states_(states) {
  for (const ps::ParameterSpec& spec : plan.parameters) {
    float* const weights = parameters_.emplace_back(spec).weights().data();
    const VarDesc& desc = plan.worker.var(plan.worker.find(spec.name));
    tensors_.push_back(Tensor::wrap(weights, desc.type.shape, DType::f32));
  }
  for (const ps::TableSpec& spec : plan.tables) tables_.push_back(make_row_table(spec, home));
}

std::vector<NamedTensor> LocalStore::persistables() {
  std::vector<NamedTensor> all;
  for (size_t i = 0; i < parameters_.size(); ++i)
    all.push_back({parameters_[i].spec().name, tensors_[i]});
  for (NamedTensor& state : states_.tensors()) all.push_back(std::move(state));
  for (ps::Parameter& parameter : parameters_) {
    const std::span<float> state = parameter.state();
    if (state.empty()) continue;
    all.push_back({parameter.spec().name + "@state",
                   Tensor::wrap(state.data(), {static_cast<int64_t>(state.size())}, DType::f32)});
  }
  static_assert(sizeof(step) == sizeof(int64_t));
  all.push_back({"@step", Tensor::wrap(&step, {1}, DType::i64)});
  return all;
}

std::vector<std::string> LocalStore::sparse_tables() const {
  std::vector<std::string> names;
  for (const auto& table : tables_) names.push_back(table->spec().name);
  return names;
}

SavedTables LocalStore::save(Env& env, const std::string& folder, uint64_t generation) {
  return {.files = save_tables(env, folder, fmt::format("{}.rows", generation)), .marks = {}};
}

std::vector<ps::SavedTable> LocalStore::save_tables(Env& env, const std::string& folder,
                                                    const std::string& ending) {
  std::vector<ps::SavedTable> files;
  for (const auto& table : tables_)
    files.push_back(
        save_table_file(env, folder, fmt::format("{}.{}", table->spec().name, ending), *table));
  return files;
}

void LocalStore::load(Env& env, const std::string& folder, std::span<const ps::SavedTable> tables) {
  load_tables(env, folder, tables, [](Key) { return true; });
}

void LocalStore::load_tables(Env& env, const std::string& folder,
                             std::span<const ps::SavedTable> tables, FunctionRef<bool(Key)> keep) {
  ++loads_;
  load_table_files(env, folder, tables, tables_, keep);
}

TableRows LocalStore::rows(const std::string& name) {
  const auto found =
      std::ranges::find_if(tables_, [&](const auto& table) { return table->spec().name == name; });
  check<ConfigError>(found != tables_.end(), "no table '", name, "'");
  ps::RowTable& table = **found;
  TableRows all{.keys = table.images().keys(ps::Section::rows), .rows = {}};
  all.rows =
      Tensor({static_cast<int64_t>(all.keys.size()), static_cast<int64_t>(table.spec().dim)});
  ps::Ticket ticket;
  read_rows(table, all.keys, ps::Purpose::inference, all.rows.as<float>(), ticket);
  return all;
}

size_t LocalStore::shrink(uint32_t unseen) {
  size_t erased = 0;
  for (const auto& table : tables_)
    if (table->recipe().tracks_unseen()) erased += table->shrink(unseen);
  return erased;
}

}  // namespace argosy
