#include "argosy/data/lines.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <random>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/samples/samples.h"

namespace argosy {
namespace {

std::string gzip(const std::string& plain) {
  z_stream state{};
  constexpr int kGzip = 16 + MAX_WBITS;
  deflateInit2(&state, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&state, plain.size()), '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  state.avail_in = static_cast<uInt>(plain.size());
  state.next_out = reinterpret_cast<Bytef*>(packed.data());
  state.avail_out = static_cast<uInt>(packed.size());
  deflate(&state, Z_FINISH);
  packed.resize(state.total_out);
  deflateEnd(&state);
  return packed;
}

std::string zstd(const std::string& plain) {
  std::string packed(ZSTD_compressBound(plain.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 3));
  return packed;
}

/// All lines, bad ones as !reason.
std::vector<std::string> lines_of(std::unique_ptr<ByteStream> bytes, LinesOptions options = {}) {
  Lines lines(std::move(bytes), options);
  std::vector<std::string> all;
  while (const auto line = lines.next()) {
    all.push_back(line->bad.empty() ? std::string(line->text) : "!" + line->bad);
    EXPECT_EQ(lines.number(), all.size());
  }
  EXPECT_FALSE(lines.next()) << "the end stays the end";
  return all;
}

std::unique_ptr<ByteStream> stream_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return unpack(memory_stream({bytes.begin(), bytes.end()}, "text"));
}

using Strings = std::vector<std::string>;

std::string many_lines(Strings& lines, unsigned seed) {
  std::mt19937_64 random(seed);
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    lines.emplace_back(random() % 200, static_cast<char>('a' + i % 26));
    text += lines.back() + "\n";
  }
  return text;
}

TEST(Lines, EndsMayBeMissingOrOfTwoBytes) {
  EXPECT_EQ(lines_of(stream_of("")), Strings{});
  EXPECT_EQ(lines_of(stream_of("\n")), Strings{""});
  EXPECT_EQ(lines_of(stream_of("a\nb")), (Strings{"a", "b"}));
  EXPECT_EQ(lines_of(stream_of("a\r\n\nb\r")), (Strings{"a", "", "b"}));
}

TEST(Lines, AreTheSameForAnyBlock) {
  Strings wanted;
  const std::string text = many_lines(wanted, 5);
  for (size_t block : {size_t{1}, size_t{7}, size_t{100}, size_t{4096}, size_t{1} << 20})
    EXPECT_EQ(lines_of(stream_of(text), {.block = block}), wanted) << block;
}

TEST(Lines, TooLongAndNulAreBadAndTheNextIsFine) {
  EXPECT_EQ(lines_of(stream_of("ok\n123456789\nok"), {.block = 4, .longest_line = 8}),
            (Strings{"ok", "!a line of 9 bytes, the limit is 8", "ok"}));
  EXPECT_EQ(lines_of(stream_of("12345678\r\n123456789012345"), {.block = 3, .longest_line = 8}),
            (Strings{"12345678", "!a line of 15 bytes, the limit is 8"}));
  using namespace std::string_literals;
  for (size_t block : {size_t{2}, size_t{100}})
    EXPECT_EQ(lines_of(stream_of("ok\nab\0c\n\nok\0"s), {.block = block}),
              (Strings{"ok", "!a NUL at byte 3", "", "!a NUL at byte 3"}));
}

TEST(Lines, SurvivesALineOfTenMegabytes) {
  std::string text = "a\n";
  text.resize(10'000'002, 'x');
  text += "\nb\n";
  EXPECT_EQ(lines_of(stream_of(text)),
            (Strings{"a", "!a line of 10000000 bytes, the limit is 1048576", "b"}));
  EXPECT_EQ(lines_of(stream_of(zstd(text))),
            (Strings{"a", "!a line of 10000000 bytes, the limit is 1048576", "b"}));
}

