// models/rank/dnn/benchmark_reader.py must give what the parser `criteo` gives.
#include <gtest/gtest.h>

#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"
#include "argosy/config/config.h"
#include "argosy/data/lines.h"
#include "argosy/data/parse_lines.h"
#include "argosy/data/pipe.h"

namespace argosy {
namespace {

struct Read {
  Columns columns;
  LineTally tally;
};

Read read_all(std::unique_ptr<ByteStream> bytes, const Parser& parser) {
  Read read{Columns(parser.slots()), LineTally(1)};
  Lines lines(std::move(bytes));
  parse_lines(lines, parser, 1'000'000, read.columns, read.tally);
  return read;
}

/// The script's output for a file, parsed by dnn's configuration.
Read piped(const std::string& file, const std::string& options = "") {
  const std::string script =
      std::string(ARGOSY_SOURCE_DIR) + "/models/rank/dnn/benchmark_reader.py";
  const Config config = parse_config("runner: {}", "/models/rank/dnn/config.yaml");
  const auto parser = make_parser("multislot", config.inputs.columns);
  return read_all(open_pipe(file, {.command = "python3 '" + script + "' " + options +
                                              " /some/config.yaml /some/folder"}),
                  *parser);
}

/// Rows with values of 0 to 40 bytes, and integers of every form that is allowed.
std::string raw_rows(size_t rows) {
  const RandomStream random(11);
  uint64_t next = 0;
  std::string text;
  for (size_t row = 0; row < rows; ++row) {
    text += random.below(next++, 2) == 0 ? "0" : "1";
    for (size_t column = 1; column <= 13; ++column) {
      text += '\t';
      const uint64_t kind = random.below(next++, 6);
      if (kind > 0) text += std::to_string(static_cast<int64_t>(random.below(next++, 70000)) - 3);
      if (kind == 1) text += ".0";
    }
    for (size_t column = 14; column < 40; ++column) {
      text += '\t';
      const uint64_t size = random.below(next++, 3) == 0 ? random.below(next++, 41) : 8;
      for (uint64_t i = 0; i < size; ++i) text += "0123456789abcdef"[random.below(next++, 16)];
    }
    text += row % 7 == 0 ? "\r\n" : "\n";
  }
  return text;
}

void expect_same(const Columns& a, const Columns& b) {
  ASSERT_EQ(a.rows(), b.rows());
  ASSERT_EQ(a.slots().size(), b.slots().size());
  for (size_t slot = 0; slot < a.slots().size(); ++slot) {
    SCOPED_TRACE(a.slots()[slot].name);
    if (a.slots()[slot].kind == SlotKind::ids)
      EXPECT_TRUE(std::ranges::equal(a.ids(slot), b.ids(slot)));
    else
      EXPECT_TRUE(std::ranges::equal(a.floats(slot), b.floats(slot)));
  }
}

TEST(BenchmarkReader, GivesTheBitsOfTheCriteoParser) {
  const TestFolder folder;
  const std::string file = folder.write("raw.txt", raw_rows(500));
  const Read script = piped(file);
  EXPECT_EQ(script.tally.bad_lines(), 0U);
  EXPECT_EQ(script.columns.rows(), 500U);
  expect_same(script.columns, read_all(open_file(file), *make_parser("criteo")).columns);
}

TEST(BenchmarkReader, TakesTheSizeOfTheTable) {
  const TestFolder folder;
  const std::string file = folder.write("raw.txt", raw_rows(50));
  expect_same(piped(file, "--hash 1024").columns,
              read_all(open_file(file), *make_parser("criteo(hash=1024)")).columns);
}

TEST(BenchmarkReader, KeepsTheNumbersOfBadLines) {
  const TestFolder folder;
  std::string rows = raw_rows(3);
  const size_t second = rows.find('\n') + 1;
  rows.insert(second, "1\tx\n");
  std::string wrong = raw_rows(1);
  wrong.replace(0, wrong.find('\t', 2), "1\tnan");
  const Read read = piped(folder.write("raw.txt", rows + wrong));
  EXPECT_EQ(read.columns.rows(), 3U);
  ASSERT_EQ(read.tally.first_bad().size(), 2U);
  EXPECT_EQ(read.tally.first_bad()[0].line, 2U);
  EXPECT_EQ(read.tally.first_bad()[1].line, 5U);
}

TEST(BenchmarkReader, ReadsPaddleRecsSlotText) {
  const TestFolder folder;
  std::string line = "click:1";
  for (int i = 0; i < 13; ++i) line += " dense_feature:0." + std::to_string(i);
  for (int i = 1; i <= 25; ++i) line += " " + std::to_string(i) + ":" + std::to_string(1000 + i);
  const Read read = piped(folder.write("slots.txt", line + "\n" + line + " 27:5\n"));
  ASSERT_EQ(read.columns.rows(), 1U);
  EXPECT_EQ(read.columns.floats(0)[3], 0.3F);
  EXPECT_EQ(read.columns.ids(1)[0], 1001U);
  EXPECT_EQ(read.columns.ids(25)[0], 1025U);
  EXPECT_EQ(read.columns.ids(26)[0], 0U) << "a slot that is missing is padded";
  EXPECT_EQ(read.columns.floats(27)[0], 1.0F);
  EXPECT_EQ(read.tally.bad_lines(), 1U);
}

}  // namespace
}  // namespace argosy
