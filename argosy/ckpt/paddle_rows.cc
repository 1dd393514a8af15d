#include "argosy/ckpt/paddle_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <sstream>

#include "argosy/base/call.h"
#include "argosy/base/error.h"
#include "argosy/base/file_sink.h"
#include "argosy/ckpt/checkpoint_files.h"
#include "argosy/data/byte_stream.h"
#include "argosy/data/lines.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

/// Where the floats of a line behind its key are.
struct LineLayout {
  size_t unseen, show, click;
  size_t first_weight;            // embed_w
  size_t other_weights;           // embedx_w, which a key of a low score does not have
  size_t short_size, whole_size;  // of a line without and with them
};

struct RuleState {
  size_t first, others;  // floats of embed_g2sum and of embedx_g2sum
};

/// State that a rule of Paddle's tables keeps for so many weights of embedx.
RuleState rule_state(const std::string& rule, size_t others) {
  if (rule == "naive") return {0, 0};
  if (rule == "adagrad") return {1, 1};
  if (rule == "std_adagrad") return {1, others};
  if (rule == "adam") return {4, 2 * others + 2};
  if (rule == "shared_adam") return {4, 4};
  const std::string near =
      nearest(rule, {"naive", "adagrad", "std_adagrad", "adam", "shared_adam"});
  fail<ConfigError>("rule '", rule, "', expected naive, adagrad, std_adagrad, adam or shared_adam",
                    near.empty() ? "" : "; did you mean " + near + "?");
}

LineLayout line_layout(const PaddleImport& import, size_t dim) {
  const size_t others = dim - 1;
  if (import.accessor == "sparse" || import.accessor == "ctr") {
    // slot unseen_days delta_score show click embed_w embed_g2sum[] embedx_w[] embedx_g2sum[]
    const RuleState state = rule_state(import.rule, others);
    const size_t embedx = 6 + state.first;
    return {.unseen = 1,
            .show = 3,
            .click = 4,
            .first_weight = 5,
            .other_weights = embedx,
            .short_size = embedx,
            .whole_size = embedx + others + state.others};
  }
  if (import.accessor == "ctr_double")
    // unseen_days delta_score show click embed_w embed_g2sum slot embedx_g2sum embedx_w[]
    return {.unseen = 0,
            .show = 2,
            .click = 3,
            .first_weight = 4,
            .other_weights = 8,
            .short_size = 7,
            .whole_size = 8 + others};
  const std::string near = nearest(import.accessor, {"sparse", "ctr", "ctr_double", "common"});
  fail<ConfigError>("accessor '", import.accessor, "', expected sparse, ctr, ctr_double or common",
                    near.empty() ? "" : "; did you mean " + near + "?");
}

/// Rows that arrive in any order, written as files that are each in the order of the keys.
class SortedRuns {
 public:
  SortedRuns(Env& env, std::string to, std::string table, const ps::TableLayout& layout,
             size_t run_bytes)
      : env_(env),
        to_(std::move(to)),
        table_(std::move(table)),
        layout_(layout),
        most_(std::max<size_t>(1, run_bytes / (sizeof(Key) + layout.row_floats * sizeof(float)))) {}

  /// Space for the image of a row.
  std::span<float> add(Key key) {
    if (keys_.size() == most_) flush();
    keys_.push_back(key);
    images_.resize(images_.size() + layout_.row_floats);
    return std::span(images_).last(layout_.row_floats);
  }

  ps::SavedTable finish(const std::string& file) {
    flush();
    ps::SavedTable saved{table_, file, {}};
    FileSink sink(env_, to_ + "/" + file);
    ps::TableWriter writer(sink, layout_);
    if (!runs_.empty()) {
      TableMerge merge(env_, to_, runs_);
      while (const auto row = merge.next())
        writer.add(row->section, std::span(&row->key, 1), row->image);
    }
    saved.sum = writer.finish();
    sink.finish();
    for (const ps::SavedTable& run : runs_) env_.remove_file(to_ + "/" + run.file);
    return saved;
  }

