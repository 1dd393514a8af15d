// A pickle is a program for a machine with a stack and a memo. Values lie in one list and name each
// other by their place in it, so cycles and depth cost nothing to let go of.
#include "argosy/ckpt/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>

#include "argosy/base/bytes.h"
#include "argosy/base/error.h"

namespace argosy {
namespace {

using Ref = uint32_t;  // place of a value
constexpr Ref kNone = 0;

enum class Kind : uint8_t {
  none,
  number,
  text,
  bytes,
  sequence,  // a list or a tuple
  dict,
  global,  // a name of Python's; `text` says which
  dtype,   // `text` is its code, such as f4
  array,
};

struct Value {
  Kind kind = Kind::none;
  double number = 0;
  int64_t integer = 0;  // the same where is_integer
  bool is_integer = false;
  std::string_view text = {};             // of the input, or of `decoded`
  std::span<const std::byte> bytes = {};  // likewise; of an array: its content
  std::vector<Ref> items = {};            // of a dict: key, value, key, ...
  std::vector<int64_t> shape = {};        // of an array
  std::string_view code = {};             // of an array: f4
};

/// What a file of arrays may name, and what for.
enum class Callable : uint8_t {
  reconstruct,
  ndarray,
  dtype,
  frombuffer,
  scalar,
  tuple,
  bytes,
  ordered_dict,
  encode,
  eval
};

std::optional<Callable> callable_of(std::string_view name) {
  static const std::unordered_map<std::string_view, Callable> kKnown = {
      {"numpy.core.multiarray _reconstruct", Callable::reconstruct},
      {"numpy._core.multiarray _reconstruct", Callable::reconstruct},
      {"numpy ndarray", Callable::ndarray},
      {"numpy dtype", Callable::dtype},
      {"numpy.core.numeric _frombuffer", Callable::frombuffer},
      {"numpy._core.numeric _frombuffer", Callable::frombuffer},
      {"numpy.core.multiarray scalar", Callable::scalar},
      {"numpy._core.multiarray scalar", Callable::scalar},
      {"builtins tuple", Callable::tuple},
      {"__builtin__ tuple", Callable::tuple},
      {"builtins bytes", Callable::bytes},
      {"__builtin__ bytes", Callable::bytes},
      {"builtins bytearray", Callable::bytes},
      {"__builtin__ bytearray", Callable::bytes},
      {"collections OrderedDict", Callable::ordered_dict},
      {"_codecs encode", Callable::encode},
      {"builtins eval", Callable::eval},
      {"__builtin__ eval", Callable::eval},
  };
  const auto found = kKnown.find(name);
  if (found == kKnown.end()) return std::nullopt;
  return found->second;
}

struct ElementType {
  std::string_view code;
  size_t size;
  DType dtype;  // of the tensor
};
const ElementType* element_type(std::string_view code) {
  static constexpr ElementType kTypes[] = {
      {"f2", 2, DType::f32}, {"f4", 4, DType::f32}, {"f8", 8, DType::f64}, {"i4", 4, DType::i32},
      {"i8", 8, DType::i64}, {"u1", 1, DType::u8},  {"b1", 1, DType::b8}};
  const auto* const found = std::ranges::find(kTypes, code, &ElementType::code);
  return found == std::end(kTypes) ? nullptr : found;
}

float float_of_half(uint16_t half) {
  const int exponent = half >> 10 & 0x1F;
  const int fraction = half & 0x3FF;
  constexpr int kBias = 15, kFractionBits = 10, kMostExponent = 31;
  float value = 0;
  if (exponent == kMostExponent)
    value = fraction == 0 ? INFINITY : NAN;
  else if (exponent == 0)
    value = std::ldexp(static_cast<float>(fraction), 1 - kBias - kFractionBits);
  else
    value = std::ldexp(static_cast<float>(fraction + 1024), exponent - kBias - kFractionBits);
  return (half & 0x8000) != 0 ? -value : value;
}

class Unpickler {
 public:
  Unpickler(std::span<const std::byte> bytes, const std::string& what)
      : all_(bytes), in_(bytes, what), what_(what), values_(1) {}

