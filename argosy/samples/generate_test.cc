#include "argosy/samples/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/base/hash.h"
#include "argosy/base/test_support.h"
#include "argosy/data/parse_lines.h"
#include "argosy/samples/criteo_model.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

class GenerateTest : public testing::Test {
 protected:
  std::string folder(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string text(const std::string& path) {
    const std::vector<std::byte> bytes = env_->read_file(path);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  /// All parts joined.
  std::string criteo(const CriteoOptions& options) {
    const std::string out = folder("criteo-" + std::to_string(next_++));
    report_ = generate_criteo(*env_, out, options);
    std::string all;
    for (size_t i = 0; i < options.files; ++i) all += text(out + "/part-" + std::to_string(i));
    return all;
  }

  std::unique_ptr<Env> env_ = real_env();
  TestFolder folder_;
  CriteoReport report_;
  int next_ = 0;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

Columns parse(const Parser& parser, const std::string& text) {
  Columns columns(parser.slots());
  for (const std::string& line : lines_of(text)) {
    const auto reason = parser.parse(line, columns);
    if (reason) ADD_FAILURE() << *reason << ": " << line;
  }
  return columns;
}

TEST_F(GenerateTest, CriteoHasTheSameBytesForAnyNumberOfThreadsAndFiles) {
  for (const CriteoFormat format : {CriteoFormat::raw, CriteoFormat::multislot}) {
    const CriteoOptions options{.rows = 3001, .files = 3, .format = format, .threads = 1};
    const std::string once = criteo(options);
    const CriteoReport report = report_;
    for (const auto& [files, threads] : {std::pair<size_t, size_t>{3, 2}, {7, 4}, {1, 8}}) {
      CriteoOptions other = options;
      other.files = files;
      other.threads = threads;
      EXPECT_TRUE(criteo(other) == once) << files << " files, " << threads << " threads";
      EXPECT_EQ(report_.bayes_auc, report.bayes_auc);
      EXPECT_EQ(report_.additive_auc, report.additive_auc);
      EXPECT_EQ(report_.clicks, report.clicks);
    }
  }
}

TEST_F(GenerateTest, CriteoHasTheSameBytesForEver) {
  const CriteoOptions options{.rows = 2000, .seed = 7, .files = 1};
  const std::string raw = criteo(options);
  EXPECT_EQ(hash64(raw), 0x69a0d31f4e9d0250ULL) << std::hex << hash64(raw);
  CriteoOptions other = options;
  other.format = CriteoFormat::multislot;
  const std::string multislot = criteo(other);
  EXPECT_EQ(hash64(multislot), 0xd288c313d68b618bULL) << std::hex << hash64(multislot);
}

TEST_F(GenerateTest, FewerCriteoRowsAreTheBeginningOfMore) {
  const std::string few = criteo({.rows = 300, .files = 2});
  const std::string more = criteo({.rows = 1000, .files = 2});
  EXPECT_TRUE(more.starts_with(few));
  EXPECT_NE(criteo({.rows = 300, .seed = 2, .files = 2}), few);
}

TEST_F(GenerateTest, CriteoRowsCanStartAnywhere) {
  const std::string all = criteo({.rows = 1000, .files = 1});
  const std::string first = criteo({.rows = 600, .files = 1});
  const std::string rest = criteo({.rows = 400, .first_row = 600, .files = 3});
  EXPECT_TRUE(first + rest == all);
}

TEST_F(GenerateTest, BothCriteoFormatsHoldTheSameInstances) {
  for (const uint64_t hash : {1000001, 5000}) {
    CriteoOptions options{.rows = 2000, .files = 2, .hash = hash};
    const auto reader = make_parser("criteo(hash=" + std::to_string(hash) + ")");
    const Columns raw = parse(*reader, criteo(options));
    options.format = CriteoFormat::multislot;
    const Columns hashed = parse(*make_parser("multislot", reader->slots()), criteo(options));
    ASSERT_EQ(raw.rows(), 2000U);
    ASSERT_EQ(hashed.rows(), 2000U);
    for (size_t slot = 0; slot < reader->slots().size(); ++slot) {
      if (reader->slots()[slot].kind == SlotKind::ids)
        EXPECT_TRUE(std::ranges::equal(raw.ids(slot), hashed.ids(slot))) << slot;
      else
        EXPECT_TRUE(std::ranges::equal(raw.floats(slot), hashed.floats(slot))) << slot;
    }
    const auto labels = raw.floats(27);
    EXPECT_EQ(static_cast<uint64_t>(std::ranges::count(labels, 1.0F)), report_.clicks);
    EXPECT_EQ(static_cast<uint64_t>(std::ranges::count(labels, 0.0F)), 2000 - report_.clicks);
  }
}

TEST_F(GenerateTest, CriteoRowsLookLikeCriteo) {
  const auto lines = lines_of(criteo({.rows = 5000, .files = 1}));
  std::array<size_t, 40> empty{};
  for (const std::string& line : lines) {
    std::istringstream in(line + "\t");
    size_t column = 0;
    for (std::string field; std::getline(in, field, '\t'); ++column) {
      ASSERT_LT(column, 40U) << line;
      empty[column] += field.empty() ? 1 : 0;
      if (column <= 13 || field.empty()) continue;
      ASSERT_EQ(field.size(), 8U) << line;
      ASSERT_EQ(field.find_first_not_of("0123456789abcdef"), std::string::npos) << line;
    }
    ASSERT_EQ(column, 40U) << line;
  }
  EXPECT_EQ(empty[0], 0U);
  for (size_t column = 14; column < 40; ++column) {
    EXPECT_GT(empty[column], 5000 * 0.02) << column;
    EXPECT_LT(empty[column], 5000 * 0.04) << column;
  }
  EXPECT_GT(std::ranges::count_if(std::span(empty).subspan(1, 13), [](size_t n) { return n > 0; }),
            8);
}

TEST(CriteoModel, BayesAucIsNearFourFifthsForAnySeedAndVocabulary) {
  for (const uint64_t seed : {1, 4, 123456789}) {
    for (const uint64_t vocab : {4, 1000, 1'000'000'000}) {
      const CriteoModel model(seed, vocab);
      constexpr uint64_t kRows = 20000;
      ExpectedAuc bayes, additive;
      uint64_t clicks = 0;
      for (uint64_t i = 0; i < kRows; ++i) {
        const CriteoModel::Row row = model.row(i);
        bayes.add(row.level, row.level);
        additive.add(row.sum_level, row.level);
        clicks += row.click ? 1 : 0;
      }
      const std::string which = std::to_string(seed) + ", " + std::to_string(vocab);
      EXPECT_NEAR(bayes.value(), 0.80, 0.02) << which;
      EXPECT_NEAR(static_cast<double>(clicks) / kRows, 0.25, 0.02) << which;
      EXPECT_LT(additive.value() - 0.5, 0.90 * (bayes.value() - 0.5)) << which;
      EXPECT_GT(additive.value() - 0.5, 0.60 * (bayes.value() - 0.5)) << which;
    }
  }
}

TEST(CriteoModel, ProbabilitiesAreTheSameForEver) {
  const CriteoModel model(7, 1000);
  std::vector<uint32_t> levels;
  for (uint64_t i = 0; i < 1000; ++i) {
    const CriteoModel::Row row = model.row(i);
    levels.insert(levels.end(), {row.level, row.sum_level});
  }
  const uint64_t hash = hash64(std::as_bytes(std::span(levels)));
  EXPECT_EQ(hash, 0x8c170a74af14f110ULL) << std::hex << hash;
}

/// By rank sums, with ties as half a pair.
double auc_of(const std::vector<std::pair<uint32_t, bool>>& scored) {
  std::map<uint32_t, std::array<double, 2>> counts;
  for (const auto& [score, click] : scored) ++counts[score][click ? 1 : 0];
  double pairs = 0, clicks = 0, others = 0;
  for (const auto& [score, count] : counts) {
    pairs += count[1] * (others + 0.5 * count[0]);
    clicks += count[1];
    others += count[0];
  }
  return pairs / (clicks * others);
}

TEST(CriteoModel, ClicksComeAsOftenAsTheirProbabilitySays) {
  constexpr uint64_t kRows = 100000;
  const CriteoModel model(5, 1000);
  std::vector<std::pair<uint32_t, bool>> truth;
  ExpectedAuc expected;
  std::array<double, 8> clicks{}, probabilities{}, rows{};
  for (uint64_t i = 0; i < kRows; ++i) {
    const CriteoModel::Row row = model.row(i);
    truth.emplace_back(row.level, row.click);
    expected.add(row.level, row.level);
    const size_t bin = row.level * 8 / CriteoModel::kLevels;
    const double p = static_cast<double>(row.level) / CriteoModel::kLevels;
    clicks[bin] += row.click ? 1 : 0;
    probabilities[bin] += p;
    rows[bin] += p * (1 - p);
  }
  EXPECT_NEAR(auc_of(truth), expected.value(), 0.005);
  for (size_t bin = 0; bin < 8; ++bin)
    EXPECT_NEAR(clicks[bin], probabilities[bin], 5 * std::sqrt(rows[bin])) << bin;
}

TEST(ExpectedAuc, IsTheShareOfExpectedPairsInTheRightOrder) {
  constexpr uint32_t kAll = CriteoModel::kLevels;
  ExpectedAuc auc;
  auc.add(10, kAll / 4);  // predictions 10 and 20 of rows clicked with 1/4 and 3/4
  EXPECT_EQ(auc.value(), 0.5);
  ExpectedAuc more;
  more.add(20, kAll / 4 * 3);
  auc.add(more);
  // Pairs of click and other: 3/4 * 3/4 in order, 1/4 * 1/4 not, two ties of 1/4 * 3/4.
  EXPECT_EQ(auc.value(), (9.0 / 16 + 0.5 * 6.0 / 16) / 1.0);
}

TEST(CriteoModel, IdsFollowAPowerLaw) {
  constexpr uint64_t kRows = 100000;
  const CriteoModel model(3, 10000);
  std::array<std::map<uint32_t, uint64_t>, CriteoModel::kCategories> counts;
  for (uint64_t i = 0; i < kRows; ++i) {
    const CriteoModel::Row row = model.row(i);
    for (size_t slot : {0, 13, 25}) ++counts[slot][row.categories[slot]];
  }
  for (size_t slot : {0, 13, 25}) {
    std::vector<uint64_t> sorted;
    for (const auto& [value, count] : counts[slot]) sorted.push_back(count);
    std::ranges::sort(sorted, std::greater<>());
    ASSERT_GT(sorted.size(), 5000U);
    ASSERT_LE(sorted.size(), 10000U);
    // Ranks 8 to 15 against 128 to 255: density x^(-9/8) has 2^(-1/8) of the rows per octave.
    const auto octave = [&](size_t first) {
      uint64_t sum = 0;
      for (size_t i = first; i < 2 * first; ++i) sum += sorted[i - 1];
      return static_cast<double>(sum);
    };
    const double exponent = 1 + std::log2(octave(8) / octave(128)) / 4;
    EXPECT_GT(exponent, 1.1) << slot;
    EXPECT_LT(exponent, 1.2) << slot;
  }
}

TEST(CriteoModel, ASlotHasAsManyValuesAsTheVocabulary) {
  const CriteoModel model(1, 50);
  std::array<std::set<uint32_t>, CriteoModel::kCategories> values;
  for (uint64_t i = 0; i < 20000; ++i) {
    const CriteoModel::Row row = model.row(i);
    for (size_t slot = 0; slot < values.size(); ++slot) values[slot].insert(row.categories[slot]);
  }
  for (const auto& each : values) EXPECT_EQ(each.size(), 50U);
  EXPECT_NE(values[0], values[1]);
}

TEST_F(GenerateTest, CriteoTellsItsProgressOnTheCallersThread) {
  std::vector<uint64_t> told;
  const auto caller = std::this_thread::get_id();
  criteo({.rows = 50000, .files = 4, .progress = [&](uint64_t rows) {
            EXPECT_EQ(std::this_thread::get_id(), caller);
            told.push_back(rows);
          }});
  ASSERT_GE(told.size(), 2U);
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_EQ(told.back(), 50000U);
}

TEST_F(GenerateTest, CriteoRefusesOptionsThatMakeNoSense) {
  const auto refused = [&](const CriteoOptions& options) {
    return message_of<ConfigError>([&] { generate_criteo(*env_, folder("none"), options); });
  };
  EXPECT_EQ(refused({.rows = 0}), "rows is 0, expected at least 1");
  EXPECT_EQ(refused({.rows = 5, .files = 6}), "files is 6, expected 1 to 5, the number of rows");
  EXPECT_EQ(refused({.files = 0}), "files is 0, expected 1 to 1000000, the number of rows");
  EXPECT_EQ(refused({.vocab = 3}), "vocab is 3, expected 4 to 1000000000 distinct values per slot");
  EXPECT_EQ(refused({.hash = 0}), "hash is 0, expected the size of the id range");
  EXPECT_EQ(refused({.threads = 0}), "threads is 0, expected 1 to 256");
  EXPECT_FALSE(env_->file_exists(folder("none")));
}

TEST_F(GenerateTest, CriteoLeavesNoPartsOfAnEarlierGenerationAmongItsOwn) {
  const std::string out = folder("again");
  generate_criteo(*env_, out, {.rows = 100, .files = 4});
  EXPECT_NO_THROW(generate_criteo(*env_, out, {.rows = 100, .files = 4}));
  EXPECT_THROW(generate_criteo(*env_, out, {.rows = 100, .files = 3}), ConfigError);
}

TEST_F(GenerateTest, CriteoFailsWhereItCannotWrite) {
  const std::string out = folder("full");
  env_->make_directories(out + "/part-1.new");  // a folder where the second thread needs a file
  EXPECT_THROW(generate_criteo(*env_, out, {.rows = 100, .files = 2}), IoError);
  EXPECT_FALSE(env_->file_exists(out + "/part-1"));
}

/// Words as rows of how much more often than by chance they share a sentence with others (positive
/// pointwise mutual information), of length 1: what word vectors are learned from.
class Neighbours {
 public:
  explicit Neighbours(const std::string& corpus) {
    std::vector<std::vector<size_t>> sentences;
    for (const std::string& line : lines_of(corpus)) {
      std::istringstream in(line);
      auto& sentence = sentences.emplace_back();
      for (std::string word; in >> word;)
        sentence.push_back(words_.emplace(word, words_.size()).first->second);
    }
    const size_t n = words_.size();
    rows_.assign(n, std::vector<double>(n));
    std::vector<double> sums(n);
    double all = 0;
    for (const auto& sentence : sentences)
      for (size_t i = 0; i < sentence.size(); ++i)
        for (size_t j = 0; j < sentence.size(); ++j) {
          if (i == j) continue;
          ++rows_[sentence[i]][sentence[j]];
          ++sums[sentence[i]];
          ++all;
        }
    for (size_t i = 0; i < n; ++i) {
      double square = 0;
      for (size_t j = 0; j < n; ++j) {
        double& x = rows_[i][j];
        x = std::max(0.0, std::log(std::max(x, 1e-9) * all / (sums[i] * sums[j])));
        square += x * x;
      }
      for (double& x : rows_[i]) x /= std::sqrt(square);
    }
  }

  size_t size() const { return words_.size(); }
  size_t index(const std::string& word) const { return words_.at(word); }
  double product(const std::vector<double>& a, size_t word) const {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += a[i] * rows_[word][i];
    return sum;
  }
  const std::vector<double>& row(size_t word) const { return rows_[word]; }

 private:
  std::map<std::string, size_t> words_;
  std::vector<std::vector<double>> rows_;
};

constexpr TextOptions kSmallText{.words = 100'000, .vocab = 300, .topics = 12, .sentence = 15};

TEST_F(GenerateTest, TextTeachesItsTopicsAndForms) {
  const TextReport report = generate_text(*env_, folder("text"), kSmallText);
  const Neighbours words(text(folder("text/corpus.txt")));
  EXPECT_EQ(words.size(), 300U);

  size_t right = 0, triples = 0;
  for (const std::string& line : lines_of(text(folder("text/triples.txt")))) {
    std::istringstream in(line);
    std::string a, same, other;
    ASSERT_TRUE(in >> a >> same >> other) << line;
    const auto& row = words.row(words.index(a));
    right += words.product(row, words.index(same)) > words.product(row, words.index(other)) ? 1 : 0;
    ++triples;
  }
  EXPECT_EQ(triples, report.triples);
  EXPECT_GT(static_cast<double>(right), 0.97 * static_cast<double>(triples));

  const auto lines = lines_of(text(folder("text/analogies.txt")));
  ASSERT_EQ(lines.size(), report.analogies + 1);
  EXPECT_EQ(lines[0], ": forms");
  size_t found = 0;
  for (size_t i = 1; i < lines.size(); ++i) {
    std::istringstream in(lines[i]);
    std::array<std::string, 4> word;
    std::array<size_t, 4> at;
    for (size_t k = 0; k < 4; ++k) {
      ASSERT_TRUE(in >> word[k]) << lines[i];
      at[k] = words.index(word[k]);
    }
    std::vector<double> wanted = words.row(at[1]);
    for (size_t j = 0; j < wanted.size(); ++j)
      wanted[j] += words.row(at[2])[j] - words.row(at[0])[j];
    size_t best = at[0];
    double most = -1;
    for (size_t candidate = 0; candidate < words.size(); ++candidate) {
      if (candidate == at[0] || candidate == at[1] || candidate == at[2]) continue;
      if (const double near = words.product(wanted, candidate); near > most) {
        most = near;
        best = candidate;
      }
    }
    found += best == at[3] ? 1 : 0;
  }
  EXPECT_GT(static_cast<double>(found), 0.9 * static_cast<double>(report.analogies));
}

TEST_F(GenerateTest, TextHasTheWordsItWasAskedFor) {
  const TextReport report = generate_text(*env_, folder("text"), {.words = 1003, .sentence = 10});
  EXPECT_EQ(report.sentences, 101U);
  const auto lines = lines_of(text(folder("text/corpus.txt")));
  ASSERT_EQ(lines.size(), 101U);
  EXPECT_EQ(std::ranges::count(lines[0], ' '), 9);
  EXPECT_EQ(std::ranges::count(lines.back(), ' '), 2);
}

TEST_F(GenerateTest, TextHasTheSameBytesForEver) {
  TextOptions options = kSmallText;
  options.words = 5000;
  std::string all;
  generate_text(*env_, folder("text"), options);
  for (const char* name : {"corpus", "triples", "analogies"})
    all += text(folder("text/" + std::string(name) + ".txt"));
  EXPECT_EQ(hash64(all), 0x0ee01f4c9ce1a24bULL) << std::hex << hash64(all);
}

TEST_F(GenerateTest, TextRefusesOptionsThatMakeNoSense) {
  const auto refused = [&](const TextOptions& options) {
    return message_of<ConfigError>([&] { generate_text(*env_, folder("none"), options); });
  };
  EXPECT_EQ(refused({.words = 0}), "words is 0, expected at least 1");
  EXPECT_EQ(refused({.topics = 1}), "topics is 1, expected at least 2");
  EXPECT_EQ(refused({.vocab = 10}), "vocab is 10, too few words for 50 topics");
  EXPECT_EQ(refused({.sentence = 1}), "sentence is 1, expected 2 to 10000 words");
}

}  // namespace
}  // namespace argosy