 private:
  void flush() {
    if (keys_.empty()) return;
    std::vector<size_t> order(keys_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, std::less(), [&](size_t i) { return keys_[i]; });
    ps::SavedTable& run = runs_.emplace_back();
    run = {table_, fmt::format("{}.run-{}", table_, runs_.size()), {}};
    FileSink sink(env_, to_ + "/" + run.file);
    ps::TableWriter writer(sink, layout_);
    for (size_t i = 0; i < order.size(); ++i) {
      const size_t at = order[i];
      check<DataError>(i == 0 || keys_[order[i - 1]] != keys_[at], "table '", table_, "': key ",
                       keys_[at], " is there twice");
      writer.add(ps::Section::rows, std::span(&keys_[at], 1),
                 std::span(images_).subspan(at * layout_.row_floats, layout_.row_floats));
    }
    run.sum = writer.finish();
    sink.finish();
    keys_.clear();
    images_.clear();
  }

  Env& env_;
  const std::string to_, table_;
  const ps::TableLayout layout_;
  const size_t most_;  // rows of a run
  std::vector<Key> keys_;
  std::vector<float> images_;
  std::vector<ps::SavedTable> runs_;
};

class RowImport {
 public:
  RowImport(Env& env, const PaddleTable& table, const PaddleImport& import, const std::string& to)
      : table_(table),
        import_(import),
        layout_{
            .dim = table.dim,
            .row_floats = table.dim + (import.keep_unseen ? 1 : 0) + (import.keep_scores ? 2 : 0),
            .counted_floats = 0,
            .unseen = import.keep_unseen,
            .scores = import.keep_scores},
        runs_(env, to, table.name, layout_, import.run_bytes) {}

  void read(const std::string& path) {
    Lines lines(open_file(path));
    while (const auto line = lines.next()) {
      where_ = fmt::format("{}:{}", path, lines.number());
      check<DataError>(line->bad.empty(), where_, ": ", line->bad);
      if (line->text.empty()) continue;
      if (import_.accessor == "common")
        add_common(line->text);
      else
        add_line(line->text);
    }
  }
  /// Of the .meta file beside the next files: which of the numbers of a line are the weights.
  void take_meta(const std::string& path) {
    Lines lines(open_file(path));
    std::vector<std::string> names, dims;
    while (const auto line = lines.next()) {
      const std::string text(line->text);
      if (text.starts_with("row_names=")) names = split(text.substr(text.find('=') + 1));
      if (text.starts_with("row_dims=")) dims = split(text.substr(text.find('=') + 1));
    }
    check<DataError>(names.size() == dims.size() && !names.empty(), path,
                     ": has no row_names and row_dims, or not as many");
    size_t at = 0;
    for (size_t i = 0; i < names.size(); ++i) {
      size_t dim = 0;
      const auto [end, error] =
          std::from_chars(dims[i].data(), dims[i].data() + dims[i].size(), dim);
      check<DataError>(error == std::errc() && dim < kMostFloats, path, ": cannot read row_dims");
      if (names[i] == "Param") {
        check<DataError>(dim == table_.dim, path, ": rows of ", dim, " weights, expected ",
                         table_.dim);
        common_first_ = at;
      }
      at += dim;
    }
    common_size_ = at;
  }
  ps::SavedTable finish() { return runs_.finish(table_.name + ".1.rows"); }

 private:
  static constexpr size_t kMostFloats = 1U << 20;

