#include "argosy/ps/sparse_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <thread>

#include "argosy/base/error.h"

namespace argosy {
namespace {

using Keys = std::vector<Key>;
using Floats = std::vector<float>;

TableSpec spec_of(size_t dim, std::string rule = "adam", std::string entry = "") {
  return {.name = "ids",
          .dim = dim,
          .rule = std::move(rule),
          .init = "uniform(-1, 1)",
          .learning_rate = "0.1",
          .regularizer = "",
          .clip = "",
          .seed = 7,
          .entry = std::move(entry)};
}

Floats pull(SparseTable& table, const Keys& keys) {
  Floats rows(keys.size() * table.spec().dim, -99.0F);
  table.pull(keys, rows);
  return rows;
}

Floats pull_existing(const SparseTable& table, const Keys& keys) {
  Floats rows(keys.size() * table.spec().dim, -99.0F);
  table.pull_existing(keys, rows);
  return rows;
}

std::vector<std::byte> saved(const SparseTable& table) {
  ByteBuffer buffer;
  table.save(buffer);
  return {buffer.bytes().begin(), buffer.bytes().end()};
}

void load(SparseTable& table, std::span<const std::byte> bytes) {
  ByteSource source(bytes, "a save");
  table.load(source);
}

template <class E, class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const E& e) {
    return e.what();
  }
  return "accepted";
}

std::string config_error(TableSpec spec) {
  return error_of<ConfigError>([&] { const SparseTable table(std::move(spec)); });
}

TEST(SparseTable, RowsAreInitialisedByKeyNotByArrival) {
  SparseTable a(spec_of(4)), b(spec_of(4));
  const Floats first = pull(a, {1, 2}), second = pull(b, {2, 1});
  EXPECT_EQ(Floats(first.begin(), first.begin() + 4), Floats(second.begin() + 4, second.end()));
  EXPECT_NE(Floats(first.begin(), first.begin() + 4), Floats(first.begin() + 4, first.end()));
  TableSpec named = spec_of(4), seeded = spec_of(4);
  named.name = "other";
  seeded.seed = 8;
  SparseTable c(named), d(seeded);
  EXPECT_NE(pull(c, {1, 2}), first);
  EXPECT_NE(pull(d, {1, 2}), first);
}

TEST(SparseTable, PullMakesRowsAndPullExistingDoesNot) {
  SparseTable table(spec_of(3));
  EXPECT_EQ(pull_existing(table, {5, 6}), Floats(6, 0.0F));
  EXPECT_EQ(table.size(), 0U);
  const Floats made = pull(table, {5, 6});
  EXPECT_EQ(table.size(), 2U);
  EXPECT_EQ(pull_existing(table, {5, 6}), made);
}

TEST(SparseTable, ZeroAndTheLargestKeyAreOrdinaryKeys) {
  SparseTable table(spec_of(2, "sgd"));
  const Keys keys{0, ~Key{0}, 1};
  const Floats before = pull(table, keys);
  table.push(keys, Floats{1, 1, 2, 2, 3, 3}, 1);
  const Floats after = pull(table, keys);
  EXPECT_EQ(table.size(), 3U);
  for (size_t i = 0; i < 6; ++i) {
    const size_t grad = i / 2 + 1;
    EXPECT_FLOAT_EQ(after[i], before[i] - 0.1F * static_cast<float>(grad));
  }
  SparseTable copy(spec_of(2, "sgd"));
  load(copy, saved(table));
  EXPECT_EQ(pull_existing(copy, keys), after);
}

TEST(SparseTable, DuplicateKeysOfAPushAreAddedUpForOneStep) {
  SparseTable a(spec_of(2)), b(spec_of(2));
  a.push(Keys{3, 9, 3, 4, 3}, Floats{1, 2, 10, 20, 3, 4, 30, 40, 5, 6}, 1);
  b.push(Keys{3, 9, 4}, Floats{9, 12, 10, 20, 30, 40}, 1);
  EXPECT_EQ(saved(a), saved(b));
}

TEST(SparseTable, APushOfAMissingRowMakesItFirst) {
  SparseTable a(spec_of(2)), b(spec_of(2));
  pull(b, {1});
  a.push(Keys{1}, Floats{1, -1}, 1);
  b.push(Keys{1}, Floats{1, -1}, 1);
  EXPECT_EQ(saved(a), saved(b));
}

