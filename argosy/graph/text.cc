// Programs as text: print, parse, Graphviz. The format is in docs/formats/program-text.md.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>

#include <fmt/format.h>

#include "argosy/base/error.h"
#include "argosy/base/interned.h"
#include "argosy/graph/program.h"

namespace argosy {
namespace {

constexpr std::string_view kHeader = "argosy program 1";

std::string shape_text(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.dims(), ","));
}
std::string type_text(const VarType& type) { return name(type.dtype) + shape_text(type.shape); }

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string attr_text(const Attr& attr) {
  struct Print {
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const {
      std::string text = fmt::format("{}", v);
      const bool looks_real = text.find_first_of(".en") != std::string::npos;  // 1e30, inf, nan
      return looks_real ? text : text + ".0";
    }
    std::string operator()(const std::string& v) const { return quoted(v); }
    std::string operator()(const std::vector<int64_t>& v) const {
      return fmt::format("[{}]", fmt::join(v, ","));
    }
  };
  return std::visit(Print{}, attr);
}

/// Reads one line word by word; every failure names the source line.
class LineParser {
 public:
  LineParser(std::string_view line, SourceLoc at) : rest_(line), at_(at) { skip_space(); }

  bool done() const { return rest_.empty(); }
  bool next_is(std::string_view token) const { return rest_.starts_with(token); }
  bool accept(std::string_view token) {
    if (!next_is(token)) return false;
    rest_.remove_prefix(token.size());
    skip_space();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) refuse(fmt::format("expected '{}'", token));
  }
  void end() {
    if (!done()) refuse("expected the end of the line");
  }

  std::string word() {
    const auto stop = std::ranges::find_if(rest_, [](char c) {
      return std::string_view(" ,()[]{}=").find(c) != std::string_view::npos;
    });
    const auto n = static_cast<size_t>(stop - rest_.begin());
    if (n == 0) refuse("expected a name");
    std::string result(rest_.substr(0, n));
    rest_.remove_prefix(n);
    skip_space();
    return result;
  }

  template <class T>
  T number() {
    T value{};
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) refuse("expected a number");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    skip_space();
    return value;
  }

  std::vector<int64_t> integers() {
    expect("[");
    std::vector<int64_t> values;
    while (!accept("]")) {
      if (!values.empty()) expect(",");
      values.push_back(number<int64_t>());
    }
    return values;
  }

  VarId var() {
    expect("%");
    const auto i = number<int32_t>();
    if (i < 0) refuse("a variable number is 0 or more");
    return {i};
  }

  VarType type() {
    const std::string dtype = word();
    const std::vector<int64_t> dims = integers();
    try {
      return {Shape(dims), parse_dtype(dtype)};
    } catch (const ConfigError& e) {
      refuse(e.what());
    }
  }

  std::string quoted_text() {
    expect("\"");
    std::string text;
    size_t i = 0;
    while (i < rest_.size() && rest_[i] != '"') {
      if (rest_[i] == '\\' && i + 1 < rest_.size()) ++i;
      text += rest_[i++];
    }
    if (i == rest_.size()) refuse("the closing quote is missing");
    rest_.remove_prefix(i + 1);
    skip_space();
    return text;
  }

  Attr attr() {
    if (next_is("\"")) return quoted_text();
    if (next_is("[")) return integers();
    const auto stop = rest_.find_first_of(" ,}");
    const std::string_view token = rest_.substr(0, stop);
    if (token.find_first_of(".en") == std::string_view::npos) return number<int64_t>();
    return number<double>();
  }

  [[noreturn]] void refuse(const std::string& why) const {
    fail<ConfigError>(
        at_, ": ", why,
        done() ? " but the line ends" : ", got '" + std::string(rest_.substr(0, 40)) + "'");
  }

 private:
  void skip_space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\r'))
      rest_.remove_prefix(1);
  }
  std::string_view rest_;
  SourceLoc at_;
};

/// Builds a program line by line, refusing what would not be a straight line of known ops.
class ProgramParser {
 public:
  explicit ProgramParser(const char* file) : file_(file) {}

  void line(std::string_view text, int number) {
    at_ = {file_, number};
    LineParser in(text, at_);
    if (in.done() || in.next_is("#")) return;
    if (!seen_header_) {
      check<ConfigError>(text.starts_with(kHeader), at_, ": expected '", kHeader, "'");
      seen_header_ = true;
      return;
    }
    statement(in);
    in.end();
  }