  /// Runs the program; returns the value it ends with.
  Ref run() {
    while (true) {
      at_ = offset();
      const auto op = in_.get<uint8_t>();
      if (op == '.') return pop();
      step(op);
    }
  }
  const Value& operator[](Ref ref) const { return values_[ref]; }

 private:
  static constexpr size_t kMostRank = Shape::kMaxRank;

  size_t offset() const { return all_.size() - in_.left(); }
  template <class... Parts>
  void expect(bool ok, const Parts&... parts) const {
    check<DataError>(ok, what_, ": offset ", at_, ": ", parts...);
  }

  // Values and the stack.

  /// Not more of them than bytes: each instruction makes one at most.
  Ref add(Value value) {
    expect(values_.size() < std::numeric_limits<Ref>::max(), "more values than there can be");
    values_.push_back(std::move(value));
    return static_cast<Ref>(values_.size() - 1);
  }
  void push(Value value) { stack_.push_back(add(std::move(value))); }
  void push_integer(int64_t integer) {
    Value value{.kind = Kind::number};
    value.number = static_cast<double>(integer);
    value.integer = integer;
    value.is_integer = true;
    push(std::move(value));
  }
  void push_text(uint64_t size) { push({.kind = Kind::text, .text = take_text(size)}); }
  void push_bytes(uint64_t size) { push({.kind = Kind::bytes, .bytes = in_.take(size)}); }
  std::string_view take_text(uint64_t size) {
    const auto bytes = in_.take(size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Ref pop() {
    expect(stack_.size() > floor(), "takes a value from an empty stack");
    const Ref top = stack_.back();
    stack_.pop_back();
    return top;
  }
  Ref top() const {
    expect(stack_.size() > floor(), "needs a value on an empty stack");
    return stack_.back();
  }
  /// What lies above the last mark.
  std::vector<Ref> pop_mark() {
    expect(!marks_.empty(), "has no mark");
    std::vector<Ref> above(stack_.begin() + static_cast<ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return above;
  }
  void push_sequence(size_t n) {
    std::vector<Ref> items(n);
    for (size_t i = n; i-- > 0;) items[i] = pop();
    push({.kind = Kind::sequence, .items = std::move(items)});
  }
  void append(const std::vector<Ref>& items) {
    Value& list = values_[top()];
    expect(list.kind == Kind::sequence, "appends to what is no list");
    list.items.insert(list.items.end(), items.begin(), items.end());
  }
  void set_items(const std::vector<Ref>& items) {
    Value& dict = values_[top()];
    expect(dict.kind == Kind::dict && items.size() % 2 == 0, "sets items of what is no dict");
    dict.items.insert(dict.items.end(), items.begin(), items.end());
  }
  void remember(uint64_t place) { memo_[place] = top(); }
  void recall(uint64_t place) {
    const auto found = memo_.find(place);
    expect(found != memo_.end(), "recalls ", place, ", which was never remembered");
    stack_.push_back(found->second);
  }

  // Instructions.

  void step(uint8_t op) {
    if (containers(op) || numbers(op) || texts(op) || memory(op)) return;
    switch (op) {
      case 0x80: {  // PROTO
        const auto protocol = in_.get<uint8_t>();
        return expect(protocol >= 2 && protocol <= 5, "protocol ", static_cast<int>(protocol),
                      ", expected 2 to 5");
      }
      case 0x95:  // FRAME
        in_.get<uint64_t>();
        return;
      case 'c': {  // GLOBAL
        const std::string_view module = take_line();
        return push_global(module, take_line());
      }
      case 0x93: {  // STACK_GLOBAL
        const Value& name = values_[pop()];
        const Value& module = values_[pop()];
        expect(name.kind == Kind::text && module.kind == Kind::text, "a name that is no text");
        return push_global(module.text, name.text);
      }
      case 'R': {  // REDUCE
        const Ref arguments = pop();
        return reduce(pop(), arguments);
      }
      case 'b': {  // BUILD
        const Ref state = pop();
        return build(values_[top()], values_[state]);
      }
      default:
        expect(false, fmt::format("instruction 0x{:02x}, which no file of arrays needs", op));
    }
  }

  bool containers(uint8_t op) {
    switch (op) {
      case '(':  // MARK
        marks_.push_back(stack_.size());
        return true;
      case '}':  // EMPTY_DICT
        push({.kind = Kind::dict});
        return true;
      case ']':  // EMPTY_LIST
      case ')':  // EMPTY_TUPLE
        push({.kind = Kind::sequence});
        return true;
      case 't':  // TUPLE
        push({.kind = Kind::sequence, .items = pop_mark()});
        return true;
      case 0x85:  // TUPLE1, 2, 3
      case 0x86:
      case 0x87:
        push_sequence(op - 0x84U);
        return true;
      case 'a': {  // APPEND
        const Ref item = pop();
        append({item});
        return true;
      }
      case 'e':  // APPENDS
        append(pop_mark());
        return true;
      case 's': {  // SETITEM
        const Ref value = pop(), key = pop();
        set_items({key, value});
        return true;
      }
      case 'u':  // SETITEMS
        set_items(pop_mark());
        return true;
      default:
        return false;
    }
  }

  bool numbers(uint8_t op) {
    switch (op) {
      case 'N':  // NONE
        stack_.push_back(kNone);
        return true;
      case 0x88:  // NEWTRUE, NEWFALSE
      case 0x89:
        push_integer(op == 0x88 ? 1 : 0);
        return true;
      case 'J':  // BININT
        push_integer(in_.get<int32_t>());
        return true;
      case 'K':  // BININT1
        push_integer(in_.get<uint8_t>());
        return true;
      case 'M':  // BININT2
        push_integer(in_.get<uint16_t>());
        return true;
      case 0x8a:  // LONG1
        push_integer(take_long(in_.get<uint8_t>()));
        return true;
      case 'G': {  // BINFLOAT, of the highest byte first
        auto bits = in_.get<uint64_t>();
        bits = __builtin_bswap64(bits);
        Value value{.kind = Kind::number};
        std::memcpy(&value.number, &bits, sizeof bits);
        push(std::move(value));
        return true;
      }
      default:
        return false;
    }
  }

  bool texts(uint8_t op) {
    switch (op) {
      case 0x8c:  // SHORT_BINUNICODE
      case 'U':   // SHORT_BINSTRING
        push_text(in_.get<uint8_t>());
        return true;
      case 'X':  // BINUNICODE
      case 'T':  // BINSTRING
        push_text(in_.get<uint32_t>());
        return true;
      case 0x8d:  // BINUNICODE8
        push_text(in_.get<uint64_t>());
        return true;
      case 'C':  // SHORT_BINBYTES
        push_bytes(in_.get<uint8_t>());
        return true;
      case 'B':  // BINBYTES
        push_bytes(in_.get<uint32_t>());
        return true;
      case 0x8e:  // BINBYTES8
      case 0x96:  // BYTEARRAY8
        push_bytes(in_.get<uint64_t>());
        return true;
      default:
        return false;
    }
  }

  bool memory(uint8_t op) {
    switch (op) {
      case 'q':  // BINPUT
        remember(in_.get<uint8_t>());
        return true;
      case 'r':  // LONG_BINPUT
        remember(in_.get<uint32_t>());
        return true;
      case 0x94:  // MEMOIZE
        remember(memo_.size());
        return true;
      case 'h':  // BINGET
        recall(in_.get<uint8_t>());
        return true;
      case 'j':  // LONG_BINGET
        recall(in_.get<uint32_t>());
        return true;
      case '0':  // POP
        pop();
        return true;
      default:
        return false;
    }
  }

  int64_t take_long(uint8_t size) {
    expect(size <= sizeof(int64_t), "a number of ", static_cast<int>(size), " bytes, expected 8");
    const auto bytes = in_.take(size);
    uint64_t number = 0;
    for (size_t i = 0; i < size; ++i) number |= static_cast<uint64_t>(bytes[i]) << (8 * i);
    const bool negative = size > 0 && (bytes[size - 1] & std::byte{0x80}) != std::byte{0};
    if (negative && size < sizeof number) number |= ~uint64_t{0} << (8 * size);
    return static_cast<int64_t>(number);
  }

  std::string_view take_line() {
    constexpr size_t kLongest = 256;  // no name is as long
    size_t size = 0;
    const auto rest = all_.subspan(offset());
    while (size < rest.size() && size < kLongest && rest[size] != std::byte{'\n'}) ++size;
    expect(size < rest.size() && size < kLongest, "a name without an end");
    const std::string_view line = take_text(size);
    in_.take(1);
    return line;
  }

  // Names of Python's.

  void push_global(std::string_view module, std::string_view name) {
    std::string full(module.substr(0, 200));
    full += ' ';
    full += name.substr(0, 200);
    expect(callable_of(full).has_value(), "names '", printable(full),
           "', which no file of arrays needs; nothing of it was executed");
    Value value{.kind = Kind::global};
    value.integer = static_cast<int64_t>(*callable_of(full));
    push(std::move(value));
  }
  static std::string printable(std::string text) {
    for (char& c : text)
      if (c < ' ' || c > '~') c = '?';
    return text;
  }
  bool is(const Value& value, Callable callable) const {
    return value.kind == Kind::global && value.integer == static_cast<int64_t>(callable);
  }

  const Value& argument(const Value& arguments, size_t i, Kind kind) const {
    expect(i < arguments.items.size() && values_[arguments.items[i]].kind == kind,
           "a call with other arguments than expected");
    return values_[arguments.items[i]];
  }

  void reduce(Ref function, Ref arguments_ref) {
    constexpr size_t kMostArguments = 8;
    const size_t n = values_[arguments_ref].items.size();
    expect(values_[function].kind == Kind::global &&
               values_[arguments_ref].kind == Kind::sequence && n <= kMostArguments,
           "calls what is no function");
    const Value arguments = values_[arguments_ref];  // values may move while it is called
    switch (static_cast<Callable>(values_[function].integer)) {
      case Callable::reconstruct:
        expect(n == 3 && is(values_[arguments.items[0]], Callable::ndarray),
               "reconstructs what is no array");
        return push({.kind = Kind::array});
      case Callable::dtype:
        return push({.kind = Kind::dtype, .text = argument(arguments, 0, Kind::text).text});
      case Callable::frombuffer:
        expect(n == 4, "an array of a buffer with ", n, " arguments, expected 4");
        return push(array(argument(arguments, 0, Kind::bytes), argument(arguments, 1, Kind::dtype),
                          argument(arguments, 2, Kind::sequence),
                          argument(arguments, 3, Kind::text).text == "C"));
      case Callable::scalar:
        return push(array(argument(arguments, 1, Kind::bytes), argument(arguments, 0, Kind::dtype),
                          Value{.kind = Kind::sequence}, true));
      case Callable::tuple:
        expect(n <= 1, "a tuple of ", n, " arguments");
        if (n == 0) return push({.kind = Kind::sequence});
        argument(arguments, 0, Kind::sequence);
        return stack_.push_back(arguments.items[0]);
      case Callable::bytes:
        expect(n <= 1, "bytes of ", n, " arguments");
        if (n == 0) return push({.kind = Kind::bytes});
        argument(arguments, 0, Kind::bytes);
        return stack_.push_back(arguments.items[0]);
      case Callable::ordered_dict:
        expect(n == 0, "a dict with arguments");
        return push({.kind = Kind::dict});
      case Callable::encode:
        return encode(argument(arguments, 0, Kind::text).text);
      case Callable::eval:
        return data_of(arguments);
      case Callable::ndarray:
        break;
    }
    expect(false, "calls what is no function");
  }

  /// Bytes in protocol 2: a text of the letters 0 to 255, in UTF-8.
  void encode(std::string_view text) {
    decoded_bytes_ += text.size();
    expect(decoded_bytes_ <= all_.size(), "the same text again and again");
    std::vector<std::byte>& bytes = decoded_.emplace_back();
    bytes.reserve(text.size());
    for (size_t i = 0; i < text.size(); ++i) {
      auto letter = static_cast<uint8_t>(text[i]);
      if (letter >= 0x80) {
        expect((letter & 0xFE) == 0xC2 && i + 1 < text.size(), "bytes that are no latin-1 text");
        const auto next = static_cast<uint8_t>(text[++i]);
        expect((next & 0xC0) == 0x80, "bytes that are no latin-1 text");
        letter = static_cast<uint8_t>((letter & 0x03) << 6 | (next & 0x3F));
      }
      bytes.push_back(std::byte{letter});
    }
    push({.kind = Kind::bytes, .bytes = bytes});
  }

  /// What Paddle writes for a tensor of a static program: eval('data', {'data': array}). It stands
  /// for the array; any other call of eval is refused.
  void data_of(const Value& arguments) {
    expect(arguments.items.size() == 2 && argument(arguments, 0, Kind::text).text == "data",
           "calls eval, which is never done");
    const Value& names = argument(arguments, 1, Kind::dict);
    expect(names.items.size() == 2 && values_[names.items[0]].text == "data",
           "calls eval, which is never done");
    stack_.push_back(names.items[1]);
  }

  void build(Value& object, const Value& state) {
    if (object.kind == Kind::dtype) {
      const Ref order = state.items.size() > 1 ? state.items[1] : kNone;
      return expect(state.kind == Kind::sequence && values_[order].kind == Kind::text &&
                        (values_[order].text == "<" || values_[order].text == "|"),
                    "an array of another byte order, expected little-endian");
    }
    expect(object.kind == Kind::array && object.code.empty() && state.kind == Kind::sequence &&
               state.items.size() == 5,
           "sets the state of what is no array");
    const Value& fortran = argument(state, 3, Kind::number);
    object = array(argument(state, 4, Kind::bytes), argument(state, 2, Kind::dtype),
                   argument(state, 1, Kind::sequence), fortran.integer == 0);
  }

  Value array(const Value& content, const Value& dtype, const Value& shape, bool by_rows) const {
    const ElementType* const type = element_type(dtype.text);
    expect(type != nullptr, "an array of '", printable(std::string(dtype.text.substr(0, 20))),
           "', expected f2, f4, f8, i4, i8, u1 or b1");
    expect(shape.items.size() <= kMostRank, "an array of ", shape.items.size(), " axes, expected ",
           kMostRank, " at most");
    Value value{.kind = Kind::array};
    value.code = type->code;
    value.bytes = content.bytes;
    uint64_t count = 1, wide = 0;
    for (const Ref ref : shape.items) {
      const Value& size = values_[ref];
      expect(size.kind == Kind::number && size.is_integer && size.integer >= 0, "a bad shape");
      value.shape.push_back(size.integer);
      expect(size.integer == 0 || count <= all_.size() / static_cast<uint64_t>(size.integer),
             "an array that is larger than the file");
      count *= static_cast<uint64_t>(size.integer);
      wide += size.integer > 1 ? 1 : 0;
    }
    expect(count * type->size == content.bytes.size(), "an array of ", content.bytes.size(),
           " bytes, expected ", count * type->size);
    expect(by_rows || wide <= 1, "an array in the order of columns, expected rows (C order)");
    return value;
  }

  const std::span<const std::byte> all_;
  ByteSource in_;
  const std::string what_;
  size_t at_ = 0;  // offset of the instruction
  std::vector<Value> values_;
  std::vector<Ref> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Ref> memo_;
  std::vector<std::vector<std::byte>> decoded_;
  size_t decoded_bytes_ = 0;
};

/// Turns values into tensors, once each.
class Arrays {
 public:
  Arrays(const Unpickler& pickle, size_t file_bytes, const std::string& what)
      : pickle_(pickle), left_(kMost * file_bytes), what_(what) {}

  void add_dict(const Value& dict, const std::string& prefix, int depth) {
    constexpr int kDeepest = 8;
    check<DataError>(depth < kDeepest, what_, ": dicts in dicts, more than ", kDeepest, " deep");
    for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const Value& key = pickle_[dict.items[i]];
      check<DataError>(key.kind == Kind::text, what_, ": a dict whose keys are no texts");
      check<DataError>(key.text.find("UnpackBigParamInfor@@") == std::string_view::npos, what_,
                       ": has parameters in slices (protocol 2 and 3, above 1 GB), expected "
                       "paddle.save(..., protocol=4)");
      take(prefix.size() + key.text.size());
      add(pickle_[dict.items[i + 1]], prefix + std::string(key.text), depth);
    }
  }
  PickledArrays found;

 private:
  // Tensors and names take no more than this times the bytes of the file, which may name a value
  // again and again.
  static constexpr size_t kMost = 8;

  void take(size_t bytes) {
    check<DataError>(bytes <= left_, what_, ": the same values again and again");
    left_ -= bytes;
  }

  void add(const Value& value, const std::string& name, int depth) {
    if (value.kind == Kind::array && !value.code.empty()) return add_array(value, name);
    if (value.kind == Kind::dict) return add_dict(value, name + ".", depth + 1);
    if (value.kind == Kind::number) return add_number(value, name);
    if (value.kind == Kind::text) return add_text(value, name);
    // Paddle's form of a tensor.
    if (value.kind == Kind::sequence && value.items.size() == 2 &&
        pickle_[value.items[0]].kind == Kind::text && pickle_[value.items[1]].kind == Kind::array) {
      add_text(pickle_[value.items[0]], name);
      add(pickle_[value.items[1]], name, depth);
    }
  }

  void add_array(const Value& array, const std::string& name) {
    const ElementType& type = *element_type(array.code);
    take(array.bytes.size() * (type.size == sizeof(uint16_t) ? 2 : 1));
    NamedTensor& tensor =
        found.tensors.emplace_back(NamedTensor{name, Tensor(Shape(array.shape), type.dtype)});
    if (type.size == sizeof(uint16_t)) {
      for (size_t i = 0; i < tensor.value.as<float>().size(); ++i) {
        uint16_t half = 0;
        std::memcpy(&half, array.bytes.data() + i * sizeof half, sizeof half);
        tensor.value.as<float>()[i] = float_of_half(half);
      }
    } else if (!array.bytes.empty()) {
      std::memcpy(tensor.value.data(), array.bytes.data(), array.bytes.size());
    }
  }

  void add_text(const Value& value, const std::string& name) {
    take(value.text.size());
    found.texts[name] = value.text;
  }

  void add_number(const Value& value, const std::string& name) {
    take(sizeof(double));
    found.tensors.push_back({name, value.is_integer ? Tensor::of<int64_t>({1}, {value.integer})
                                                    : Tensor::of<double>({1}, {value.number})});
  }

  const Unpickler& pickle_;
  size_t left_;
  const std::string& what_;
};

}  // namespace

PickledArrays read_pickled_arrays(std::span<const std::byte> bytes, const std::string& what) {
  constexpr size_t kMostBytes = size_t{1} << 36;
  check<DataError>(bytes.size() < kMostBytes, what, ": ", bytes.size(), " bytes of a pickle");
  Unpickler pickle(bytes, what);
  const Ref root = pickle.run();
  check<DataError>(pickle[root].kind == Kind::dict, what,
                   ": a pickle of something else, expected a dict of arrays");
  Arrays arrays(pickle, bytes.size(), what);
  arrays.add_dict(pickle[root], "", 0);
  return std::move(arrays.found);
}

}  // namespace argosy