TEST(SparseTable, APushWhereAPullFoundTheRowsIsAPushOfItsKeys) {
  for (const char* entry : {"", "count_filter(2)", "probability(0.5)", "show_click(1, 2)"}) {
    TableSpec spec = spec_of(2, "adam", entry);
    spec.track_unseen = true;
    SparseTable a(spec), b(spec);
    SparseTable::Located located;
    Keys keys;
    for (Key key = 0; key < 2000; ++key) keys.push_back(key * key);
    Floats rows(2 * keys.size());
    const Floats grads(rows.size(), 0.5F);
    const auto empty = saved(b);
    // What may come between a pull and its push: nothing, rows erased and made again elsewhere, a
    // load of other rows. A second push of the same pull is a push like any other.
    using Between = void (*)(SparseTable&, std::span<const std::byte> empty);
    const Between between[] = {
        [](SparseTable&, std::span<const std::byte>) {},
        [](SparseTable& table, std::span<const std::byte>) {
          table.shrink(1);
          pull(table, {77, 4, 1, 0});
          pull(table, {77, 4, 1, 0});
        },
        [](SparseTable& table, std::span<const std::byte> none) { load(table, none); }};
    uint64_t step = 0;
    for (const Between act : between) {
      pull(b, keys);
      a.pull(keys, rows, {}, located);
      EXPECT_EQ(Keys(located.keys().begin(), located.keys().end()), keys);
      EXPECT_EQ(pull_existing(b, keys), rows);
      for (SparseTable* table : {&a, &b}) act(*table, empty);
      for (int i = 0; i < 2; ++i) {
        a.push(located, grads, ++step);
        b.push(keys, grads, step);
      }
      EXPECT_EQ(saved(a), saved(b)) << entry;
      EXPECT_EQ(a.scores(4).has_value(), b.scores(4).has_value());
    }
    EXPECT_NE(error_of<DataError>([&] { a.push(located, Floats(3), 9); }), "accepted");
  }
}

/// What a sparse table should do, row by row.
class ReferenceTable {
 public:
  explicit ReferenceTable(const TableSpec& spec) : spec_(spec), rule_(make_rule(spec.rule)) {}

  Floats& row(Key key) {
    const auto [found, fresh] = rows_.try_emplace(key);
    if (fresh) {
      SparseTable alone(spec_);  // first values only depend on the key
      found->second = pull(alone, {key});
      found->second.resize(spec_.dim + rule_->state_size(spec_.dim));
      rule_->init(std::span(found->second).subspan(spec_.dim));
    }
    return found->second;
  }
  void push(const Keys& keys, const Floats& grads, uint64_t step) {
    std::map<Key, Floats> merged;
    for (size_t i = 0; i < keys.size(); ++i) {
      Floats& sum = merged[keys[i]];
      const float* grad = grads.data() + i * spec_.dim;
      if (sum.empty()) {
        sum.assign(grad, grad + spec_.dim);
        continue;
      }
      for (size_t j = 0; j < spec_.dim; ++j) sum[j] += grad[j];
    }
    for (const auto& [key, grad] : merged) {
      const std::span<float> floats = row(key);
      rule_->apply(floats.first(spec_.dim), floats.subspan(spec_.dim), grad,
                   {.lr = 0.1F, .step = step});
    }
  }
  size_t size() const { return rows_.size(); }

 private:
  TableSpec spec_;
  std::unique_ptr<Rule> rule_;
  std::map<Key, Floats> rows_;
};

TEST(SparseTable, EqualsAReferenceModelUnderRandomOperations) {
  constexpr uint64_t kSeed = 20240607;
  SCOPED_TRACE(kSeed);
  const RandomStream random(kSeed);
  uint64_t drawn = 0;
  const auto below = [&](uint64_t n) { return random.below(drawn++, n); };
  TableSpec spec = spec_of(5);
  spec.shards = 4;
  SparseTable table(spec);
  ReferenceTable reference(spec);
  for (uint64_t step = 1; step <= 60; ++step) {
    Keys keys(1 + below(40));
    for (Key& key : keys) key = below(2) == 0 ? below(50) : mix(below(200));
    Floats floats(keys.size() * spec.dim);
    for (float& x : floats) x = static_cast<float>(random.normal(drawn++));
    switch (below(3)) {
      case 0:
        table.push(keys, floats, step);
        reference.push(keys, floats, step);
        break;
      case 1:
        table.assign(keys, floats);
        for (size_t i = 0; i < keys.size(); ++i)
          std::copy_n(floats.begin() + static_cast<ptrdiff_t>(i * spec.dim), spec.dim,
                      reference.row(keys[i]).begin());
        break;
      default:
        const Floats rows = pull(table, keys);
        for (size_t i = 0; i < keys.size(); ++i) {
          const Floats& expected = reference.row(keys[i]);
          ASSERT_TRUE(std::equal(rows.begin() + static_cast<ptrdiff_t>(i * spec.dim),
                                 rows.begin() + static_cast<ptrdiff_t>((i + 1) * spec.dim),
                                 expected.begin()))
              << "step " << step << ", key " << keys[i];
        }
    }
    ASSERT_EQ(table.size(), reference.size());
  }
}

