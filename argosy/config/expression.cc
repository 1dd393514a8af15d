#include "argosy/config/expression.h"

#include <string_view>

namespace argosy {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// Recursive descent, a function for each level:
///   sum = product {(+|-) product}          product = term {(*|/) term}
///   term = ( sum ) | [ sum, ... ] | 'text' | number | name | name ( [name =] sum, ... )
class Parser {
 public:
  explicit Parser(const Setting& setting) : setting_(setting), text_(read_text(setting)) {}

  Expression whole() {
    Expression result = sum();
    if (at_ < text_.size()) expected("an operator or the end");
    return result;
  }

 private:
  static constexpr int kDeepest = 100;

  Expression sum() {
    Expression left = product();
    while (peek() == '+' || peek() == '-') left = binary(text_[at_] == '+' ? "add" : "sub", left);
    return left;
  }

  Expression product() {
    Expression left = term();
    while (peek() == '*' || peek() == '/') {
      const char* const op = text_[at_] == '*' ? "mul" : "div";
      const int place = column();
      ++at_;
      left = joined(op, place, std::move(left), term());
    }
    return left;
  }

  Expression binary(const char* op, Expression left) {
    const int place = column();
    ++at_;
    return joined(op, place, std::move(left), product());
  }

  static Expression joined(const char* op, int column, Expression left, Expression right) {
    Expression call{.kind = Expression::Kind::call, .text = op, .column = column};
    for (Expression* side : {&left, &right}) {
      side->key_column = side->column;
      call.items.push_back(std::move(*side));
    }
    return call;
  }

  Expression term() {
    const Depth depth(*this);
    const char c = peek();
    if (c == '(') {
      ++at_;
      Expression inner = sum();
      take(')', "an operator or )");
      return inner;
    }
    if (c == '[') return list();
    if (c == '\'' || c == '"') return quoted(c);
    if (is_digit(c) || c == '-' || c == '.') return number();
    if (is_letter(c)) return name_or_call();
    expected("a name, a number or a list");
  }

  Expression list() {
    Expression result{.kind = Expression::Kind::list, .column = column()};
    ++at_;
    while (peek() != ']') {
      result.items.push_back(sum());
      if (peek() != ']') take(',', ", or ]");
    }
    ++at_;
    return result;
  }

  Expression quoted(char quote) {
    Expression result{.kind = Expression::Kind::text, .column = column()};
    const auto end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) expected("a closing quote");
    result.text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return result;
  }

  Expression number() {
    const size_t start = at_;
    Expression result{.kind = Expression::Kind::number, .column = column()};
    if (text_[at_] == '-') ++at_;
    while (at_ < text_.size() &&
           (is_digit(text_[at_]) || is_letter(text_[at_]) || text_[at_] == '.' || in_exponent()))
      ++at_;
    result.text = text_.substr(start, at_ - start);
    return result;
  }

  /// The sign of 1e-3.
  bool in_exponent() const {
    const char before = text_[at_ - 1];
    return (text_[at_] == '-' || text_[at_] == '+') && (before == 'e' || before == 'E');
  }

  std::string name() {
    const size_t start = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }

  Expression name_or_call() {
    Expression result{.kind = Expression::Kind::name, .column = column()};
    result.text = name();
    if (peek() != '(') return result;
    result.kind = Expression::Kind::call;
    ++at_;
    while (peek() != ')') {
      result.items.push_back(argument());
      if (peek() != ')') take(',', ", or )");
    }
    ++at_;
    return result;
  }

  Expression argument() {
    const size_t start = at_;
    const int place = column();
    std::string key;
    if (is_letter(peek())) {
      key = name();
      if (peek() == '=') {
        ++at_;
      } else {
        key.clear();
        at_ = start;
      }
    }
    Expression result = sum();
    result.key = std::move(key);
    result.key_column = place;
    return result;
  }

  /// The next character that is no blank, 0 at the end.
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  void take(char c, const char* what) {
    if (peek() != c) expected(what);
    ++at_;
  }

  int column() const { return setting_.at.column + static_cast<int>(at_); }

  [[noreturn]] void expected(const char* what) {
    if (peek() == '\0') fail_in(setting_, column(), "expected ", what, ", found the end");
    fail_in(setting_, column(), "expected ", what, ", found '", text_.substr(at_, 20), "'");
  }

  /// Guards the stack against ((((((...
  struct Depth {
    explicit Depth(Parser& parser) : parser(parser) {
      if (++parser.depth_ > kDeepest)
        fail_in(parser.setting_, parser.column(), "more than ", kDeepest, " levels of brackets");
    }
    ~Depth() { --parser.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    Parser& parser;
  };

  const Setting& setting_;
  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Expression parse_expression(const Setting& setting) { return Parser(setting).whole(); }

}  // namespace argosy