  Program finish() {
    check<ConfigError>(seen_header_, file_, ": empty, expected '", kHeader, "'");
    return std::move(program_);
  }

 private:
  void statement(LineParser& in) {
    if (in.next_is("%")) return node(in);
    const std::string word = in.word();
    if (word == "forward") {
      phase_ = Phase::forward;
    } else if (word == "backward") {
      phase_ = Phase::backward;
    } else if (word == "output") {
      while (!in.done()) program_.outputs.push_back(known(in));
    } else if (word == "gradient") {
      const VarId var = known(in);
      in.expect("=");
      program_.grads.push_back({var, known(in)});
    } else if (word == "update") {
      const VarId state = known(in);
      in.expect("=");
      program_.updates.push_back({state, known(in)});
    } else {
      declaration(in, word);
    }
  }

  void declaration(LineParser& in, const std::string& word) {
    for (VarKind kind : {VarKind::input, VarKind::rows, VarKind::param, VarKind::state}) {
      if (word != name(kind)) continue;
      const VarId id = in.var();
      VarDesc desc{.name = in.word(), .type = {}, .kind = kind, .init = "", .from = ""};
      desc.type = in.type();
      if (in.accept("init=")) desc.init = in.quoted_text();
      if (in.accept("from=")) desc.from = in.quoted_text();
      define(in, id, std::move(desc));
      return;
    }
    in.refuse("'" + word +
              "' starts no statement; expected a declaration, a node, output, gradient or update "
              "before this");
  }

  void node(LineParser& in) {
    Node node;
    node.phase = phase_;
    node.at = at_;
    std::vector<VarDesc> results;
    do {
      node.out.push_back(in.var());
      VarDesc desc;
      // A name stands between the number and the type; the type is the word before '['.
      std::string first = in.word();
      if (in.next_is("[")) {
        desc.type = typed(in, first);
      } else {
        desc.name = std::move(first);
        desc.type = in.type();
      }
      results.push_back(std::move(desc));
    } while (in.accept(","));
    in.expect("=");
    try {
      node.op = &find_op(in.word());
    } catch (const ConfigError& e) {
      fail<ConfigError>(at_, ": ", e.what());
    }
    in.expect("(");
    while (!in.accept(")")) {
      if (!node.in.empty()) in.expect(",");
      node.in.push_back(known(in));
    }
    if (in.accept("{")) {
      while (!in.accept("}")) {
        if (!node.attrs.empty()) in.expect(",");
        const std::string key = in.word();
        in.expect("=");
        node.attrs.set(key, in.attr());
      }
    }
    check_types(node, results);
    for (size_t i = 0; i < results.size(); ++i) define(in, node.out[i], std::move(results[i]));
    program_.nodes.push_back(std::move(node));
  }

  VarType typed(LineParser& in, const std::string& dtype) {
    try {
      return {Shape(in.integers()), parse_dtype(dtype)};
    } catch (const ConfigError& e) {
      fail<ConfigError>(at_, ": ", e.what());
    }
  }

  /// The text states each result's type; it must be the one the op gives.
  void check_types(const Node& node, const std::vector<VarDesc>& results) {
    std::vector<VarType> in, out;
    for (VarId id : node.in) in.push_back(program_.var(id).type);
    try {
      infer(*node.op, {in, node.attrs, out});
    } catch (const ConfigError& e) {
      fail<ConfigError>(at_, ": ", signature(program_, node), ": ", e.what());
    }
    check<ConfigError>(out.size() == results.size(), at_, ": ", node.op->name, " has ", out.size(),
                       " results, ", results.size(), " are named");
    for (size_t i = 0; i < out.size(); ++i)
      check<ConfigError>(out[i] == results[i].type, at_, ": ", node.op->name, " gives ", out[i],
                         ", the text says ", results[i].type);
  }

  VarId known(LineParser& in) {
    const VarId id = in.var();
    check<ConfigError>(id.index() < program_.vars.size(), at_, ": %", id.i,
                       " is used before it is defined");
    return id;
  }

  void define(const LineParser& in, VarId id, VarDesc desc) {
    desc.at = at_;
    if (id.index() != program_.vars.size())
      in.refuse(fmt::format("variables are numbered in order, expected %{}", program_.vars.size()));
    program_.vars.push_back(std::move(desc));
  }

