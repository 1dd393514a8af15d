#include "argosy/data/unpack.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>

#include "argosy/base/error.h"

namespace argosy {
namespace {

constexpr size_t kPackedBlock = 1 << 17;
constexpr std::string_view kGzipMagic = "\x1f\x8b", kZstdMagic = "\x28\xb5\x2f\xfd",
                           kSkippableMagic = "\x2a\x4d\x18";  // after a byte 0x50 to 0x5f

/// The packed bytes of a stream, block by block, with their place in it.
class PackedBlocks {
 public:
  explicit PackedBlocks(std::unique_ptr<ByteStream> stream) : stream_(std::move(stream)) {}

  /// Bytes not consumed yet; empty only at the end.
  std::span<char> left() {
    if (at_ == size_) {
      offset_ += size_;
      size_ = stream_->read(block_);
      at_ = 0;
    }
    return std::span(block_).subspan(at_, size_ - at_);
  }
  void use(size_t n) { at_ += n; }
  size_t offset() const { return offset_ + at_; }
  const std::string& name() const { return stream_->name(); }

 private:
  std::unique_ptr<ByteStream> stream_;
  std::vector<char> block_ = std::vector<char>(kPackedBlock);
  size_t at_ = 0, size_ = 0, offset_ = 0;
};

class Gunzip final : public ByteStream {
 public:
  explicit Gunzip(std::unique_ptr<ByteStream> packed) : packed_(std::move(packed)) {
    constexpr int kGzip = 16 + MAX_WBITS;
    check<IoError>(inflateInit2(&state_, kGzip) == Z_OK, packed_.name(), ": zlib did not start");
  }
  ~Gunzip() override { inflateEnd(&state_); }

  size_t read(std::span<char> into) override {
    while (!between_members_ || next_member()) {
      const std::span<char> packed = packed_.left();
      state_.next_in = reinterpret_cast<Bytef*>(packed.data());
      state_.avail_in = static_cast<uInt>(packed.size());
      state_.next_out = reinterpret_cast<Bytef*>(into.data());
      const auto room = static_cast<uInt>(std::min<size_t>(into.size(), UINT32_MAX));
      state_.avail_out = room;
      const int status = inflate(&state_, Z_NO_FLUSH);
      packed_.use(packed.size() - state_.avail_in);
      const bool stuck = status == Z_BUF_ERROR && packed.empty();
      check<DataError>(
          (status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR) && !stuck,
          packed_.name(), ": damaged or truncated gzip at byte ", packed_.offset());
      between_members_ = status == Z_STREAM_END;
      if (state_.avail_out != room) return room - state_.avail_out;
    }
    return 0;
  }
  const std::string& name() const override { return packed_.name(); }

 private:
  /// Makes ready for another member; false at the end, which zeros may fill.
  bool next_member() {
    while (!packed_.left().empty() && packed_.left().front() == 0) packed_.use(1);
    if (packed_.left().empty()) return false;
    check<DataError>(packed_.left().front() == kGzipMagic[0], packed_.name(),
                     ": expected a gzip member or the end at byte ", packed_.offset());
    inflateReset(&state_);
    between_members_ = false;
    return true;
  }

  PackedBlocks packed_;
  z_stream state_{};
  bool between_members_ = false;
};

class Unzstd final : public ByteStream {
 public:
  explicit Unzstd(std::unique_ptr<ByteStream> packed) : packed_(std::move(packed)) {
    check<IoError>(state_ != nullptr, packed_.name(), ": zstd did not start");
  }

  size_t read(std::span<char> into) override {
    while (true) {
      const std::span<char> packed = packed_.left();
      if (packed.empty() && wanted_ == 0) return 0;
      ZSTD_inBuffer in{packed.data(), packed.size(), 0};
      ZSTD_outBuffer out{into.data(), into.size(), 0};
      wanted_ = ZSTD_decompressStream(state_.get(), &out, &in);
      packed_.use(in.pos);
      check<DataError>(!ZSTD_isError(wanted_), packed_.name(), ": damaged zstd at byte ",
                       packed_.offset(), ": ", ZSTD_getErrorName(wanted_));
      if (out.pos != 0) return out.pos;
      check<DataError>(!packed.empty() || wanted_ == 0, packed_.name(), ": truncated zstd at byte ",
                       packed_.offset());
    }
  }
  const std::string& name() const override { return packed_.name(); }

 private:
  struct Free {
    void operator()(ZSTD_DStream* state) const { ZSTD_freeDStream(state); }
  };
  PackedBlocks packed_;
  std::unique_ptr<ZSTD_DStream, Free> state_{ZSTD_createDStream()};
  size_t wanted_ = 0;  // 0 = a frame has ended and is given out whole
};

}  // namespace

Packing packing_of(std::string_view start) {
  if (start.starts_with(kGzipMagic)) return Packing::gzip;
  if (start.starts_with(kZstdMagic)) return Packing::zstd;
  const bool skippable = start.size() >= kMagicSize && (start[0] & 0xF0) == 0x50 &&
                         start.substr(1).starts_with(kSkippableMagic);
  return skippable ? Packing::zstd : Packing::none;
}

std::unique_ptr<ByteStream> gunzip(std::unique_ptr<ByteStream> packed) {
  return std::make_unique<Gunzip>(std::move(packed));
}

std::unique_ptr<ByteStream> unzstd(std::unique_ptr<ByteStream> packed) {
  return std::make_unique<Unzstd>(std::move(packed));
}

}  // namespace argosy