TEST(SparseTable, GrowthToAMillionKeysKeepsAllValues) {
  constexpr size_t kRows = 1'000'000, kBatch = 10'000;
  TableSpec spec = spec_of(1, "sgd");
  spec.init = "zeros";
  SparseTable table(spec);
  Keys keys(kBatch);
  Floats rows(kBatch);
  const auto batch = [&](size_t first) {
    for (size_t i = 0; i < kBatch; ++i) {
      keys[i] = (first + i) * (first % 20'000 == 0 ? 1 : 0x9e3779b97f4a7c15ULL);
      rows[i] = static_cast<float>(first + i);
    }
  };
  for (size_t first = 0; first < kRows; first += kBatch) {
    batch(first);
    table.assign(keys, rows);
  }
  EXPECT_EQ(table.size(), kRows);
  for (size_t first = 0; first < kRows; first += kBatch) {
    batch(first);
    ASSERT_EQ(pull_existing(table, keys), rows) << first;
  }
}

TEST(SparseTable, PoliciesAndSchedulesActAsOnDenseTables) {
  TableSpec spec = spec_of(2, "sgd");
  spec.init = "constant(2)";
  spec.learning_rate = "piecewise(1, 1, 0.5)";
  spec.regularizer = "l2(0.25)";
  spec.clip = "value(1)";
  SparseTable table(spec);
  table.push(Keys{4}, Floats{5, 0.25F}, 1);
  EXPECT_EQ(pull(table, {4}), (Floats{0.5F, 1.25F}));
  table.push(Keys{4}, Floats{-0.125F, -0.3125F}, 2);
  EXPECT_EQ(pull(table, {4}), (Floats{0.5F, 1.25F}));
}

TEST(SparseTable, CountFilterAdmitsAKeyAtItsNthPull) {
  SparseTable table(spec_of(2, "sgd", "count_filter(3)")), open(spec_of(2, "sgd"));
  EXPECT_EQ(pull(table, {1}), Floats(2, 0.0F));
  table.push(Keys{1}, Floats{1, 1}, 1);  // ignored
  EXPECT_EQ(pull(table, {1, 2}), Floats(4, 0.0F));
  EXPECT_EQ(table.size(), 0U);
  pull_existing(table, {1});  // not counted
  EXPECT_EQ(pull(table, {1}), pull(open, {1}));
  EXPECT_EQ(table.size(), 1U);
  table.push(Keys{1, 2}, Floats{1, 1, 1, 1}, 1);
  open.push(Keys{1}, Floats{1, 1}, 1);
  EXPECT_EQ(pull(table, {1}), pull(open, {1}));
  EXPECT_EQ(table.size(), 1U);

  Floats rows(4);
  table.pull(Keys{2, 3}, rows, {.counts = std::vector<uint32_t>{2, 2}});
  EXPECT_EQ(table.size(), 2U);
  EXPECT_EQ(rows, (Floats{pull(open, {2})[0], pull(open, {2})[1], 0, 0}));
}

TEST(SparseTable, ProbabilityAdmitsTheSameShareOfKeysEverywhere) {
  constexpr size_t kKeys = 10'000;
  SparseTable a(spec_of(1, "sgd", "probability(0.3)")), b(spec_of(1, "sgd", "probability(0.3)"));
  Keys keys(kKeys);
  for (size_t i = 0; i < kKeys; ++i) keys[i] = i;
  const Floats rows = pull(a, keys);
  EXPECT_EQ(pull(a, keys), rows);
  EXPECT_NEAR(static_cast<double>(a.size()), 0.3 * kKeys, 200);
  std::reverse(keys.begin(), keys.end());
  b.push(keys, Floats(kKeys, 0.0F), 1);
  EXPECT_EQ(saved(a), saved(b));
}

TEST(SparseTable, ShowClickAddsUpSideColumns) {
  SparseTable table(spec_of(1, "sgd", "show_click(show, click)"));
  const Keys keys{1, 2, 1};
  const Floats grads(3, 1.0F);
  table.push(keys, grads, 1, {.show = Floats{1, 2, 3}, .click = Floats{1, 0, 1}});
  table.push(Keys{2}, Floats{1}, 2);
  EXPECT_EQ(table.scores(1)->show, 4);
  EXPECT_EQ(table.scores(1)->click, 2);
  EXPECT_EQ(table.scores(2)->show, 3);
  EXPECT_EQ(table.scores(2)->click, 0);
  EXPECT_FALSE(table.scores(3).has_value());
  SparseTable plain(spec_of(1, "sgd"));
  plain.push(keys, grads, 1);
  plain.push(Keys{2}, Floats{1}, 2);
  EXPECT_EQ(pull(plain, keys), pull(table, keys));
}

TEST(SparseTable, ShrinkErasesRowsNotSeenForAsManyCalls) {
  TableSpec spec = spec_of(2, "sgd", "count_filter(2)");
  spec.track_unseen = true;
  SparseTable table(spec);
  pull(table, {1, 2, 3, 1, 2, 3, 4});  // 4 is still counted
  EXPECT_EQ(table.size(), 3U);
  EXPECT_EQ(table.shrink(3), 0U);
  EXPECT_EQ(table.shrink(3), 0U);
  pull(table, {1});
  table.push(Keys{2}, Floats{1, 1}, 1);
  EXPECT_EQ(table.shrink(3), 1U);
  EXPECT_EQ(table.size(), 2U);
  EXPECT_EQ(pull_existing(table, {3}), Floats(2, 0.0F));
  pull(table, {4});  // the first pull is forgotten
  EXPECT_EQ(table.size(), 2U);
  SparseTable fresh(spec);
  EXPECT_EQ(pull(table, {3, 3}), pull(fresh, {3, 3}));  // begins anew
  SparseTable untracked(spec_of(2));
  EXPECT_EQ(error_of<ConfigError>([&] { untracked.shrink(3); }),
            "table 'ids': shrink needs track_unseen, which is off");
}

TEST(SparseTable, ErasedPlacesAreUsedAgain) {
  TableSpec spec = spec_of(1, "sgd");
  spec.track_unseen = true;
  spec.init = "zeros";
  spec.shards = 1;
  SparseTable table(spec);
  for (size_t round = 0; round < 20; ++round) {
    Keys keys(5000);
    Floats rows(5000);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = mix(round * 5000 + i);
    for (size_t i = 0; i < keys.size(); ++i) rows[i] = static_cast<float>(i);
    table.assign(keys, rows);
    EXPECT_EQ(pull_existing(table, keys), rows);
    EXPECT_EQ(table.shrink(2), round == 0 ? 0U : 5000U);
    EXPECT_EQ(table.size(), 5000U);
  }
}

TableSpec full_spec(size_t shards) {
  TableSpec spec = spec_of(3, "adam", "count_filter(2)");
  spec.track_unseen = true;
  spec.shards = shards;
  return spec;
}

void train(SparseTable& table, uint64_t first_step) {
  for (uint64_t step = first_step; step < first_step + 3; ++step) {
    Keys keys;
    for (Key i = 0; i < 9000; ++i) keys.push_back(mix(i * (step % 2 + 1)));
    Floats grads(keys.size() * 3);
    for (size_t i = 0; i < grads.size(); ++i)
      grads[i] = static_cast<float>((i * 31 + step) % 17) - 8.0F;
    pull(table, keys);
    table.push(keys, grads, step);
    table.shrink(100);
  }
}

TEST(SparseTable, SaveAndLoadKeepEverythingForAnyShards) {
  SparseTable a(full_spec(16)), b(full_spec(2));
  train(a, 1);
  pull(b, {123});
  load(b, saved(a));
  EXPECT_EQ(saved(a), saved(b));
  EXPECT_EQ(a.size(), b.size());
  train(a, 4);
  train(b, 4);
  EXPECT_EQ(saved(a), saved(b));
}

TEST(SparseTable, DamagedSavesAreRefusedAndChangeNothing) {
  SparseTable table(full_spec(4)), small(full_spec(4));
  train(table, 1);
  pull(small, {1, 2, 3, 1, 2, 9});
  const auto before = saved(table);
  auto bytes = saved(small);
  ASSERT_GT(bytes.size(), 100U);
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::span<const std::byte> part(bytes.data(), length);
    EXPECT_NE(error_of<DataError>([&] { load(table, part); }), "accepted") << length;
  }
  for (std::byte& byte : bytes) {
    byte ^= std::byte{0x10};
    EXPECT_NE(error_of<DataError>([&] { load(table, bytes); }), "accepted");
    byte ^= std::byte{0x10};
  }
  EXPECT_EQ(saved(table), before);
  load(table, bytes);
  EXPECT_EQ(saved(table), bytes);
  SparseTable other(spec_of(3));
  EXPECT_EQ(
      error_of<DataError>([&] { load(other, bytes); }),
      "table 'ids': a save holds rows of 3 weights in 10 floats (unseen 1, scores 0, counts 2)"
      ", expected 3 in 9 (unseen 0, scores 0, counts 0)");
}

