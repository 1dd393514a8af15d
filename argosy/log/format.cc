#include "argosy/log/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "argosy/base/bytes.h"
#include "argosy/base/error.h"
#include "argosy/base/hash.h"
#include "argosy/base/rng.h"

namespace argosy {
namespace {

constexpr std::array<char, 8> kSegmentMagic = {'A', 'R', 'G', 'O', 'L', 'O', 'G', '\n'};
constexpr uint32_t kVersion = 1;
constexpr uint32_t kFrameMagic = 0x4d524641;        // "AFRM"
constexpr uint64_t kMaxHeader = uint64_t{1} << 28;  // a catalogue of six million segments
constexpr const char* kSuffix = ".seg";
constexpr size_t kDigits = 10;

/// Of a catalogue.
struct Entry {
  uint64_t number, first_record, last_record, bytes, sealed;
};
static_assert(sizeof(Entry) == 40);

uint64_t frame_sum(const LogFrameHeader& header, uint64_t seed) {
  const auto bytes = std::as_bytes(std::span(&header, 1));
  return hash64(bytes.first(offsetof(LogFrameHeader, sum)), seed);
}

void check_catalogue(const LogSegmentHeader& header, const std::string& what) {
  uint64_t number = 0, record = 0;
  for (const LogSegment& entry : header.catalogue) {
    check<DataError>(entry.number > number && entry.number < header.segment &&
                         entry.first_record > record && entry.last_record + 1 >= entry.first_record,
                     what, ": its catalogue has segment ", entry.number, " with records ",
                     entry.first_record, " to ", entry.last_record, " after segment ", number,
                     " and record ", record);
    number = entry.number;
    record = entry.last_record;
  }
  check<DataError>(header.segment > 0 && header.first_record > record, what,
                   ": begins with record ", header.first_record, ", expected one after ", record);
}

}  // namespace

std::string log_segment_name(uint64_t number) { return fmt::format("{:010}{}", number, kSuffix); }

std::optional<uint64_t> log_segment_number(const std::string& name) {
  if (name.size() != kDigits + std::strlen(kSuffix) || !name.ends_with(kSuffix)) return {};
  uint64_t number = 0;
  for (const char digit : name.substr(0, kDigits)) {
    if (digit < '0' || digit > '9') return {};
    number = number * 10 + static_cast<uint64_t>(digit - '0');
  }
  return number;
}

std::vector<std::byte> encode_log_header(const LogSegmentHeader& header) {
  const size_t size = kLogPrefix + 3 * sizeof(uint64_t) + sizeof(uint32_t) +
                      header.identity.size() + sizeof(uint32_t) +
                      header.catalogue.size() * sizeof(Entry) + sizeof(uint64_t);
  ByteBuffer out;
  out.put(kSegmentMagic);
  out.put(kVersion);
  out.put(uint32_t{0});
  out.put(static_cast<uint64_t>(size));
  out.put(header.segment);
  out.put(header.first_record);
  out.put(header.salt);
  out.put_text(header.identity);
  out.put(static_cast<uint32_t>(header.catalogue.size()));
  for (const LogSegment& entry : header.catalogue)
    out.put(Entry{entry.number, entry.first_record, entry.last_record, entry.bytes,
                  entry.sealed ? 1U : 0U});
  out.put(hash64(out.bytes()));
  return {out.bytes().begin(), out.bytes().end()};
}

uint64_t log_header_bytes(std::span<const std::byte> prefix, const std::string& what) {
  check<DataError>(prefix.size() >= kLogPrefix, what, ": ends at ", prefix.size(),
                   ", expected the header of a log's segment");
  ByteSource in(prefix, what);
  check<DataError>(in.get<std::array<char, 8>>() == kSegmentMagic, what,
                   ": not a segment of a log, its first bytes are others");
  const auto version = in.get<uint32_t>();
  check<DataError>(version == kVersion, what, ": version ", version, " of a log, expected ",
                   kVersion);
  in.get<uint32_t>();
  const auto size = in.get<uint64_t>();
  check<DataError>(size > kLogPrefix && size <= kMaxHeader, what, ": a header of ", size,
                   " bytes, expected ", kLogPrefix, " to ", kMaxHeader);
  return size;
}

LogSegmentHeader decode_log_header(std::span<const std::byte> bytes, const std::string& what) {
  check<DataError>(bytes.size() > kLogPrefix + sizeof(uint64_t), what, ": a header of ",
                   bytes.size(), " bytes");
  const auto summed = bytes.first(bytes.size() - sizeof(uint64_t));
  ByteSource sum(bytes.last(sizeof(uint64_t)), what), in(summed.subspan(kLogPrefix), what);
  check<DataError>(sum.get<uint64_t>() == hash64(summed), what,
                   ": the checksum of its header, at offset ", summed.size(),
                   ", does not fit the bytes before it");
  LogSegmentHeader header;
  header.segment = in.get<uint64_t>();
  header.first_record = in.get<uint64_t>();
  header.salt = in.get<uint64_t>();
  header.identity = in.get_text();
  const auto entries = in.get<uint32_t>();
  check<DataError>(in.left() == entries * sizeof(Entry), what, ": a catalogue of ", in.left(),
                   " bytes, expected ", entries, " entries");
  for (uint32_t i = 0; i < entries; ++i) {
    const auto entry = in.get<Entry>();
    header.catalogue.push_back({.number = entry.number,
                                .first_record = entry.first_record,
                                .last_record = entry.last_record,
                                .bytes = entry.bytes,
                                .sealed = entry.sealed != 0});
  }
  check_catalogue(header, what);
  return header;
}

uint64_t log_seed(const LogSegmentHeader& header) {
  return mix(mix(hash64(header.identity) + header.segment) + header.salt);
}

uint64_t log_payload_sum(std::span<const std::span<const std::byte>> parts) {
  if (parts.size() == 1) return hash64(parts.front());
  RunningHash sum;
  for (const auto& part : parts) sum.add(part);
  return sum.digest();
}

void seal_log_frame(LogFrameHeader& header, uint64_t seed) {
  header.magic = kFrameMagic;
  header.sum = frame_sum(header, seed);
}

std::optional<LogFrameHeader> find_log_frame(std::span<const std::byte> bytes, uint64_t seed) {
  LogFrameHeader header;
  if (bytes.size() < sizeof(header)) return {};
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kFrameMagic || header.sum != frame_sum(header, seed)) return {};
  return header;
}

std::optional<size_t> find_log_magic(std::span<const std::byte> bytes) {
  static constexpr std::array<std::byte, 4> kBytes = {std::byte{'A'}, std::byte{'F'},
                                                      std::byte{'R'}, std::byte{'M'}};
  const auto found = std::search(bytes.begin(), bytes.end(), kBytes.begin(), kBytes.end());
  if (found == bytes.end()) return {};
  return static_cast<size_t>(found - bytes.begin());
}

uint64_t chain_log_sums(uint64_t chain, uint64_t sum) { return mix(chain + mix(sum)); }

}  // namespace argosy
