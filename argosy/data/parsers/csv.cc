// csv: columns with a delimiter, by a list of what each holds.
//   csv(columns=label:float;dense:float*13;C1..C26:hash, hash=1000001, delimiter=comma, header=1)
// A column is name:kind, one slot of one value. Kinds: float, id, hash (text, as in FeatureHash,
// with the column's number from 0) and skip. name:kind*N is one slot of N columns, A1..A9:kind is
// nine slots; skip needs no name. delimiter: comma (default), tab, semicolon, pipe or space. An
// empty float or id is an error, or 0 with empty=pad; an empty text is hashed like any other. A
// column may stand in double quotes, with "" for a quote in it, but never holds an end of line.
#include <algorithm>
#include <charconv>

#include "argosy/base/error.h"
#include "argosy/data/feature_hash.h"
#include "argosy/data/parsers/parser_support.h"

namespace argosy::parsers {
namespace {

enum class Reading : uint8_t { number, hash, skip };

struct CsvColumn {
  Reading reading;
  size_t slot;
  FeatureHash hash;
};

struct CsvLayout {
  std::vector<SlotSpec> slots;
  std::vector<CsvColumn> columns;
  size_t header_lines;
  char delimiter;
};

class Csv final : public Parser {
 public:
  explicit Csv(CsvLayout layout)
      : Parser(layout.slots),
        columns_(std::move(layout.columns)),
        header_lines_(layout.header_lines),
        delimiter_(layout.delimiter) {}

  size_t header_lines() const override { return header_lines_; }

 private:
  std::optional<std::string> add_instance(std::string_view line, Columns& out) const override {
    std::string unquoted;
    size_t at = 0;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (at > line.size())
        return "expected " + std::to_string(columns_.size()) + " columns, found " +
               std::to_string(i);
      const size_t start = at;
      std::string_view field;
      if (at < line.size() && line[at] == '"') {
        const auto end = read_quoted(line, at, unquoted);
        if (!end) return in_column(i, start, "expected a closing quote before the delimiter");
        field = unquoted;
        at = *end;
      } else {
        at = std::min(line.size(), line.find(delimiter_, at));
        field = line.substr(start, at - start);
      }
      ++at;
      if (!add_field(field, columns_[i], out))
        return in_column(
            i, start, std::string("expected ") + wanted(columns_[i]) + ", found " + quoted(field));
    }
    if (at <= line.size())
      return "expected " + std::to_string(columns_.size()) + " columns, found more at byte " +
             std::to_string(at + 1);
    return std::nullopt;
  }

  bool add_field(std::string_view field, const CsvColumn& column, Columns& out) const {
    if (column.reading == Reading::skip) return true;
    if (column.reading == Reading::hash) {
      *out.add_ids(column.slot, 1) = column.hash(field);
      return true;
    }
    const SlotSpec& spec = slots()[column.slot];
    if (field.empty() && spec.empty == EmptySlot::pad) field = "0";
    Scanner::Pad pad;
    Scanner in(field, pad);
    return add_number(in, spec.kind, column.slot, out) && in.at_end();
  }

