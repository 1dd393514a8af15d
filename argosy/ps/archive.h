#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "argosy/base/bytes.h"

// A struct that says its fields once, by `template <class A> void fields(A& archive)`, is written
// and read by the same list.
namespace argosy::ps {

struct NoArchive {
  template <class... T>
  void operator()(T&...) {}
};
template <class T>
concept HasFields = requires(T value, NoArchive archive) {
  value.fields(archive);
};

class FieldWriter {
 public:
  explicit FieldWriter(ByteSink& out) : out_(out) {}

  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }

 private:
  template <Plain T>
  requires(!HasFields<T>) void put(const T& value) { out_.put(value); }
  void put(const std::string& text) { out_.put_text(text); }
  template <class T>
  void put(const std::vector<T>& values) {
    out_.put(static_cast<uint64_t>(values.size()));
    if constexpr (Plain<T> && !HasFields<T>)
      out_.put_all(std::span<const T>(values));
    else
      for (const T& value : values) put(value);
  }
  template <HasFields T>
  void put(const T& value) {
    const_cast<T&>(value).fields(*this);
  }

  ByteSink& out_;
};

/// Throws DataError for what cannot have been written, before it takes memory for it.
class FieldReader {
 public:
  explicit FieldReader(ByteReader& in) : in_(in) {}

  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }

 private:
  template <Plain T>
  requires(!HasFields<T>) void get(T& value) { value = in_.get<T>(); }
  void get(std::string& text) { text = in_.get_text(); }
  template <class T>
  void get(std::vector<T>& values) {
    constexpr bool kAtOnce = Plain<T> && !HasFields<T>;
    const auto n = in_.get<uint64_t>();
    check<DataError>(n <= in_.left() / least_bytes<T>(), in_.what(), ": ", n, " values announced, ",
                     in_.left(), " bytes left");
    values.resize(n);
    if constexpr (kAtOnce)
      in_.get_all(std::span<T>(values));
    else
      for (T& value : values) get(value);
  }
  template <HasFields T>
  void get(T& value) {
    value.fields(*this);
  }

  /// The fewest bytes a value can take: those of an empty one.
  template <class T>
  static size_t least_bytes() {
    if constexpr (Plain<T> && !HasFields<T>) return sizeof(T);
    ByteBuffer empty;
    FieldWriter writer(empty);
    writer(T{});
    return std::max<size_t>(1, empty.bytes().size());
  }

  ByteReader& in_;
};

/// Which alternative it is, then its fields.
template <class... T>
std::vector<std::byte> encode_variant(const std::variant<T...>& value) {
  ByteBuffer out;
  out.put(static_cast<uint8_t>(value.index()));
  FieldWriter writer(out);
  std::visit([&](const auto& held) { writer(held); }, value);
  return {out.bytes().begin(), out.bytes().end()};
}

template <class T>
std::vector<std::byte> encode_fields(const T& value) {
  ByteBuffer out;
  FieldWriter writer(out);
  writer(value);
  return {out.bytes().begin(), out.bytes().end()};
}

/// Throws DataError that begins with `what`, also where bytes are left over.
template <class T>
T decode_fields(std::span<const std::byte> bytes, const std::string& what) {
  ByteSource in(bytes, what);
  FieldReader reader(in);
  T value{};
  reader(value);
  check<DataError>(in.left() == 0, what, ": ", in.left(), " bytes too many");
  return value;
}

/// Throws DataError that begins with `what`.
template <class Variant, size_t I = 0>
Variant decode_variant(std::span<const std::byte> bytes, const std::string& what) {
  check<DataError>(!bytes.empty(), what, ": is empty");
  if constexpr (I < std::variant_size_v<Variant>) {
    if (static_cast<size_t>(bytes[0]) != I) return decode_variant<Variant, I + 1>(bytes, what);
    return decode_fields<std::variant_alternative_t<I, Variant>>(bytes.subspan(1), what);
  } else {
    fail<DataError>(what, ": kind ", static_cast<int>(bytes[0]), ", expected less than ", I);
  }
}

}  // namespace argosy::ps
