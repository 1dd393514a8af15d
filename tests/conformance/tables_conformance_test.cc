// Every kind of table of ps/tables/, and one that takes all liberties (later_table.h), does what a
// plain model does, to the bit: under random operations, with every entry, in any parts, from
// several threads, with tickets that are kept while rows are made, erased and loaded.
#include <gtest/gtest.h>

#include <barrier>
#include <cctype>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "tests/conformance/later_table.h"
#include "tests/conformance/table_users.h"

namespace argosy {
namespace {

using ps::Section;
using ps::TableSpec;

constexpr const char* kEntries[] = {"", "count_filter(3)", "probability(0.5)",
                                    "show_click(show, click)"};

class Tables : public testing::TestWithParam<std::string> {
 protected:
  TableSpec spec(size_t dim, std::string rule = "adam", std::string entry = "") const {
    return {.name = "ids",
            .dim = dim,
            .rule = std::move(rule),
            .init = "uniform(-1, 1)",
            .learning_rate = "0.1",
            .seed = 7,
            .entry = std::move(entry),
            .store = GetParam()};
  }
  TableSpec tracked(size_t dim, std::string rule, std::string entry) const {
    TableSpec result = spec(dim, std::move(rule), std::move(entry));
    result.track_unseen = true;
    return result;
  }
  /// Values are sums, from 0.
  TableSpec adding(std::string entry) const {
    TableSpec result = tracked(3, "add", std::move(entry));
    result.init = "zeros";
    result.learning_rate = "1";
    return result;
  }
};

TEST_P(Tables, EqualAModelUnderRandomOperations) {
  for (const char* const entry : kEntries)
    for (const bool track_unseen : {false, true})
      for (uint64_t seed = 1; seed <= 4; ++seed) {
        SCOPED_TRACE("entry '" + std::string(entry) + "', track_unseen " +
                     std::to_string(track_unseen) + ", seed " + std::to_string(seed));
        TableSpec random = spec(5, seed % 2 == 0 ? "adam" : "adagrad", entry);
        random.track_unseen = track_unseen;
        Pair pair(random, seed);
        for (int i = 0; i < 150 && !HasFatalFailure(); ++i) {
          pair.act();
          if (i % 5 == 0) pair.compare();
        }
        pair.compare();
        if (HasFatalFailure()) return;
      }
}

/// Rounds in which all threads use the table at once; between them it shrinks and is loaded, while
/// everybody holds tickets.
TEST_P(Tables, GiveExactSumsFromSeveralThreads) {
  constexpr size_t kThreads = 4, kRounds = 8;
  for (const char* const entry : kEntries) {
    constexpr uint64_t kSeed = 20261118;
    SCOPED_TRACE("entry '" + std::string(entry) + "', seed " + std::to_string(kSeed));
    const TableSpec sums = adding(entry);
    const auto table = make_table(sums);
    TableModel shared(sums);
    std::deque<Sharer> sharers;
    for (size_t i = 0; i < kThreads; ++i) sharers.emplace_back(*table, sums, i, kSeed);
    uint64_t step = 0;
    const auto between = [&]() noexcept {
      ++step;
      std::map<Key, uint32_t> pushed;
      for (Sharer& sharer : sharers)
        for (const auto& [key, times] : sharer.pushed()) pushed[key] += times;
      for (const auto& [key, times] : pushed)
        for (uint32_t i = 0; i < times; ++i)
          shared.apply(KeyColumns{{key}}, Floats(sums.dim, static_cast<float>(1 + key % 3)), step);
      const uint32_t unseen = step % 3 == 0 ? 1 : 2;  // 1: everything goes
      size_t erased = shared.shrink(unseen);
      for (Sharer& sharer : sharers) erased += sharer.own().shrink(unseen);
      EXPECT_EQ(table->shrink(unseen), erased);
      TableModel::Content all = shared.content();
      for (Sharer& sharer : sharers) {
        const TableModel::Content& own = sharer.own().content();
        all.rows.insert(own.rows.begin(), own.rows.end());
        all.counted.insert(own.counted.begin(), own.counted.end());
      }
      EXPECT_EQ(content_of(*table), all) << "step " << step;
      load(*table, saved(*table));
    };
    std::barrier rounds(kThreads, between);
    std::vector<std::jthread> threads;
    for (Sharer& sharer : sharers)
      threads.emplace_back([&] {
        for (uint64_t round = 1; round <= kRounds; ++round) {
          sharer.round(round);
          rounds.arrive_and_wait();
        }
      });
    threads.clear();
    EXPECT_EQ(step, kRounds);
  }
}

TEST_P(Tables, LoseNothingWhenThreadsPushTheSameRows) {
  constexpr size_t kThreads = 4, kPushes = 8'000;
  TableSpec sums = adding("");
  sums.dim = 64;
  sums.shards = 1;
  const auto table = make_table(sums);
  Keys keys;
  for (Key key = 0; key < 30; ++key) keys.push_back(mix(key));
  const Floats ones(keys.size() * sums.dim, 1.0F);
  {
    std::barrier start(kThreads);
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < kThreads; ++i)
      threads.emplace_back([&] {
        ps::Ticket ticket;
        table->locate(keys, {}, {}, ticket);
        start.arrive_and_wait();
        for (uint64_t step = 1; step <= kPushes; ++step) apply_located(*table, ticket, ones, step);
      });
  }
  EXPECT_EQ(peek(*table, keys), Floats(ones.size(), kThreads * kPushes));
}

/// With a part for each thread, as in a server.
TEST_P(Tables, AreCutIntoPartsThatThreadsWorkOnAtOnce) {
  constexpr size_t kParts = 3;
  const TableSpec sums = adding("");
  const auto table = make_table(sums);
  KeyColumns list;
  for (Key key = 0; key < 500; ++key) list.keys.push_back(mix(key));
  const Floats grads(list.keys.size() * sums.dim, 2.0F);
  Floats rows(grads.size(), -99.0F);
  {
    std::vector<std::jthread> threads;
    for (size_t part = 0; part < kParts; ++part)
      threads.emplace_back([&, part] {
        ps::Ticket ticket;
        table->locate(list.keys, {}, {part, kParts}, ticket);
        for (uint64_t step = 1; step <= 10; ++step) apply_located(*table, ticket, grads, step);
        await(*table, ticket);
        table->read(ticket, ps::Purpose::training, rows);
      });
  }
  EXPECT_EQ(rows, Floats(grads.size(), 20.0F));
  EXPECT_EQ(table->size(), list.keys.size());
}

TEST_P(Tables, ChangeNothingThatIsSavedInLocateAndRead) {
  for (const char* const entry : kEntries) {
    SCOPED_TRACE(entry);
    const auto table = make_table(tracked(2, "adam", entry));
    Keys keys;
    for (Key key = 0; key < 200; ++key) keys.push_back(key);
    apply(*table, keys, Floats(keys.size() * 2, 0.5F), 1);
    table->shrink(5);
    const auto before = saved(*table);
    for (Key key = 1000; key < 1100; ++key) keys.push_back(key);
    KeyColumns list{keys, std::vector<uint32_t>(keys.size(), 9), Floats(keys.size(), 9),
                    Floats(keys.size(), 9)};
    for (const ps::Purpose purpose : {ps::Purpose::training, ps::Purpose::inference}) {
      read(*table, list, purpose);
      EXPECT_EQ(saved(*table), before);
    }
  }
}

TEST_P(Tables, ReadForInferenceAsZerosWhatIsNotThere) {
  const auto table = make_table(spec(3));
  EXPECT_EQ(peek(*table, Keys{5, 6}), Floats(6, 0.0F));
  const Floats first = read(*table, Keys{5, 6});  // as they will begin
  EXPECT_NE(first, Floats(6, 0.0F));
  EXPECT_EQ(table->size(), 0U);
  apply(*table, Keys{5, 6}, Floats(6, 0.0F), 1);
  EXPECT_EQ(peek(*table, Keys{5, 6}), first);
  EXPECT_EQ(table->size(), 2U);
}

TEST_P(Tables, BeginRowsByKeyNotByArrival) {
  const auto a = make_table(spec(4)), b = make_table(spec(4));
  const Floats first = read(*a, Keys{1, 2}), second = read(*b, Keys{2, 1});
  EXPECT_EQ(Floats(first.begin(), first.begin() + 4), Floats(second.begin() + 4, second.end()));
  EXPECT_NE(Floats(first.begin(), first.begin() + 4), Floats(first.begin() + 4, first.end()));
  TableSpec named = spec(4), seeded = spec(4);
  named.name = "other";
  seeded.seed = 8;
  EXPECT_NE(read(*make_table(named), Keys{1, 2}), first);
  EXPECT_NE(read(*make_table(seeded), Keys{1, 2}), first);
}

TEST_P(Tables, TakeZeroAndTheLargestKeyAsOrdinaryKeys) {
  const auto table = make_table(spec(2, "sgd")), copy = make_table(spec(2, "sgd"));
  const Keys keys{0, ~Key{0}, 1};
  const Floats before = read(*table, keys);
  apply(*table, keys, Floats{1, 1, 2, 2, 3, 3}, 1);
  const Floats after = read(*table, keys);
  EXPECT_EQ(table->size(), 3U);
  for (size_t i = 0; i < 6; ++i) {
    const auto grad = static_cast<float>(i / 2 + 1);
    EXPECT_FLOAT_EQ(after[i], before[i] - 0.1F * grad);
  }
  load(*copy, saved(*table));
  EXPECT_EQ(peek(*copy, keys), after);
}

TEST_P(Tables, AddUpKeysThatComeTwiceForOneStep) {
  const auto a = make_table(spec(2)), b = make_table(spec(2));
  apply(*a, Keys{3, 9, 3, 4, 3}, Floats{1, 2, 10, 20, 3, 4, 30, 40, 5, 6}, 1);
  apply(*b, Keys{3, 9, 4}, Floats{9, 12, 10, 20, 30, 40}, 1);
  EXPECT_EQ(saved(*a), saved(*b));
}

/// A located ticket may be applied repeatedly, even if its rows have changed in between.
TEST_P(Tables, ApplyATicketAsItsKeysWhateverCameBetween) {
  for (const char* const entry : kEntries) {
    SCOPED_TRACE(entry);
    const TableSpec both = tracked(2, "adam", entry);
    const auto a = make_table(both), b = make_table(both);
    Keys keys;
    for (Key key = 0; key < 2000; ++key) keys.push_back(key * key);
    const Floats grads(2 * keys.size(), 0.5F);
    Floats rows(grads.size());
    const auto empty = saved(*b);
    using Between = void (*)(ps::RowTable&, std::span<const std::byte> empty);
    const Between between[] = {
        [](ps::RowTable&, std::span<const std::byte>) {},
        [](ps::RowTable& table, std::span<const std::byte>) {  // rows are made again elsewhere
          table.shrink(1);
          for (uint64_t step = 1; step <= 3; ++step)
            apply(table, Keys{77, 4, 1, 0}, Floats(8, 1.0F), step);
        },
        [](ps::RowTable& table, std::span<const std::byte> none) { load(table, none); }};
    uint64_t step = 0;
    for (const Between act : between) {
      ps::Ticket ticket;
      read_rows(*a, keys, ps::Purpose::training, rows, ticket);
      EXPECT_EQ(read(*b, keys), rows);
      for (ps::RowTable* table : {a.get(), b.get()}) act(*table, empty);
      for (int i = 0; i < 2; ++i) {
        apply_located(*a, ticket, grads, ++step);
        apply(*b, keys, grads, step);
      }
      EXPECT_EQ(saved(*a), saved(*b));
    }
  }
}

TEST_P(Tables, GrowToManyKeysAndKeepAllValues) {
  constexpr size_t kRows = 20'000, kBatch = 1000;
  TableSpec one = spec(1, "sgd");
  one.init = "zeros";
  const auto table = make_table(one);
  Keys keys(kBatch);
  Floats rows(kBatch);
  const auto batch = [&](size_t first) {
    for (size_t i = 0; i < kBatch; ++i) {
      keys[i] = (first + i) * (first % 2000 == 0 ? 1 : 0x9e3779b97f4a7c15ULL);
      rows[i] = static_cast<float>(first + i);
    }
  };
  for (size_t first = 0; first < kRows; first += kBatch) {
    batch(first);
    table->assign(keys, rows);
  }
  EXPECT_EQ(table->size(), kRows);
  for (size_t first = 0; first < kRows; first += kBatch) {
    batch(first);
    ASSERT_EQ(peek(*table, keys), rows) << first;
  }
}

TEST_P(Tables, ClipDecayAndScheduleAsParametersDo) {
  TableSpec policies = spec(2, "sgd");
  policies.init = "constant(2)";
  policies.learning_rate = "piecewise(1, 1, 0.5)";
  policies.regularizer = "l2(0.25)";
  policies.clip = "value(1)";
  const auto table = make_table(policies);
  apply(*table, Keys{4}, Floats{5, 0.25F}, 1);
  EXPECT_EQ(peek(*table, Keys{4}), (Floats{0.5F, 1.25F}));
  apply(*table, Keys{4}, Floats{-0.125F, -0.3125F}, 2);
  EXPECT_EQ(peek(*table, Keys{4}), (Floats{0.5F, 1.25F}));
}

TEST_P(Tables, AdmitAKeyAtItsNthOccurrence) {
  const auto table = make_table(spec(2, "sgd", "count_filter(3)"));
  const auto open = make_table(spec(2, "sgd"));
  const Floats ones{1, 1};
  apply(*table, Keys{1}, ones, 1);  // counted, not added
  EXPECT_EQ(read(*table, Keys{1}), Floats(2, 0.0F));
  EXPECT_EQ(read(*table, KeyColumns{{1}, {2}}), read(*open, Keys{1}));  // two more would be three
  apply(*table, Keys{1}, ones, 1);
  EXPECT_EQ(table->size(), 0U);
  EXPECT_EQ(peek(*table, Keys{1}), Floats(2, 0.0F));
  EXPECT_EQ(read(*table, Keys{1}), read(*open, Keys{1}));
  apply(*table, Keys{1}, ones, 1);
  apply(*open, Keys{1}, ones, 1);
  EXPECT_EQ(table->size(), 1U);
  EXPECT_EQ(peek(*table, Keys{1}), peek(*open, Keys{1}));
  apply(*table, KeyColumns{{2, 3}, {3, 2}}, Floats{1, 1, 1, 1}, 1);
  apply(*open, Keys{2}, ones, 1);
  EXPECT_EQ(table->size(), 2U);
  EXPECT_EQ(peek(*table, Keys{2}), peek(*open, Keys{2}));
}

TEST_P(Tables, AdmitTheSameShareOfKeysEverywhere) {
  constexpr size_t kKeys = 5000;
  const TableSpec some = spec(1, "sgd", "probability(0.3)");
  const auto a = make_table(some), b = make_table(some);
  Keys keys(kKeys);
  for (size_t i = 0; i < kKeys; ++i) keys[i] = i;
  apply(*a, keys, Floats(kKeys, 0.0F), 1);
  EXPECT_NEAR(static_cast<double>(a->size()), 0.3 * kKeys, 150);
  std::ranges::reverse(keys);
  apply(*b, keys, Floats(kKeys, 0.0F), 1);
  EXPECT_EQ(saved(*a), saved(*b));
}

TEST_P(Tables, AddUpShowsAndClicks) {
  const auto table = make_table(spec(1, "sgd", "show_click(show, click)"));
  apply(*table, KeyColumns{{1, 2, 1}, {}, {1, 2, 3}, {1, 0, 1}}, Floats(3, 1.0F), 1);
  apply(*table, Keys{2}, Floats{1}, 2);
  const auto scores = [&](Key key) {
    const Floats image = content_of(*table).rows.at(key);
    const ps::RowRecipe::Scores both = table->recipe().scores(image.data());
    return std::pair(both.show, both.click);
  };
  EXPECT_EQ(scores(1), std::pair(4.0F, 2.0F));
  EXPECT_EQ(scores(2), std::pair(3.0F, 0.0F));
  const auto plain = make_table(spec(1, "sgd"));
  apply(*plain, Keys{1, 2, 1}, Floats(3, 1.0F), 1);
  apply(*plain, Keys{2}, Floats{1}, 2);
  EXPECT_EQ(peek(*plain, Keys{1, 2}), peek(*table, Keys{1, 2}));
}

TEST_P(Tables, EraseRowsThatWereNotUsedForAsManyShrinks) {
  const auto table = make_table(tracked(2, "sgd", "count_filter(2)"));
  apply(*table, KeyColumns{{1, 2, 3, 4}, {2, 2, 2, 1}}, Floats(8, 0.0F), 1);  // 4 is still counted
  EXPECT_EQ(table->size(), 3U);
  EXPECT_EQ(table->shrink(3), 0U);
  EXPECT_EQ(table->shrink(3), 0U);
  read(*table, Keys{3});  // is no use
  table->assign(Keys{1}, Floats(2));
  apply(*table, Keys{2}, Floats{1, 1}, 1);
  EXPECT_EQ(table->shrink(3), 1U);
  EXPECT_EQ(table->size(), 2U);
  EXPECT_EQ(peek(*table, Keys{3}), Floats(2, 0.0F));
  apply(*table, Keys{4}, Floats(2), 1);  // its first occurrence is forgotten
  EXPECT_EQ(table->size(), 2U);
  EXPECT_EQ(message_of<ConfigError>([&] { make_table(spec(2))->shrink(3); }),
            "table 'ids': shrink needs track_unseen, which is off");
}

TEST_P(Tables, ReplaceTheirContentAsAWholeOrNotAtAll) {
  const auto table = make_table(tracked(1, "sgd", "count_filter(2)"));
  apply(*table, KeyColumns{{1, 2}, {2, 1}}, Floats{1, 1}, 1);
  const auto before = saved(*table);
  const Floats row(table->recipe().floats(Section::rows)), counted(2);
  {
    const auto loading = table->images().begin_load();
    loading->add(Section::rows, Keys{7}, row);
  }
  EXPECT_EQ(saved(*table), before);
  const auto loading = table->images().begin_load();
  loading->add(Section::rows, Keys{7}, row);
  loading->add(Section::counted, Keys{8}, counted);
  for (const Key key : {7, 8}) {
    const std::string twice = "table 'ids': key " + std::to_string(key) + " comes twice";
    const auto add = [&](Section section, const Floats& image) {
      return message_of<DataError>([&] { loading->add(section, Keys{key}, image); });
    };
    EXPECT_EQ(add(Section::rows, row), twice);
    EXPECT_EQ(add(Section::counted, counted), twice);
  }
  EXPECT_EQ(saved(*table), before);
  loading->commit();
  EXPECT_EQ(content_of(*table).rows.size(), 1U);
  EXPECT_EQ(content_of(*table).counted.size(), 1U);
}

TEST_P(Tables, RefuseDamagedSavesAndChangeNothing) {
  const TableSpec full = tracked(3, "adam", "count_filter(2)");
  const auto table = make_table(full), small = make_table(full);
  apply(*table, KeyColumns{{5, 6, 7}, {1, 2, 3}}, Floats(9, 1.0F), 1);
  apply(*small, KeyColumns{{1, 2, 9}, {2, 2, 1}}, Floats(9, 1.0F), 1);
  const auto before = saved(*table);
  auto bytes = saved(*small);
  ASSERT_GT(bytes.size(), 100U);
  const std::string none = "nothing was thrown";
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::span<const std::byte> part(bytes.data(), length);
    EXPECT_NE(message_of<DataError>([&] { load(*table, part); }), none) << length;
  }
  for (std::byte& byte : bytes) {
    byte ^= std::byte{0x10};
    EXPECT_NE(message_of<DataError>([&] { load(*table, bytes); }), none);
    byte ^= std::byte{0x10};
  }
  EXPECT_EQ(saved(*table), before);
  load(*table, bytes);
  EXPECT_EQ(saved(*table), bytes);
  EXPECT_EQ(
      message_of<DataError>([&] { load(*make_table(spec(3)), bytes); }),
      "table 'ids': a save holds rows of 3 weights in 10 floats (unseen 1, scores 0, counts 2)"
      ", expected 3 in 9 (unseen 0, scores 0, counts 0)");
}