  const char* file_;
  SourceLoc at_;
  bool seen_header_ = false;
  Phase phase_ = Phase::forward;
  Program program_;
};

}  // namespace

std::string Program::text() const {
  std::string out;
  auto line = std::back_inserter(out);
  fmt::format_to(line, "{}\n", kHeader);
  // Variables are numbered in order of definition, so declarations and nodes interleave.
  std::vector<bool> computed(vars.size());
  for (const Node& node : nodes)
    for (VarId id : node.out) computed[id.index()] = true;
  size_t printed = 0;
  const auto declare_until = [&](size_t end) {
    for (; printed < end; ++printed) {
      const VarDesc& desc = vars[printed];
      if (computed[printed]) continue;
      fmt::format_to(line, "{} %{} {} {}{}{}\n", argosy::name(desc.kind), printed, desc.name,
                     type_text(desc.type), desc.init.empty() ? "" : " init=" + quoted(desc.init),
                     desc.from.empty() ? "" : " from=" + quoted(desc.from));
    }
  };
  Phase phase = Phase::forward;
  for (const Node& node : nodes) {
    declare_until(node.out.front().index());
    if (node.phase != phase) {
      phase = node.phase;
      fmt::format_to(line, "{}\n", phase == Phase::forward ? "forward" : "backward");
    }
    for (VarId id : node.out) {
      const VarDesc& desc = var(id);
      fmt::format_to(line, "{}{} {}", id == node.out.front() ? "" : ", ", label(id),
                     type_text(desc.type));
    }
    fmt::format_to(line, " = {}(", node.op->name);
    for (size_t i = 0; i < node.in.size(); ++i)
      fmt::format_to(line, "{}%{}", i ? ", " : "", node.in[i].i);
    out += ')';
    if (!node.attrs.empty()) {
      out += " {";
      bool first = true;
      for (const auto& [key, value] : node.attrs) {
        fmt::format_to(line, "{}{}={}", first ? "" : ", ", key, attr_text(value));
        first = false;
      }
      out += '}';
    }
    out += '\n';
  }
  declare_until(vars.size());
  if (!outputs.empty()) {
    out += "output";
    for (VarId id : outputs) fmt::format_to(line, " %{}", id.i);
    out += '\n';
  }
  for (const VarGrad& pair : grads)
    fmt::format_to(line, "gradient %{} = %{}\n", pair.var.i, pair.grad.i);
  for (const StateUpdate& update : updates)
    fmt::format_to(line, "update %{} = %{}\n", update.state.i, update.next.i);
  return out;
}

Program Program::parse(std::string_view text, std::string_view source) {
  ProgramParser parser(interned(source));
  int number = 0;
  while (!text.empty()) {
    const auto end = text.find('\n');
    parser.line(text.substr(0, end), ++number);
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
  }
  return parser.finish();
}

std::string Program::dot() const {
  std::string out =
      "digraph program {\n  rankdir=TB;\n  node [fontname=\"monospace\", fontsize=10];\n";
  auto line = std::back_inserter(out);
  for (size_t i = 0; i < vars.size(); ++i) {
    if (vars[i].kind == VarKind::temp) continue;
    const char* color = vars[i].kind == VarKind::input ? "lightblue" : "lightyellow";
    fmt::format_to(line, "  v{} [shape=ellipse, style=filled, fillcolor={}, label=\"{}\\n{}\"];\n",
                   i, color, vars[i].name, type_text(vars[i].type));
  }
  std::vector<int> producer(vars.size(), -1);
  for (size_t n = 0; n < nodes.size(); ++n) {
    const Node& node = nodes[n];
    const bool is_output = std::ranges::any_of(
        node.out, [&](VarId id) { return std::ranges::find(outputs, id) != outputs.end(); });
    fmt::format_to(line, "  n{} [shape=box, style=\"{}{}\", label=\"{}\"];\n", n,
                   is_output ? "bold," : "", node.phase == Phase::backward ? "dashed" : "solid",
                   node.op->name);
    for (VarId id : node.in) {
      const bool temp = producer[id.index()] >= 0;
      fmt::format_to(line, "  {}{} -> n{} [label=\"{}\"];\n", temp ? 'n' : 'v',
                     temp ? producer[id.index()] : id.i, n, type_text(var(id).type));
    }
    for (VarId id : node.out) producer[id.index()] = static_cast<int>(n);
  }
  return out + "}\n";
}

}  // namespace argosy