TEST(SparseTable, ConcurrentPushesGiveExactSums) {
  constexpr size_t kThreads = 4, kSteps = 50, kKeys = 500;
  TableSpec spec = spec_of(3, "sgd");
  spec.init = "zeros";
  spec.learning_rate = "1";
  spec.track_unseen = true;
  SparseTable table(spec);
  {
    std::vector<std::jthread> threads;
    for (size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&table, thread] {
        for (uint64_t step = 1; step <= kSteps; ++step) {
          Keys keys;
          for (size_t i = 0; i < kKeys; ++i) keys.push_back((i * 7 + thread * step) % kKeys);
          keys.push_back(thread);  // twice in this call
          pull(table, keys);
          table.push(keys, Floats(keys.size() * 3, -1.0F), step);
          if (step % 20 == 0) table.shrink(1000);
          if (step % 25 == 0) saved(table);
        }
      });
    }
  }
  Keys keys(kKeys);
  for (size_t i = 0; i < kKeys; ++i) keys[i] = i;
  const Floats rows = pull_existing(table, keys);
  EXPECT_EQ(table.size(), kKeys);
  for (size_t i = 0; i < kKeys; ++i) {
    const float expected = kThreads * kSteps + (i < kThreads ? kSteps : 0);
    for (size_t j = 0; j < 3; ++j) EXPECT_EQ(rows[i * 3 + j], expected) << i;
  }
}

