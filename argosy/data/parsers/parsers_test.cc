#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <random>

#include "argosy/base/error.h"
#include "argosy/base/hash.h"
#include "argosy/base/test_support.h"
#include "argosy/data/feature_hash.h"
#include "argosy/data/parse_lines.h"
#include "argosy/samples/samples.h"

namespace argosy {
namespace {

template <class T>
std::vector<T> list(std::span<const T> values) {
  return {values.begin(), values.end()};
}
using Ids = std::vector<uint64_t>;
using Floats = std::vector<float>;
using Offsets = std::vector<uint32_t>;

std::vector<SlotSpec> small_slots() {
  return {{"tags"}, {"dense", SlotKind::floats, 2}, {"label", SlotKind::ids, 1}};
}

/// The reason for one line, "" for a good one; nothing may be left of a bad one.
std::string reason_of(const Parser& parser, std::string_view line) {
  Columns out(parser.slots());
  const auto reason = parser.parse(line, out);
  EXPECT_EQ(out.rows(), reason ? 0U : 1U);
  for (size_t slot = 0; slot < parser.slots().size(); ++slot) EXPECT_EQ(out.added(slot), 0U);
  return reason.value_or("");
}

TEST(MakeParser, NamesTheNearestOne) {
  EXPECT_EQ(message_of<ConfigError>([] { make_parser("multislots"); }),
            "'multislots': no parser 'multislots', did you mean multislot?");
  EXPECT_THROW(make_parser("criteo(hsh=3)"), ConfigError);
  EXPECT_THROW(make_parser("criteo(hash=0)"), ConfigError);
  EXPECT_THROW(make_parser("criteo", small_slots()), ConfigError);
  EXPECT_THROW(make_parser("multislot"), ConfigError);
}

TEST(MultiSlot, ReadsSlotsInOrder) {
  const auto parser = make_parser("multislot", small_slots());
  Columns out(parser->slots());
  EXPECT_EQ(parser->parse("3 1926 8 17 2 0.5 -1e-2 1 1", out), std::nullopt);
  EXPECT_EQ(parser->parse(" 2 18446744073709551615 -1\t2 3 .25  1 0 ", out), std::nullopt);
  EXPECT_EQ(list(out.ids(0)), (Ids{1926, 8, 17, UINT64_MAX, UINT64_MAX}));
  EXPECT_EQ(list(out.offsets(0)), (Offsets{0, 3, 5}));
  EXPECT_EQ(list(out.floats(1)), (Floats{0.5F, -0.01F, 3, 0.25F}));
  EXPECT_EQ(list(out.ids(2)), (Ids{1, 0}));
}

TEST(MultiSlot, SaysWhatIsWrongAndWhere) {
  const auto parser = make_parser("multislot", small_slots());
  const std::pair<const char*, const char*> cases[] = {
      {"", "slot 'tags' at byte 1: expected a count, found the end of the line"},
      {"x 1", "slot 'tags' at byte 1: expected a count, found 'x'"},
      {"1 5 2 1 1", "slot 'label' at byte 10: expected a count, found the end of the line"},
      {"0 2 1 1 1 1", "slot 'tags' before byte 3: expected at least 1 value, found a count of 0"},
      {"1 5 3 1 1 1 1 1", "slot 'dense' before byte 7: expected 2 values, found a count of 3"},
      {"9 5 2 1 1 1 1", "slot 'tags' before byte 3: found a count of 9, but only 11 bytes follow"},
      {"18446744073709551615 1",
       "slot 'tags' before byte 22: found a count of 18446744073709551615, but only 1 bytes "
       "follow"},
      {"1 abc 2 1 1 1 1", "slot 'tags' at byte 3: expected an id of 64 bits, found 'abc'"},
      {"1 18446744073709551616 2 1 1 1 1",
       "slot 'tags' at byte 3: expected an id of 64 bits, found '1844674407370955...'"},
      {"1 5x 2 1 1 1 1", "slot 'tags' at byte 4: expected an id of 64 bits, found 'x'"},
      {"1 5 2 nan 1 1 1", "slot 'dense' at byte 7: expected a finite number, found 'nan'"},
      {"1 5 2 1 1e39 1 1", "slot 'dense' at byte 9: expected a finite number, found '1e39'"},
      {"1 5 2 1 1 1 1 7", "slot 'label' at byte 15: expected the end of the line, found '7'"},
  };
  for (const auto& [line, reason] : cases) EXPECT_EQ(reason_of(*parser, line), reason) << line;
}

TEST(MultiSlot, EmptySlotsFollowTheirPolicy) {
  const auto parser = make_parser("multislot", {{"a", SlotKind::ids, 0, EmptySlot::pad},
                                                {"b", SlotKind::floats, 3, EmptySlot::pad},
                                                {"c", SlotKind::ids, 0, EmptySlot::empty}});
  Columns out(parser->slots());
  EXPECT_EQ(parser->parse("0 0 0", out), std::nullopt);
  EXPECT_EQ(list(out.ids(0)), Ids{0});
  EXPECT_EQ(list(out.floats(1)), (Floats{0, 0, 0}));
  EXPECT_EQ(list(out.offsets(2)), (Offsets{0, 0}));
}

TEST(MultiSlot, GivesBackExactlyWhatWasWritten) {
  const unsigned seed = 21;
  std::mt19937_64 random(seed);
  const auto parser = make_parser("multislot", small_slots());
  std::string text;
  Ids tags, labels;
  Floats dense;
  Offsets offsets = {0};
  std::array<char, 64> buffer;
  for (int row = 0; row < 4000; ++row) {
    const size_t count = random() % 5 + 1;
    text += std::to_string(count);
    for (size_t i = 0; i < count; ++i) {
      tags.push_back(random() >> (random() % 64));
      text += " " + (random() % 4 == 0 ? std::to_string(static_cast<int64_t>(tags.back()))
                                       : std::to_string(tags.back()));
    }
    offsets.push_back(static_cast<uint32_t>(tags.size()));
    text += " 2";
    for (int i = 0; i < 2; ++i) {
      float value = 0;
      do {
        value = std::bit_cast<float>(static_cast<uint32_t>(random()));
      } while (!std::isfinite(value));
      dense.push_back(value);
      char* const end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
      text += " " + std::string(buffer.data(), end);
    }
    labels.push_back(random() % 2);
    text += " 1 " + std::to_string(labels.back()) + (row % 2 == 0 ? "\n" : "\r\n");
  }
  const auto bytes = std::as_bytes(std::span(text));
  Lines lines(memory_stream({bytes.begin(), bytes.end()}, "text"), {.block = 1000});
  Columns out(parser->slots());
  LineTally tally(0);
  EXPECT_FALSE(parse_lines(lines, *parser, SIZE_MAX, out, tally)) << "seed " << seed;
  EXPECT_EQ(list(out.ids(0)), tags);
  EXPECT_EQ(list(out.offsets(0)), offsets);
  EXPECT_EQ(list(out.floats(1)), dense);
  EXPECT_EQ(list(out.ids(2)), labels);
}

std::string criteo_line(const std::string& label, const std::vector<std::string>& integers,
                        const std::string& category) {
  std::string line = label;
  for (const std::string& integer : integers) line += "\t" + integer;
  for (int i = 0; i < 26; ++i) line += "\t" + category;
  return line;
}

TEST(FeatureHash, KeepsItsTestVectors) {
  struct Vector {
    size_t column;
    std::string value;
    uint64_t id;
  };
  const Vector vectors[] = {{14, "", 842679},
                            {14, "05db9164", 305721},
                            {15, "05db9164", 894615},
                            {39, "c38250b6", 45682},
                            {39, "", 512827},
                            {20, "a", 638835},
                            {21, std::string(40, 'x'), 933744}};
  for (const auto& [column, value, id] : vectors)
    EXPECT_EQ(FeatureHash(column, 1000001)(value), id) << column << " '" << value << "'";
  EXPECT_EQ(FeatureHash(14, 7)(std::string(1000, 'x')), FeatureHash(14, 7)(std::string(1000, 'x')));
  EXPECT_THROW(FeatureHash(14, 0), ConfigError);
}

TEST(Xxh64, KeepsItsTestVectors) {
  const auto hash = [](std::string_view text) { return xxh64(std::as_bytes(std::span(text))); };
  EXPECT_EQ(hash(""), 0xef46db3751d8e999U);
  EXPECT_EQ(hash("a"), 0xd24ec4f1a98c6e5bU);
  EXPECT_EQ(hash("abc"), 0x44bc2cf5ad770999U);
  EXPECT_EQ(hash("Nobody inspects the spammish repetition"), 0xfbcea83c8a378bf1U);
}

TEST(Criteo, ScalesIntegersAndHashesCategories) {
  const auto parser = make_parser("criteo");
  Columns out(parser->slots());
  const std::vector<std::string> integers = {"1", "-1", "",   "0",  "12345678901", "5.0", "7",
                                             "8", "9",  "10", "11", "12",          "13"};
  EXPECT_EQ(parser->parse(criteo_line("1", integers, "05db9164"), out), std::nullopt);
  EXPECT_EQ(parser->parse(criteo_line("0", std::vector<std::string>(13), ""), out), std::nullopt);
  EXPECT_EQ(list(out.floats(0).first(13)),
            (Floats{static_cast<float>(1 / 20.0), static_cast<float>(2 / 603.0), 0, 0,
                    static_cast<float>(12345678901 / 64000.0), 0.01F, static_cast<float>(7 / 100.0),
                    static_cast<float>(8 / 50.0), static_cast<float>(9 / 500.0), 1.0F, 1.1F, 1.2F,
                    0.26F}));
  EXPECT_EQ(list(out.floats(0).subspan(13)), Floats(13, 0.0F))
      << "empty is 0, not (0 - min) / diff";
  for (size_t i = 0; i < 26; ++i)
    EXPECT_EQ(list(out.ids(1 + i)),
              (Ids{FeatureHash(14 + i, 1000001)("05db9164"), FeatureHash(14 + i, 1000001)("")}));
  EXPECT_EQ(list(out.floats(27)), (Floats{1, 0}));
}

TEST(Criteo, TakesItsSettings) {
  const auto parser = make_parser(
      "criteo(hash=100, min=1;1;1;1;1;1;1;1;1;1;1;1;1, diff=2;2;2;2;2;2;2;2;2;2;2;2;2)");
  Columns out(parser->slots());
  EXPECT_EQ(parser->parse(criteo_line("1", std::vector<std::string>(13, "4"), "x"), out),
            std::nullopt);
  EXPECT_EQ(list(out.floats(0)), Floats(13, 1.5F));
  EXPECT_LT(out.ids(5)[0], 100U);
  EXPECT_THROW(make_parser("criteo(min=1;2)"), ConfigError);
  EXPECT_THROW(make_parser("criteo(diff=0;2;2;2;2;2;2;2;2;2;2;2;2)"), ConfigError);
}

TEST(Criteo, SaysWhatIsWrongAndWhere) {
  const auto parser = make_parser("criteo");
  EXPECT_EQ(reason_of(*parser, ""), "expected 40 columns with tabs between them, found 1");
  EXPECT_EQ(reason_of(*parser, std::string(99, '\t')),
            "expected 40 columns with tabs between them, found 100");
  const std::vector<std::string> none(13);
  EXPECT_EQ(reason_of(*parser, criteo_line("", none, "")),
            "slot 'label' at byte 1: expected a label, found '?'");
  EXPECT_EQ(reason_of(*parser, criteo_line("1x", none, "")),
            "slot 'label' at byte 2: expected a label, found 'x'");
  EXPECT_EQ(reason_of(*parser, criteo_line("1", std::vector<std::string>(13, "abc"), "")),
            "slot 'dense_input' at byte 3: expected a finite number, found 'abc'");
  EXPECT_EQ(reason_of(*parser, criteo_line("1", std::vector<std::string>(13, "inf"), "")),
            "slot 'dense_input' at byte 3: expected a finite number, found 'inf'");
}

TEST(Csv, ReadsColumnsByKind) {
  const auto parser = make_parser(
      "csv(columns=skip;label:float;x:float*2;user:id;C1..C2:hash, hash=1000, header=1, "
      "empty=pad)");
  EXPECT_EQ(parser->header_lines(), 1U);
  ASSERT_EQ(parser->slots().size(), 5U);
  Columns out(parser->slots());
  EXPECT_EQ(parser->parse("a,1,0.5,,77,red,\"say \"\"hi\"\", you\"", out), std::nullopt);
  EXPECT_EQ(list(out.floats(0)), Floats{1});
  EXPECT_EQ(list(out.floats(1)), (Floats{0.5F, 0}));
  EXPECT_EQ(list(out.ids(2)), Ids{77});
  EXPECT_EQ(list(out.ids(3)), Ids{FeatureHash(5, 1000)("red")});
  EXPECT_EQ(list(out.ids(4)), Ids{FeatureHash(6, 1000)("say \"hi\", you")});
}

TEST(Csv, SaysWhatIsWrongAndWhere) {
  const auto parser = make_parser("csv(columns=label:float;user:id, delimiter=tab)");
  EXPECT_EQ(reason_of(*parser, "1\t2"), "");
  EXPECT_EQ(reason_of(*parser, "1"), "expected 2 columns, found 1");
  EXPECT_EQ(reason_of(*parser, "1\t2\t3"), "expected 2 columns, found more at byte 5");
  EXPECT_EQ(reason_of(*parser, "1\t"),
            "slot 'user', column 1 at byte 3: expected an id of 64 bits, found ''");
  EXPECT_EQ(reason_of(*parser, "nan\t1"),
            "slot 'label', column 0 at byte 1: expected a finite number, found 'nan'");
  EXPECT_EQ(reason_of(*parser, "1\t\"2"),
            "slot 'user', column 1 at byte 3: expected a closing quote before the delimiter");
  for (const char* spec :
       {"csv", "csv(columns=a)", "csv(columns=a:text)", "csv(columns=skip)",
        "csv(columns=a1..b3:id)", "csv(columns=a:id;a:id)", "csv(columns=a:id*0)",
        "csv(columns=a:id, delimiter=x)", "csv(columns=a:id, empty=no)"})
    EXPECT_THROW(make_parser(spec), ConfigError) << spec;
}

TEST(LibSvm, ReadsPairs) {
  const auto parser = make_parser("libsvm");
  Columns out(parser->slots());
  EXPECT_EQ(parser->parse("+1 3:0.5 4294967296:-2 # a remark", out), std::nullopt);
  EXPECT_EQ(parser->parse("-1", out), std::nullopt);
  EXPECT_EQ(list(out.floats(0)), (Floats{1, -1}));
  EXPECT_EQ(list(out.ids(1)), (Ids{3, 4294967296}));
  EXPECT_EQ(list(out.floats(2)), (Floats{0.5F, -2}));
  EXPECT_EQ(list(out.offsets(1)), (Offsets{0, 2, 2}));
  EXPECT_EQ(reason_of(*parser, "1 3:"),
            "slot 'value' at byte 5: expected a finite number, found the end of the line");
  EXPECT_EQ(reason_of(*parser, "1 3"),
            "slot 'index' at byte 4: expected index:value, found the end of the line");
  EXPECT_EQ(reason_of(*parser, ""),
            "slot 'label' at byte 1: expected a label, found the end of the line");
}

TEST(LibFfm, ReadsTriples) {
  const auto parser = make_parser("libffm");
  Columns out(parser->slots());
  EXPECT_EQ(parser->parse("1 0:7759:0.3651 17:2434:0.50000", out), std::nullopt);
  EXPECT_EQ(list(out.ids(1)), (Ids{0, 17}));
  EXPECT_EQ(list(out.ids(2)), (Ids{7759, 2434}));
  EXPECT_EQ(list(out.floats(3)), (Floats{0.3651F, 0.5F}));
  EXPECT_EQ(reason_of(*parser, "1 0:7:x"),
            "slot 'value' at byte 7: expected a finite number, found 'x'");
}

TEST(SlotText, ReadsPairsInAnyOrder) {
  const auto parser = make_parser("slot_text", {{"1", SlotKind::ids, 1},
                                                {"2", SlotKind::ids, 0, EmptySlot::pad},
                                                {"click", SlotKind::ids, 1},
                                                {"dense", SlotKind::floats, 2}});
  Columns out(parser->slots());
  EXPECT_EQ(parser->parse("click:0 dense:0.5 dense:1 1:737395 2:5 2:6", out), std::nullopt);
  EXPECT_EQ(parser->parse("1:7 dense:2 click:1 dense:3", out), std::nullopt);
  EXPECT_EQ(list(out.ids(0)), (Ids{737395, 7}));
  EXPECT_EQ(list(out.ids(1)), (Ids{5, 6, 0}));
  EXPECT_EQ(list(out.floats(3)), (Floats{0.5F, 1, 2, 3}));
  EXPECT_EQ(reason_of(*parser, "click:0 dense:1 1:7"), "slot 'dense': expected 2 values, found 1");
  EXPECT_EQ(reason_of(*parser, "clack:0"), "at byte 1: no slot 'clack' is declared");
  EXPECT_EQ(reason_of(*parser, "click"), "at byte 1: expected slot:value, found 'click'");
  EXPECT_EQ(reason_of(*parser, "click:x"),
            "slot 'click' at byte 7: expected an id of 64 bits, found 'x'");
  const auto skipping = make_parser("slot_text(unknown=skip)", {{"click", SlotKind::ids, 1}});
  EXPECT_EQ(reason_of(*skipping, "9:abc click:1 10:4"), "");
}

/// Every parser with slots it can take, and a good line.
std::vector<std::pair<std::unique_ptr<Parser>, std::string>> all_parsers() {
  std::vector<std::pair<std::unique_ptr<Parser>, std::string>> all;
  all.emplace_back(make_parser("multislot", small_slots()), "3 1926 8 17 2 0.5 -1e-2 1 1");
  all.emplace_back(make_parser("slot_text", small_slots()), "tags:5 dense:0.1 dense:2 label:1");
  all.emplace_back(make_parser("criteo"),
                   criteo_line("1", std::vector<std::string>(13, "42"), "05db9164"));
  all.emplace_back(make_parser("csv(columns=label:float;user:id;C:hash)"), "1,77,\"a\"");
  all.emplace_back(make_parser("libsvm"), "+1 3:0.5 9:-2");
  all.emplace_back(make_parser("libffm"), "1 0:7759:0.3651 17:2434:0.5");
  return all;
}

TEST(AllParsers, AreTested) { EXPECT_EQ(all_parsers().size(), parser_names().size()); }

TEST(AllParsers, TakeAnyBytesAndLeaveNoTraceOfABadLine) {
  const unsigned seed = 31;
  std::mt19937_64 random(seed);
  for (const auto& [parser, good] : all_parsers()) {
    ASSERT_EQ(reason_of(*parser, good), "");
    for (size_t cut = 0; cut < good.size(); ++cut) {
      const std::vector<char> exact(good.begin(), good.begin() + static_cast<ptrdiff_t>(cut));
      reason_of(*parser, {exact.data(), exact.size()});
    }
    for (int i = 0; i < 3000; ++i) {
      std::vector<char> bytes(good.begin(), good.end());
      if (i % 3 == 0) bytes.resize(random() % 300);
      for (uint64_t hits = i % 3 == 0 ? bytes.size() : random() % 4 + 1; hits-- > 0;)
        if (!bytes.empty()) bytes[random() % bytes.size()] = static_cast<char>(random());
      const std::string reason = reason_of(*parser, {bytes.data(), bytes.size()});
      for (char c : reason) ASSERT_TRUE(c >= ' ' && c <= '~') << reason << ", seed " << seed;
    }
  }
}

TEST(ParseLines, CountsBadLinesWithTheirPlace) {
  const TestFolder folder;
  const std::string path = folder.write("part-0", "a,b\n1,2\nx,2\n3,4\n");
  const auto parser = make_parser("csv(columns=a:float;b:id, header=1)");
  Lines lines(open_file(path));
  Columns out(parser->slots());
  LineTally tally(0.5);
  EXPECT_TRUE(parse_lines(lines, *parser, 1, out, tally));
  EXPECT_FALSE(parse_lines(lines, *parser, 100, out, tally));
  EXPECT_EQ(list(out.floats(0)), (Floats{1, 3}));
  EXPECT_EQ(tally.lines(), 3U);
  ASSERT_EQ(tally.bad_lines(), 1U);
  EXPECT_EQ(tally.first_bad()[0].text(),
            path + ":3: slot 'a', column 0 at byte 1: expected a finite number, found 'x'");
}

struct RealFile {
  const char* file;
  const char* spec;
  std::vector<SlotSpec> slots;
  size_t rows;
};

TEST(ParseLines, ReadsTheFilesOtherSystemsShip) {
  if (data_folder("criteo_small_formats").empty() || data_folder("criteo").empty())
    GTEST_SKIP() << "set ARGOSY_DATA to a folder with criteo/ and criteo_small_formats/";
  std::vector<SlotSpec> slots = {{"click", SlotKind::ids, 1},
                                 {"dense_feature", SlotKind::floats, 13}};
  for (int i = 1; i <= 26; ++i) slots.push_back({std::to_string(i), SlotKind::ids, 1});
  const std::string csv =
      "csv(columns=label:float;dense:float*13;C1..C26:hash, header=1, empty=pad)";
  const std::string with_id = "csv(columns=skip;" + csv.substr(12);
  const RealFile files[] = {
      {"criteo/test.tsv.gz", "criteo", {}, 13000},
      {"criteo_small_formats/fleetx_wide_and_deep_part-0.txt", "criteo", {}, 100},
      {"criteo_small_formats/paddlerec_ctr_dnn_raw_train_100.txt", "criteo", {}, 100},
      {"criteo_small_formats/paddlerec_dnn_slot_80.txt", "slot_text", slots, 80},
      {"criteo_small_formats/paddlerec_lr_featidx_100.txt",
       "slot_text",
       {{"feat_idx", SlotKind::ids, 39},
        {"feat_value", SlotKind::floats, 39},
        {"label", SlotKind::ids, 1}},
       100},
      {"criteo_small_formats/xlearn_small_train.libffm.txt", "libffm", {}, 200},
      {"criteo_small_formats/deepctr_criteo_sample_200.csv", csv.c_str(), {}, 200},
      {"criteo_small_formats/ycjuan_train.tiny_1999.csv", with_id.c_str(), {}, 1999},
  };
  for (const RealFile& each : files) {
    const std::string file = each.file;
    const size_t slash = file.find('/');
    const auto parser = make_parser(each.spec, each.slots);
    Lines lines(open_file(data_folder(file.substr(0, slash)) + file.substr(slash)));
    Columns out(parser->slots());
    LineTally tally(1);
    parse_lines(lines, *parser, SIZE_MAX, out, tally);
    EXPECT_EQ(out.rows(), each.rows) << file;
    for (const BadLine& bad : tally.first_bad()) ADD_FAILURE() << bad.text();
  }
}

}  // namespace
}  // namespace argosy
