#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "argosy/base/error.h"
#include "argosy/ckpt/checkpoint_files.h"
#include "argosy/ckpt/ckpt.h"

namespace argosy {
namespace {

constexpr size_t kFirstValues = 6;

/// Of values that arrive piece by piece.
struct Tally {
  double squares = 0, sum = 0;
  double least = std::numeric_limits<double>::infinity(), most = -least;
  uint64_t count = 0;

  void add(double value) {
    squares += value * value;
    sum += value;
    least = std::min(least, value);
    most = std::max(most, value);
    ++count;
  }
  std::string text() const {
    if (count == 0) return "no values";
    return fmt::format("norm {:.6g}, mean {:.6g}, from {:.6g} to {:.6g}", std::sqrt(squares),
                       sum / static_cast<double>(count), least, most);
  }
};

std::string values_text(std::span<const float> values, size_t at_most) {
  const size_t n = std::min(values.size(), at_most);
  return fmt::format("{}{}", fmt::join(values.first(n), " "), n < values.size() ? " ..." : "");
}

template <class T>
std::string numbers(std::span<const T> values, size_t at_most) {
  Tally tally;
  for (const T value : values) tally.add(static_cast<double>(value));
  const size_t n = std::min(values.size(), at_most);
  return fmt::format("{}; {}{}", tally.text(), fmt::join(values.first(n), " "),
                     n < values.size() ? " ..." : "");
}

std::string content(const Tensor& value, size_t at_most) {
  switch (value.dtype()) {
    case DType::f32:
      return numbers(value.as<float>(), at_most);
    case DType::f64:
      return numbers(value.as<double>(), at_most);
    case DType::i32:
      return numbers(value.as<int32_t>(), at_most);
    case DType::i64:
      return numbers(value.as<int64_t>(), at_most);
    default:
      return fmt::format("{} bytes", value.bytes());
  }
}

void print_tensor(const NamedTensor& tensor, size_t at_most, std::FILE* out) {
  fmt::print(out, "{} {}[{}]: {}\n", tensor.name, name(tensor.value.dtype()),
             fmt::join(tensor.value.shape().dims(), ","), content(tensor.value, at_most));
}

void print_row(const TableMerge::Row& row, const std::vector<ImageColumn>& columns, size_t at_most,
               std::FILE* out) {
  fmt::print(out, "  {}:", row.key);
  for (const auto& [name, first, size] : columns)
    fmt::print(out, " {} {}", name, values_text(row.image.subspan(first, size), at_most));
  fmt::print(out, "\n");
}

void print_rows(Env& env, const CheckpointFiles& files, const std::string& table,
                const std::vector<Key>& keys, std::FILE* out) {
  TableMerge merge(env, files.dir, files.files_of(table));
  const std::vector<ImageColumn> columns = columns_of(merge.layout());
  std::set<Key> left(keys.begin(), keys.end());
  fmt::print(out, "table {}\n", table);
  while (!left.empty()) {
    const auto row = merge.next();
    if (!row || row->section != ps::Section::rows) break;
    if (left.erase(row->key) > 0) print_row(*row, columns, row->image.size(), out);
  }
  for (const Key key : left) fmt::print(out, "  {}: has no row\n", key);
}

void print_table(Env& env, const CheckpointFiles& files, const std::string& table,
                 size_t rows_shown, std::FILE* out) {
  TableMerge merge(env, files.dir, files.files_of(table));
  const ps::TableLayout& layout = merge.layout();
  const std::vector<ImageColumn> columns = columns_of(layout);
  fmt::print(out, "table {}: {} files, rows of {} weights and {} of state{}{}\n", table,
             files.files_of(table).size(), layout.dim, layout.state_floats(),
             layout.scores ? ", with scores" : "", layout.unseen ? ", with unseen counts" : "");
  std::vector<Tally> tallies(columns.size());
  uint64_t rows = 0, counted = 0;
  while (const auto row = merge.next()) {
    if (row->section != ps::Section::rows) {
      ++counted;
      continue;
    }
    if (++rows <= rows_shown) print_row(*row, columns, kFirstValues, out);
    for (size_t i = 0; i < columns.size(); ++i)
      for (const float value : row->image.subspan(columns[i].first, columns[i].size))
        tallies[i].add(value);
  }
  fmt::print(out, "  {} rows", rows);
  if (layout.counted_floats > 0) fmt::print(out, ", {} keys that wait for one", counted);
  for (size_t i = 0; i < columns.size() && rows > 0; ++i)
    fmt::print(out, "\n  {}: {}", columns[i].name, tallies[i].text());
  fmt::print(out, "\n");
}

}  // namespace

void inspect_checkpoint(Env& env, const std::string& dir, const InspectOptions& options,
                        std::FILE* out) {
  const CheckpointFiles files = open_checkpoint(env, dir);
  constexpr size_t kFirstRows = 3, kManyValues = 64;
  if (!options.keys.empty()) {
    const std::vector<std::string> tables = files.tables();
    check<ConfigError>(!options.table.empty() || tables.size() == 1, dir, ": has ", tables.size(),
                       " tables, say with --table which one has the keys");
    return print_rows(env, files, options.table.empty() ? tables[0] : options.table, options.keys,
                      out);
  }
  if (!options.table.empty()) print_table(env, files, options.table, kFirstRows, out);
  if (!options.parameter.empty()) print_tensor(files.tensor(options.parameter), kManyValues, out);
  if (!options.table.empty() || !options.parameter.empty()) return;
  for (const NamedTensor& tensor : files.tensors) print_tensor(tensor, kFirstValues, out);
  for (const std::string& table : files.tables()) print_table(env, files, table, 1, out);
}

}  // namespace argosy