TEST_P(Tables, RefuseBadCallsWhole) {
  const auto table = make_table(spec(2, "sgd", "show_click(show, click)"));
  const Keys two{1, 2};
  Floats three(3);
  ps::Ticket ticket;
  table->locate(two, {}, {}, ticket);
  await(*table, ticket);
  EXPECT_EQ(message_of<DataError>([&] { table->read(ticket, ps::Purpose::training, three); }),
            "table 'ids': 2 keys with 3 floats, expected 4");
  EXPECT_EQ(message_of<DataError>([&] { table->apply(ticket, three, 1); }),
            "table 'ids': 2 keys with 3 floats, expected 4");
  EXPECT_EQ(message_of<DataError>([&] { table->apply(ticket, Floats(4), 0); }),
            "table 'ids': step 0, but the first step is 1");
  EXPECT_EQ(message_of<DataError>([&] { table->assign(two, three); }),
            "table 'ids': 2 keys with 3 floats, expected 4");
  EXPECT_EQ(message_of<DataError>([&] { table->locate(two, {.shows = three}, {}, ticket); }),
            "table 'ids': 2 keys with 3 values of column show");
  read(*table, Keys{});
  EXPECT_EQ(table->size(), 0U);
}

TEST_P(Tables, RefuseBadSpecs) {
  const auto refusal = [](const TableSpec& bad) {
    return message_of<ConfigError>([&] { make_table(bad); });
  };
  EXPECT_EQ(refusal(spec(0)), "table 'ids': dim is 0, expected at least 1");
  TableSpec bad = spec(2);
  bad.init = "assign(1, 2, 3)";
  EXPECT_EQ(refusal(bad), "'assign(1, 2, 3)': a row of table 'ids' has 2 elements");
  EXPECT_NE(refusal(spec(2, "lamb")).find("needs the norm"), std::string::npos);
  EXPECT_EQ(refusal(spec(2, "sgd", "count(3)")),
            "'count(3)': no such entry, expected count_filter, probability or show_click");
  bad = spec(2);
  bad.store += "(whatever=3)";
  EXPECT_NE(refusal(bad).find("whatever"), std::string::npos) << refusal(bad);
}

std::vector<std::string> kinds() {
  std::vector<std::string> names;
  for (const ps::TablePlugin& kind : ps::builtin_tables()) names.push_back(kind.name);
  names.emplace_back("log(memory=384K)");  // many of whose rows are on the disk
  return names;
}

std::string test_name(std::string store) {
  std::ranges::replace_if(
      store, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return store;
}

INSTANTIATE_TEST_SUITE_P(All, Tables, testing::ValuesIn(kinds()),
                         [](const auto& info) { return test_name(info.param); });

TEST(RowTable, AKindThatIsNotThereNamesTheNearest) {
  const std::string error =
      message_of<ConfigError>([] { ps::make_row_table({.name = "ids", .store = "memroy"}); });
  EXPECT_NE(error.find("store 'memroy' is not known; did you mean memory?"), std::string::npos)
      << error;
}

}  // namespace
}  // namespace argosy