TEST(OpenFile, UnpacksByContentNotByName) {
  Strings wanted;
  const std::string text = many_lines(wanted, 6), half = text.substr(0, 777),
                    rest = text.substr(777);
  const TestFolder folder;
  EXPECT_EQ(lines_of(open_file(folder.write("plain.gz", text))), wanted);
  EXPECT_EQ(lines_of(open_file(folder.write("a", gzip(text)))), wanted);
  EXPECT_EQ(lines_of(open_file(folder.write("b", gzip(half) + gzip("") + gzip(rest)))), wanted);
  EXPECT_EQ(lines_of(open_file(folder.write("c", gzip(text) + std::string(600, '\0')))), wanted);
  EXPECT_EQ(lines_of(open_file(folder.write("d", zstd(text)))), wanted);
  const std::string skippable = std::string("\x5a\x2a\x4d\x18\x03\0\0\0abc", 11);
  EXPECT_EQ(lines_of(open_file(folder.write("e", skippable + zstd(half) + zstd(rest)))), wanted);
  EXPECT_EQ(lines_of(open_file(folder.write("f", gzip("")))), Strings{});
  EXPECT_EQ(lines_of(open_file(folder.write("g", ""))), Strings{});
}

TEST(OpenFile, RefusesDamagedBytesWithPathAndOffset) {
  Strings unused;
  const std::string text = many_lines(unused, 7);
  const TestFolder folder;
  const auto failure = [&](const std::string& content) {
    const std::string path = folder.write("x", content);
    const std::string message = message_of<DataError>([&] { lines_of(open_file(path)); });
    return message.starts_with(path) ? message.substr(path.size()) : message;
  };
  const std::string packed = gzip(text), other = zstd(text);
  const std::string half = std::to_string(packed.size() / 2);
  EXPECT_EQ(failure(packed.substr(0, packed.size() / 2)),
            ": damaged or truncated gzip at byte " + half);
  for (size_t cut : {size_t{4}, size_t{9}, packed.size() - 1})
    EXPECT_EQ(failure(packed.substr(0, cut)),
              ": damaged or truncated gzip at byte " + std::to_string(cut));
  EXPECT_EQ(failure(packed + "more"),
            ": expected a gzip member or the end at byte " + std::to_string(packed.size()));
  for (size_t cut : {size_t{4}, other.size() / 2, other.size() - 1})
    EXPECT_EQ(failure(other.substr(0, cut)), ": truncated zstd at byte " + std::to_string(cut));
  EXPECT_EQ(failure(other + "more").substr(0, 23), ": damaged zstd at byte ");
}

TEST(OpenFile, LivesThroughRandomDamage) {
  Strings unused;
  const std::string text = many_lines(unused, 8);
  const unsigned seed = 9;
  std::mt19937_64 random(seed);
  for (const std::string& whole : {gzip(text), zstd(text)}) {
    for (int i = 0; i < 200; ++i) {
      std::string damaged = whole;
      for (uint64_t hit = random() % 8 + 1; hit-- > 0;)
        damaged[random() % damaged.size()] = static_cast<char>(random());
      try {
        lines_of(stream_of(damaged), {.block = 512});
      } catch (const DataError&) {
        continue;
      }
    }
  }
}

TEST(OpenFile, RefusesWhatCannotBeRead) {
  const TestFolder folder;
  EXPECT_EQ(message_of<IoError>([&] { open_file(folder.path()); }),
            folder.path() + ": is a folder, expected a file");
  EXPECT_EQ(message_of<IoError>([&] { open_file(folder.path() + "/none"); }),
            folder.path() + "/none: No such file or directory");
}

TEST(OpenFile, ReadsTheCriteoSample) {
  const std::string folder = data_folder("criteo");
  if (folder.empty()) GTEST_SKIP() << "set ARGOSY_DATA to a folder with criteo/";
  EXPECT_EQ(lines_of(open_file(folder + "/test.tsv.gz")).size(), 13000U);
}

}  // namespace
}  // namespace argosy