  static std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> words;
    std::istringstream in(text);
    for (std::string word; std::getline(in, word, ',');)
      if (!word.empty()) words.push_back(word);
    return words;
  }

  /// The next number of the text, which begins behind it then.
  template <class T>
  T take(std::string_view& text, std::string_view separators) const {
    const size_t begin = std::min(text.find_first_not_of(separators), text.size());
    text.remove_prefix(begin);
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const auto used = static_cast<size_t>(end - text.data());
    check<DataError>(error == std::errc() && (used == text.size() || separators.find(text[used]) !=
                                                                         std::string_view::npos),
                     where_, ": cannot read '", text.substr(0, 20), "', expected a number");
    text.remove_prefix(used);
    return value;
  }
  std::vector<float>& take_floats(std::string_view text, std::string_view separators) {
    floats_.clear();
    while (text.find_first_not_of(separators) != std::string_view::npos) {
      floats_.push_back(take<float>(text, separators));
      check<DataError>(std::isfinite(floats_.back()), where_, ": holds ", floats_.back());
    }
    return floats_;
  }

  void add(Key key, float unseen, float show, float click) {
    image_ = runs_.add(key);
    size_t at = 0;
    if (layout_.unseen) image_[at++] = unseen;
    if (layout_.scores) {
      image_[at++] = show;
      image_[at++] = click;
    }
    image_ = image_.subspan(at);
  }

  /// key, then what the accessor keeps.
  void add_line(std::string_view text) {
    constexpr std::string_view kBlanks = " \t\r";
    const auto key = take<Key>(text, kBlanks);
    const LineLayout line = line_layout(import_, table_.dim);
    const std::vector<float>& floats = take_floats(text, kBlanks);
    check<DataError>(floats.size() == line.short_size || floats.size() == line.whole_size, where_,
                     ": ", floats.size(), " values behind the key, expected ", line.short_size,
                     " or ", line.whole_size, " (accessor ", import_.accessor, ", rule ",
                     import_.rule, ", ", table_.dim, " weights)");
    add(key, floats[line.unseen], floats[line.show], floats[line.click]);
    image_[0] = floats[line.first_weight];
    if (floats.size() == line.whole_size)
      std::copy_n(floats.begin() + static_cast<ptrdiff_t>(line.other_weights), table_.dim - 1,
                  image_.begin() + 1);
  }

  /// key, count, unseen, is_entry, then the values of all columns: TAB between them, comma between
  /// values.
  void add_common(std::string_view text) {
    constexpr std::string_view kTabs = "\t\r", kCommas = ",\t\r";
    const auto key = take<Key>(text, kTabs);
    take<int64_t>(text, kTabs);
    const auto unseen = take<int64_t>(text, kTabs);
    const auto is_entry = take<int>(text, kTabs);
    const std::vector<float>& floats = take_floats(text, kCommas);
    if (is_entry == 0) return;  // counted, not admitted
    const size_t size = common_size_ == 0 ? floats.size() : common_size_;
    check<DataError>(floats.size() == size && common_first_ + table_.dim <= floats.size(), where_,
                     ": ", floats.size(), " values, expected ",
                     common_size_ == 0 ? table_.dim : size);
    add(key, static_cast<float>(unseen), 0, 0);
    std::copy_n(floats.begin() + static_cast<ptrdiff_t>(common_first_), table_.dim, image_.begin());
  }

  const PaddleTable& table_;
  const PaddleImport& import_;
  const ps::TableLayout layout_;
  SortedRuns runs_;
  std::string where_;
  std::vector<float> floats_;
  std::span<float> image_;
  size_t common_first_ = 0, common_size_ = 0;  // in a line; 0: no .meta file has said
};

}  // namespace

ps::SavedTable import_paddle_table(Env& env, const std::string& folder, const PaddleTable& table,
                                   const PaddleImport& import, const std::string& to) {
  if (import.accessor != "common") line_layout(import, table.dim);  // names what is not known
  const std::string from = folder + "/" + table.folder;
  std::error_code error;
  std::vector<std::string> files, metas;
  for (const auto& entry : fs::directory_iterator(from, error)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".meta"))
      metas.push_back(entry.path().string());
    else if (name.starts_with("part-") || name.ends_with(".txt"))
      files.push_back(entry.path().string());
  }
  check<IoError>(!error, from, ": cannot be listed: ", error.message());
  check<ConfigError>(!files.empty(), from, ": has no part-* and no *.txt files");
  std::ranges::sort(files);
  std::ranges::sort(metas);
  RowImport rows(env, table, import, to);
  if (!metas.empty()) rows.take_meta(metas.front());
  for (const std::string& file : files) rows.read(file);
  return rows.finish();
}

}  // namespace argosy
