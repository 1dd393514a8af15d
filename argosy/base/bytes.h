#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "argosy/base/error.h"

namespace argosy {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "argosy's formats are little-endian");

template <class T>
concept Plain = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>;

/// The destination of a save: a growing buffer or a file.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void write(std::span<const std::byte> bytes) = 0;

  template <Plain T>
  void put(const T& value) {
    write(std::as_bytes(std::span(&value, 1)));
  }
  template <Plain T>
  void put_all(std::span<const T> values) {
    write(std::as_bytes(values));
  }
  /// 32-bit length, then the characters.
  void put_text(std::string_view text) {
    put(static_cast<uint32_t>(text.size()));
    write(std::as_bytes(std::span(text)));
  }
};

/// Bytes to read one after the other, with every length checked: one that ends early throws
/// DataError naming `what`.
class ByteReader {
 public:
  explicit ByteReader(std::string what) : what_(std::move(what)) {}
  virtual ~ByteReader() = default;

  /// Good until the next call.
  virtual std::span<const std::byte> take(size_t n) = 0;
  virtual size_t left() const = 0;

  template <Plain T>
  T get() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  template <Plain T>
  void get_all(std::span<T> values) {
    if (!values.empty())
      std::memcpy(values.data(), take(values.size_bytes()).data(), values.size_bytes());
  }
  std::string get_text() {
    const auto part = take(get<uint32_t>());
    return std::string(reinterpret_cast<const char*>(part.data()), part.size());
  }
  const std::string& what() const { return what_; }

 protected:
  void check_left(size_t n) const {
    check<DataError>(n <= left(), what_, ": ends early, ", n, " bytes expected and ", left(),
                     " left");
  }

 private:
  std::string what_;
};

/// A ByteReader over memory that outlives it; the spans it returns stay valid.
class ByteSource final : public ByteReader {
 public:
  ByteSource(std::span<const std::byte> bytes, std::string what)
      : ByteReader(std::move(what)), bytes_(bytes) {}

  std::span<const std::byte> take(size_t n) override {
    check_left(n);
    const auto part = bytes_.first(n);
    bytes_ = bytes_.subspan(n);
    return part;
  }
  size_t left() const override { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

/// A ByteSink in memory.
class ByteBuffer final : public ByteSink {
 public:
  // Not inlined: g++ 12 warns of overflows that cannot be where it sees a buffer's whole life.
  [[gnu::noinline]] void write(std::span<const std::byte> bytes) override {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace argosy
