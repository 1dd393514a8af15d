#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "argosy/base/error.h"
#include "argosy/ckpt/checkpoint_files.h"
#include "argosy/ckpt/ckpt.h"

namespace argosy {
namespace {

/// Infinite where only one of them is a number.
double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double distance = std::abs(a - b);
  return std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance;
}

template <class T>
double largest(std::span<const T> a, std::span<const T> b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i)
    most = std::max(most, distance(static_cast<double>(a[i]), static_cast<double>(b[i])));
  return most;
}

std::string type_of(const Tensor& value) {
  return fmt::format("{}[{}]", name(value.dtype()), fmt::join(value.shape().dims(), ","));
}

/// Of two tensors; nothing where they are the same bits.
std::string difference(const Tensor& a, const Tensor& b) {
  if (same_bits(a, b)) return "";
  if (a.shape() != b.shape() || a.dtype() != b.dtype())
    return fmt::format("{} and {}", type_of(a), type_of(b));
  double most = 0;
  switch (a.dtype()) {
    case DType::f32:
      most = largest(a.as<float>(), b.as<float>());
      break;
    case DType::f64:
      most = largest(a.as<double>(), b.as<double>());
      break;
    case DType::i32:
      most = largest(a.as<int32_t>(), b.as<int32_t>());
      break;
    case DType::i64:
      most = largest(a.as<int64_t>(), b.as<int64_t>());
      break;
    default:
      return "other bytes";
  }
  return fmt::format("differs by {:.6g} at most", most);
}

bool diff_tensors(const CheckpointFiles& a, const CheckpointFiles& b, std::FILE* out) {
  size_t same = 0, different = 0;
  for (const auto& [name, value] : a.tensors) {
    const auto found = std::ranges::find(b.tensors, name, &NamedTensor::name);
    const std::string what =
        found == b.tensors.end() ? "only in " + a.dir : difference(value, found->value);
    ++(what.empty() ? same : different);
    if (!what.empty()) fmt::print(out, "parameter {}: {}\n", name, what);
  }
  for (const auto& [name, value] : b.tensors) {
    if (std::ranges::find(a.tensors, name, &NamedTensor::name) != a.tensors.end()) continue;
    fmt::print(out, "parameter {}: only in {}\n", name, b.dir);
    ++different;
  }
  fmt::print(out, "{} parameters are equal, {} differ\n", same, different);
  return different > 0;
}

struct TableDifference {
  uint64_t equal = 0, only_a = 0, only_b = 0, differ = 0;
  double weights = 0, others = 0;  // the largest
  Key worst = 0;                   // key of the largest difference of weights

  bool none() const { return only_a + only_b + differ == 0; }

  void compare(const TableMerge::Row& a, const TableMerge::Row& b, const ps::TableLayout& layout) {
    if (std::ranges::equal(a.image, b.image)) {
      ++equal;
      return;
    }
    ++differ;
    if (a.section != ps::Section::rows) {
      others = std::max(others, largest(a.image, b.image));
      return;
    }
    const size_t at = layout.weights_at(), end = at + layout.dim;
    const double now = largest(a.image.subspan(at, layout.dim), b.image.subspan(at, layout.dim));
    if (now > weights) {
      weights = now;
      worst = a.key;
    }
    others = std::max({others, largest(a.image.first(at), b.image.first(at)),
                       largest(a.image.subspan(end), b.image.subspan(end))});
  }
};

bool diff_table(Env& env, const CheckpointFiles& a, const CheckpointFiles& b,
                const std::string& table, std::FILE* out) {
  TableMerge rows_a(env, a.dir, a.files_of(table)), rows_b(env, b.dir, b.files_of(table));
  const ps::TableLayout& layout = rows_a.layout();
  if (rows_b.layout() != layout) {
    fmt::print(out, "table {}: {} weights in {} floats a row, and {} in {}\n", table, layout.dim,
               layout.row_floats, rows_b.layout().dim, rows_b.layout().row_floats);
    return true;
  }
  TableDifference all;
  auto from_a = rows_a.next(), from_b = rows_b.next();
  while (from_a || from_b) {
    const auto place = [](const auto& row) { return std::pair(row->section, row->key); };
    const bool take_a = from_a && (!from_b || place(from_a) <= place(from_b));
    const bool take_b = from_b && (!from_a || place(from_b) <= place(from_a));
    if (take_a && take_b)
      all.compare(*from_a, *from_b, layout);
    else
      ++(take_a ? all.only_a : all.only_b);
    if (take_a) from_a = rows_a.next();
    if (take_b) from_b = rows_b.next();
  }
  fmt::print(out, "table {}: {} rows are equal, {} differ, {} only in {}, {} only in {}\n", table,
             all.equal, all.differ, all.only_a, a.dir, all.only_b, b.dir);
  if (all.differ > 0)
    fmt::print(out, "  weights differ by {:.6g} at most{}, state and counts by {:.6g}\n",
               all.weights, all.weights > 0 ? fmt::format(" (key {})", all.worst) : "", all.others);
  return !all.none();
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

Difference diff_checkpoints(Env& env, const std::string& a, const std::string& b, std::FILE* out) {
  const CheckpointFiles first = open_checkpoint(env, a), second = open_checkpoint(env, b);
  bool different = diff_tensors(first, second, out);
  const std::vector<std::string> tables_a = first.tables(), tables_b = second.tables();
  for (const std::string& table : tables_a) {
    if (has(tables_b, table)) {
      different |= diff_table(env, first, second, table, out);
    } else {
      fmt::print(out, "table {}: only in {}\n", table, a);
      different = true;
    }
  }
  for (const std::string& table : tables_b) {
    if (has(tables_a, table)) continue;
    fmt::print(out, "table {}: only in {}\n", table, b);
    different = true;
  }
  return different ? Difference::some : Difference::none;
}

}  // namespace argosy