TEST(SparseTable, BadCallsAreRefusedWhole) {
  SparseTable table(spec_of(2, "sgd", "show_click(show, click)"));
  Floats rows(3);
  const Keys two{1, 2};
  EXPECT_EQ(error_of<DataError>([&] { table.pull(two, rows); }),
            "table 'ids': 2 keys with 3 floats, expected 4");
  EXPECT_EQ(error_of<DataError>([&] { table.push(two, Floats(4), 0); }),
            "table 'ids': step 0, but the first step is 1");
  EXPECT_EQ(
      error_of<DataError>([&] { table.push(two, Floats(4), 1, {.show = rows, .click = {}}); }),
      "table 'ids': 2 keys with 3 values of column show");
  pull(table, {});
  EXPECT_EQ(table.size(), 0U);
}

TEST(SparseTable, BadSpecsAreRefused) {
  EXPECT_EQ(config_error(spec_of(0)), "table 'ids': dim is 0, expected at least 1");
  TableSpec spec = spec_of(2);
  spec.shards = 12;
  EXPECT_EQ(config_error(spec), "table 'ids': shards is 12, expected a power of two up to 4096");
  spec = spec_of(2);
  spec.init = "assign(1, 2, 3)";
  EXPECT_EQ(config_error(spec), "'assign(1, 2, 3)': a row of table 'ids' has 2 elements");
  EXPECT_NE(config_error(spec_of(2, "lamb")), "accepted");
  EXPECT_EQ(config_error(spec_of(2, "sgd", "count(3)")),
            "'count(3)': no such entry, expected count_filter, probability or show_click");
  EXPECT_EQ(config_error(spec_of(2, "sgd", "probability(1)")),
            "'probability(1)': probability is 1, expected a number between 0 and 1");
  EXPECT_EQ(config_error(spec_of(2, "sgd", "count_filter(-1)")),
            "'count_filter(-1)': count is -1, expected a whole number from 0 to 16777216");
}

TEST(MakeTable, ChoosesByElements) {
  TableSpec dense = spec_of(2);
  dense.elements = 3;
  EXPECT_EQ(make_table(dense)->size(), 2U);
  EXPECT_EQ(make_table(spec_of(2))->size(), 0U);
}

}  // namespace
}  // namespace argosy