  /// Unpacks the column that starts with a quote at `at`; gives the place of the delimiter.
  std::optional<size_t> read_quoted(std::string_view line, size_t at, std::string& into) const {
    into.clear();
    for (++at; at < line.size(); ++at) {
      if (line[at] != '"') {
        into += line[at];
      } else if (at + 1 < line.size() && line[at + 1] == '"') {
        into += line[at++];
      } else {
        ++at;
        if (at == line.size() || line[at] == delimiter_) return at;
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  const char* wanted(const CsvColumn& column) const {
    return number_wanted(slots()[column.slot].kind);
  }
  std::string in_column(size_t column, size_t start, const std::string& what) const {
    const bool named = columns_[column].reading != Reading::skip;
    return (named ? "slot '" + slots()[columns_[column].slot].name + "', column " : "column ") +
           std::to_string(column) + " at byte " + std::to_string(start + 1) + ": " + what;
  }

  std::vector<CsvColumn> columns_;
  size_t header_lines_;
  char delimiter_;
};

size_t number_at_end(std::string_view name, const Call& spec) {
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  size_t value = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + digits, end, value);
  check<ConfigError>(error == std::errc() && stop == end, "'", spec.text(), "': '", name,
                     "' in a range must end in a number");
  return value;
}

/// "C1..C26" gives 26 names, others give themselves.
std::vector<std::string> names_of(std::string_view text, const Call& spec) {
  constexpr size_t kMost = 100000;
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) return {std::string(text)};
  const std::string_view first = text.substr(0, dots), last = text.substr(dots + 2);
  const size_t from = number_at_end(first, spec), to = number_at_end(last, spec);
  const std::string_view stem = first.substr(0, first.find_last_not_of("0123456789") + 1);
  check<ConfigError>(last.starts_with(stem) && from <= to && to - from < kMost, "'", spec.text(),
                     "': '", text, "' is not a range of names");
  std::vector<std::string> names;
  for (size_t i = from; i <= to; ++i) names.push_back(std::string(stem) + std::to_string(i));
  return names;
}

class LayoutReader {
 public:
  explicit LayoutReader(const Call& spec)
      : spec_(spec), table_size_(whole_number(spec, "hash", 1000001, 1)) {
    const std::string empty = spec.word("empty", "error");
    check<ConfigError>(empty == "error" || empty == "pad", "'", spec.text(), "': empty=", empty,
                       ", expected error or pad");
    empty_ = empty == "pad" ? EmptySlot::pad : EmptySlot::error;
    layout_.header_lines = whole_number(spec, "header", 0, 0);
    layout_.delimiter = delimiter();
    const std::string columns = spec.word("columns", "");
    std::string_view rest = columns;
    while (!rest.empty()) {
      const size_t end = std::min(rest.size(), rest.find(';'));
      add(rest.substr(0, end));
      rest.remove_prefix(std::min(rest.size(), end + 1));
    }
    check<ConfigError>(!layout_.slots.empty(), "'", spec.text(),
                       "': needs columns=name:kind;... with at least one that is not skipped");
  }
  CsvLayout layout() && { return std::move(layout_); }

 private:
  void add(std::string_view entry) {
    std::string_view kind = entry, name;
    if (const size_t colon = entry.find(':'); colon != std::string_view::npos) {
      name = entry.substr(0, colon);
      kind = entry.substr(colon + 1);
    }
    size_t width = 1;
    if (const size_t star = kind.find('*'); star != std::string_view::npos) {
      width = number_at_end(kind.substr(star + 1), spec_);
      kind = kind.substr(0, star);
    }
    constexpr size_t kMost = 1000000;
    check<ConfigError>(width >= 1 && width <= kMost, "'", spec_.text(), "': '", entry,
                       "' needs 1 to ", kMost, " columns");
    const bool known = kind == "float" || kind == "id" || kind == "hash" || kind == "skip";
    check<ConfigError>(known && (kind == "skip" || !name.empty()), "'", spec_.text(), "': column '",
                       entry, "', expected name:float, name:id, name:hash or skip");
    const Reading reading = kind == "skip"   ? Reading::skip
                            : kind == "hash" ? Reading::hash
                                             : Reading::number;
    for (std::string& each : names_of(name, spec_)) {
      for (size_t i = 0; i < width; ++i)
        layout_.columns.push_back(
            {reading, layout_.slots.size(), FeatureHash(layout_.columns.size(), table_size_)});
      if (reading == Reading::skip) continue;
      const SlotKind slot_kind = kind == "float" ? SlotKind::floats : SlotKind::ids;
      layout_.slots.push_back({std::move(each), slot_kind, width, empty_});
    }
  }

  char delimiter() const {
    const std::string word = spec_.word("delimiter", "comma");
    if (word == "comma") return ',';
    if (word == "tab") return '\t';
    if (word == "semicolon") return ';';
    if (word == "pipe") return '|';
    check<ConfigError>(word == "space", "'", spec_.text(), "': delimiter=", word,
                       ", expected comma, tab, semicolon, pipe or space");
    return ' ';
  }

  const Call& spec_;
  uint64_t table_size_;
  EmptySlot empty_;
  CsvLayout layout_;
};

}  // namespace

std::unique_ptr<Parser> csv(const Call& spec, std::vector<SlotSpec> slots) {
  spec.expect("parser", 0, {"columns", "hash", "delimiter", "header", "empty"});
  CsvLayout layout = LayoutReader(spec).layout();
  layout.slots = fit_slots(spec, std::move(slots), std::move(layout.slots));
  return std::make_unique<Csv>(std::move(layout));
}

}  // namespace argosy::parsers
