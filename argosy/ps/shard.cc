#include "argosy/ps/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "argosy/base/call.h"
#include "argosy/base/error.h"

namespace argosy::ps {
namespace {

constexpr size_t kPage = size_t{4} << 20;  // bytes of rows that travel in one frame, about

/// Deals out slices by size, the largest first, each to the part that has least.
std::vector<std::vector<size_t>> deal_out(const std::vector<std::unique_ptr<Parameter>>& slices,
                                          size_t parts) {
  std::vector<size_t> order(slices.size());
  std::iota(order.begin(), order.end(), 0);
  const auto size = [&](size_t slice) { return slices[slice]->spec().elements; };
  std::ranges::stable_sort(order, std::greater(), size);
  std::vector<std::vector<size_t>> own(parts);
  std::vector<size_t> load(parts);
  for (const size_t slice : order) {
    const auto least = static_cast<size_t>(std::ranges::min_element(load) - load.begin());
    own[least].push_back(slice);
    load[least] += size(slice);
  }
  return own;
}

}  // namespace

Shard::Shard(Placement placement, uint32_t index, size_t parts, const TableHome& home)
    : placement_(std::move(placement)), index_(index), shape_(placement_, index) {
  check<ConfigError>(index < placement_.servers, "server ", index, " but only ", placement_.servers,
                     " servers");
  check<ConfigError>(parts > 0, "a shard needs at least one part");
  size_t begin = 0;
  for (const ParameterSpec& spec : placement_.slices_of(index)) {
    parameters_.push_back(std::make_unique<Parameter>(spec));
    begins_.push_back(begin);
    begin += spec.elements;
  }
  own_ = deal_out(parameters_, parts);
  for (const TableSpec& spec : placement_.tables) tables_.push_back(make_row_table(spec, home));
}

RowTable& Shard::table(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& table : tables_) {
    if (table->spec().name == name) return *table;
    names.push_back(table->spec().name);
  }
  const std::string near = nearest(name, names);
  fail<DataError>("no table '", name, "'", near.empty() ? "" : "; did you mean " + near + "?");
}

void Shard::apply_parameters(size_t part, std::span<const float> grads, uint64_t step) {
  for (const size_t i : own_[part])
    parameters_[i]->apply(grads.subspan(begins_[i], parameters_[i]->spec().elements), step);
  if (changes_ != nullptr) changes_->parameters_changed();
}

void Shard::read_parameters(size_t part, std::span<float> weights) const {
  for (const size_t i : own_[part])
    parameters_[i]->read(weights.subspan(begins_[i], parameters_[i]->spec().elements));
}

std::vector<Shard::Range> Shard::parameter_ranges(size_t part) const {
  std::vector<Range> ranges;
  for (const size_t i : own_[part]) ranges.push_back({begins_[i], parameters_[i]->spec().elements});
  return ranges;
}

std::vector<float> Shard::parameters() const {
  std::vector<float> values;
  for (const auto& parameter : parameters_) {
    const size_t at = values.size(), weights = parameter->spec().elements;
    values.resize(at + weights + parameter->state_size());
    parameter->copy_out(std::span(values).subspan(at, weights),
                        std::span(values).subspan(at + weights));
  }
  return values;
}

void Shard::set_parameters(std::span<const float> values) {
  size_t expected = 0;
  for (const auto& parameter : parameters_)
    expected += parameter->spec().elements + parameter->state_size();
  check<DataError>(values.size() == expected, "parameters: ", values.size(), " floats, expected ",
                   expected);
  for (const auto& parameter : parameters_) {
    const size_t weights = parameter->spec().elements, state = parameter->state_size();
    parameter->copy_in(values.first(weights), values.subspan(weights, state));
    values = values.subspan(weights + state);
  }
  if (changes_ != nullptr) changes_->parameters_changed();
}

std::vector<SavedTable> Shard::save(Env& env, const std::string& folder, uint64_t generation) {
  env.make_directories(folder);
  std::vector<SavedTable> files;
  for (const auto& table : tables_) {
    std::string file = fmt::format("{}.{}.{}-of-{}.rows", table->spec().name, generation, index_,
                                   placement_.servers);
    files.push_back(save_table_file(env, folder, std::move(file), *table));
  }
  return files;
}

void Shard::load(Env& env, const std::string& folder, std::span<const SavedTable> files) {
  const auto mine = [&](Key key) { return placement_.server_of(key) == index_; };
  load_table_files(env, folder, files, tables_, mine);
  if (changes_ == nullptr) return;
  for (size_t number = 0; number < tables_.size(); ++number) changes_->replaced(number);
}

verbs::ReadRows::Result Shard::read_rows(const verbs::ReadRows& request) {
  RowTable& rows = table(request.table);
  const RowRecipe& recipe = rows.recipe();
  const size_t page = std::max<size_t>(1, kPage / (sizeof(Key) + recipe.dim() * sizeof(float)));
  RowImages::Cursor cursor{request.from.shard, request.from.row, request.from.at_end};
  verbs::ReadRows::Result result;
  rows.images().visit(Section::rows, cursor, page, [&](Key key, std::span<const float> image) {
    const auto weights = image.subspan(recipe.weights_at(), recipe.dim());
    result.keys.push_back(key);
    result.rows.insert(result.rows.end(), weights.begin(), weights.end());
  });
  result.next = {cursor.shard, cursor.row, cursor.at_end};
  return result;
}

size_t Shard::shrink(uint32_t unseen) {
  size_t erased = 0;
  for (const auto& table : tables_)
    if (table->recipe().tracks_unseen()) erased += table->shrink(unseen);
  if (changes_ != nullptr) changes_->shrunk(unseen);
  return erased;
}

size_t Shard::rows() const {
  size_t rows = 0;
  for (const auto& table : tables_) rows += table->size();
  return rows;
}

std::string Shard::stats() const {
  std::string out;
  for (const auto& parameter : parameters_) {
    const ParameterSpec& spec = parameter->spec();
    out += fmt::format("{} {}..{} of {}\n", spec.name, spec.first, spec.first + spec.elements,
                       spec.of);
  }
  for (const auto& table : tables_)
    out += fmt::format("{} {} rows\n", table->spec().name, table->size());
  return out;
}

}  // namespace argosy::ps
