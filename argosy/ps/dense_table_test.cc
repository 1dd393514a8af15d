#include "argosy/ps/dense_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>

#include "argosy/base/error.h"

namespace argosy {
namespace {

using Floats = std::vector<float>;

TableSpec spec_of(size_t elements, size_t dim, std::string rule = "adam") {
  return {.name = "w",
          .dim = dim,
          .elements = elements,
          .rule = std::move(rule),
          .init = "uniform(-1, 1)",
          .learning_rate = "0.1",
          .regularizer = "",
          .clip = "",
          .seed = 7};
}

Floats gradients(size_t n, uint64_t step) {
  Floats grads(n);
  for (size_t i = 0; i < n; ++i)
    grads[i] = static_cast<float>((i * 37 + step * 101) % 211) / 64.0F - 1.5F;
  return grads;
}

Floats weights(DenseTable& table) { return {table.weights().begin(), table.weights().end()}; }
Floats state(DenseTable& table) { return {table.state().begin(), table.state().end()}; }

/// What a call that must fail says; also checks that it changed nothing.
template <class E, class Call>
std::string error_of(DenseTable& table, Call call) {
  const Floats w = weights(table), s = state(table);
  std::string message = "accepted";
  try {
    call();
  } catch (const E& e) {
    message = e.what();
  }
  EXPECT_EQ(weights(table), w);
  EXPECT_EQ(state(table), s);
  return message;
}

std::string config_error(TableSpec spec) {
  try {
    const DenseTable table(std::move(spec));
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(DenseTable, FirstValuesDependOnSeedAndNameNotOnBlocks) {
  DenseTable whole(spec_of(10, 10)), blocks(spec_of(10, 3));
  EXPECT_EQ(weights(whole), weights(blocks));
  TableSpec other = spec_of(10, 10);
  other.name = "v";
  DenseTable named(other);
  EXPECT_NE(weights(whole), weights(named));
}

TEST(DenseTable, WeightsAreAligned) {
  DenseTable table(spec_of(1001, 64));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(table.weights().data()) % 64, 0U);
}

TEST(DenseTable, PullGivesWholeRowsAndZerosPastTheEnd) {
  TableSpec spec = spec_of(5, 2);
  spec.init = "assign(1, 2, 3, 4, 5)";
  DenseTable table(spec);
  EXPECT_EQ(table.size(), 3U);
  Floats rows(6, -1.0F);
  table.pull(std::vector<Key>{2, 0, 1}, rows);
  EXPECT_EQ(rows, (Floats{5, 0, 1, 2, 3, 4}));
}

TEST(DenseTable, AssignTakesWholeRowsAndIgnoresTheirTail) {
  DenseTable table(spec_of(5, 2));
  table.assign(std::vector<Key>{2, 0, 1}, Floats{5, 99, 1, 2, 3, 4});
  EXPECT_EQ(weights(table), (Floats{1, 2, 3, 4, 5}));
}

TEST(DenseTable, OneBlockMayBeShorterThanDim) {
  DenseTable table(spec_of(3, 4096, "lamb"));
  Floats row(4096, 1.0F);
  table.push(std::vector<Key>{0}, row, 1);
  table.pull(std::vector<Key>{0}, row);
  EXPECT_EQ(Floats(row.begin(), row.begin() + 3), weights(table));
  EXPECT_EQ(std::accumulate(row.begin() + 3, row.end(), 0.0F), 0.0F);
}

TEST(DenseTable, PushByKeysEqualsPushAllForAnyBlocks) {
  DenseTable whole(spec_of(11, 11)), blocks(spec_of(11, 4)), keyed(spec_of(11, 4));
  const std::vector<Key> keys{1, 2, 0};
  for (uint64_t step = 1; step <= 4; ++step) {
    const Floats grads = gradients(11, step);
    whole.push_all(grads, step);
    blocks.push_all(grads, step);
    Floats rows(12, 1e30F);  // the tail of the short block must not matter
    std::copy(grads.begin() + 4, grads.begin() + 8, rows.begin());
    std::copy(grads.begin() + 8, grads.end(), rows.begin() + 4);
    std::copy(grads.begin(), grads.begin() + 4, rows.begin() + 8);
    keyed.push(keys, rows, step);
  }
  EXPECT_EQ(weights(whole), weights(blocks));
  EXPECT_EQ(weights(whole), weights(keyed));
  EXPECT_EQ(state(blocks), state(keyed));
}

TEST(DenseTable, TheScheduleGivesTheRateOfAStep) {
  TableSpec spec = spec_of(1, 1, "sgd");
  spec.init = "zeros";
  spec.learning_rate = "piecewise(0.5, 1, 0.25)";
  DenseTable table(spec);
  table.push_all(Floats{1}, 1);
  EXPECT_EQ(weights(table), (Floats{-0.5F}));
  table.push_all(Floats{1}, 2);
  EXPECT_EQ(weights(table), (Floats{-0.75F}));
}

TEST(DenseTable, ClipAndDecayHappenBeforeTheRule) {
  TableSpec spec = spec_of(3, 2, "sgd");
  spec.init = "constant(2)";
  spec.learning_rate = "1";
  spec.regularizer = "l2(0.25)";
  spec.clip = "value(1)";
  DenseTable table(spec);
  const Floats grads{5, -5, 0.25F};
  table.push_all(grads, 1);
  EXPECT_EQ(weights(table), (Floats{0.5F, 2.5F, 1.25F}));
  EXPECT_EQ(grads, (Floats{5, -5, 0.25F}));
}

TEST(DenseTable, RulesSetUpTheirState) {
  DenseTable table(spec_of(5, 2, "adagrad(initial_accumulator=0.5)"));
  EXPECT_EQ(state(table), Floats(5, 0.5F));
}

TEST(DenseTable, BadPushesAreRefusedWhole) {
  DenseTable table(spec_of(5, 2));
  const std::vector<Key> bad{0, 3}, good{0, 1};
  const Floats rows(4, 1.0F), short_rows(3, 1.0F);
  EXPECT_EQ(error_of<DataError>(table, [&] { table.push(bad, rows, 1); }),
            "table 'w': no block 3, there are 3");
  EXPECT_EQ(error_of<DataError>(table, [&] { table.push(good, short_rows, 1); }),
            "table 'w': 2 keys with 3 floats, expected 4");
  EXPECT_EQ(error_of<DataError>(table, [&] { table.push(good, rows, 0); }),
            "table 'w': step 0, but the first step is 1");
  EXPECT_EQ(error_of<DataError>(table, [&] { table.push_all(rows, 1); }),
            "table 'w': got 4 gradients, expected 5");
  EXPECT_EQ(error_of<DataError>(table, [&] { table.assign(bad, rows); }),
            "table 'w': no block 3, there are 3");
  Floats out(4);
  EXPECT_EQ(error_of<DataError>(table, [&] { table.pull(bad, out); }),
            "table 'w': no block 3, there are 3");
}

TEST(DenseTable, SavedAndLoadedTrainsOnWithTheSameBits) {
  DenseTable saved(spec_of(11, 4)), loaded(spec_of(11, 4));
  for (uint64_t step = 1; step <= 3; ++step) saved.push_all(gradients(11, step), step);
  ByteBuffer buffer;
  saved.save(buffer);
  ByteSource source(buffer.bytes(), "w.bin");
  loaded.load(source);
  EXPECT_EQ(source.left(), 0U);
  EXPECT_EQ(weights(saved), weights(loaded));
  EXPECT_EQ(state(saved), state(loaded));
  saved.push_all(gradients(11, 4), 4);
  loaded.push_all(gradients(11, 4), 4);
  EXPECT_EQ(weights(saved), weights(loaded));
}

TEST(DenseTable, ATruncatedSourceIsRefusedWhole) {
  DenseTable saved(spec_of(5, 2)), loaded(spec_of(5, 2));
  saved.push_all(gradients(5, 1), 1);
  ByteBuffer buffer;
  saved.save(buffer);
  for (size_t size = 0; size < buffer.bytes().size(); ++size) {
    ByteSource source(buffer.bytes().first(size), "w.bin");
    const std::string message = error_of<DataError>(loaded, [&] { loaded.load(source); });
    EXPECT_EQ(message.find("table 'w': w.bin ends early"), 0U) << message;
  }
}

TEST(DenseTable, AnotherTablesSourceIsRefused) {
  DenseTable table(spec_of(5, 2));
  for (const TableSpec& other : {spec_of(6, 2), spec_of(5, 3), spec_of(5, 2, "sgd")}) {
    ByteBuffer buffer;
    DenseTable(other).save(buffer);
    ByteSource source(buffer.bytes(), "w.bin");
    const std::string message = error_of<DataError>(table, [&] { table.load(source); });
    EXPECT_NE(message.find("expected 5 in blocks of 2 with a state of 10"), std::string::npos)
        << message;
  }
}

TEST(DenseTable, ImpossibleSpecsAreRefused) {
  EXPECT_EQ(config_error(spec_of(5, 0)), "table 'w': dim is 0, expected at least 1");
  EXPECT_EQ(config_error(spec_of(0, 4)),
            "table 'w': elements is 0, expected at least 1 for a dense parameter");
  EXPECT_EQ(config_error(spec_of(5, 4, "lars")),
            "rule 'lars' needs parameter 'w' in one block: dim is 4, expected at least 5");
  TableSpec spec = spec_of(5, 5);
  spec.init = "assign(1, 2)";
  EXPECT_EQ(config_error(spec), "'assign(1, 2)': parameter 'w' has 5 elements");
}

}  // namespace
}  // namespace argosy
