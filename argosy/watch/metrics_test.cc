#include "argosy/watch/metrics.h"

#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/base/thread.h"

namespace argosy {
namespace {

TEST(Metrics, AreWrittenAsPrometheusReadsThem) {
  Metrics metrics;
  metrics
      .counter({"argosy_rows_pulled_total", "Rows that were read for a pull", {{"table", "wide"}}})
      .add(7);
  metrics
      .counter({"argosy_rows_pulled_total",
                "Rows that were read for a pull",
                {{"table", "C:\\\"deep\"\nrows"}}})
      .add(123'456'789'012);
  metrics
      .counter({.name = "argosy_reading_seconds_total",
                .help = "Time waited for data,\nby one \\ more threads",
                .unit = MetricUnit::seconds})
      .add(std::chrono::milliseconds(1500));
  metrics.gauge({"argosy_workers", "Workers that have a link"}).set(-0.25);
  Histogram& steps = metrics.histogram({"argosy_step_seconds", "Time of a step"}, {0.001, 0.1, 10});
  for (const double seconds : {0.0005, 0.001, 0.05, 99.0}) steps.observe(seconds);
  expect_golden("metrics.txt", prometheus_text(metrics.samples()));
}

TEST(Metrics, OfOneNameAndLabelsAreOne) {
  Metrics metrics;
  Counter& steps = metrics.counter({"steps_total", "Steps"});
  steps.add(2);
  EXPECT_EQ(&metrics.counter({"steps_total", "Steps"}), &steps);
  EXPECT_NE(&metrics.counter({"steps_total", "Steps", {{"thread", "1"}}}), &steps);
  EXPECT_EQ(metrics.counter({"steps_total", "Steps"}).value(), 2U);
}

TEST(Metrics, RefuseNamesThatNobodyCouldRead) {
  Metrics metrics;
  metrics.gauge({"queue", "Exchanges under way"});
  const auto refusal = [&](auto ask) { return message_of<ConfigError>(ask); };
  EXPECT_EQ(refusal([&] {
              metrics.gauge({"a b", ""});
            }),
            "metric 'a b': expected a name of letters, digits and _");
  EXPECT_NE(refusal([&] { metrics.gauge({"0a", ""}); }), "nothing was thrown");
  EXPECT_NE(refusal([&] { metrics.gauge({"", ""}); }), "nothing was thrown");
  EXPECT_EQ(refusal([&] {
              metrics.counter({"steps", ""});
            }),
            "metric 'steps' is a counter: a name ends in _total if and only if it is a counter's");
  EXPECT_NE(refusal([&] { metrics.gauge({"steps_total", ""}); }), "nothing was thrown");
  EXPECT_NE(refusal([&] {
              metrics.counter({.name = "a_total", .help = "", .unit = MetricUnit::seconds});
            }),
            "nothing was thrown");
  EXPECT_NE(refusal([&] { metrics.gauge({"a", "", {{"le", "1"}}}); }), "nothing was thrown");
  EXPECT_EQ(refusal([&] {
              metrics.histogram({"queue", ""}, {1});
            }),
            "metric 'queue' is a gauge, now asked for as a histogram or in another unit");
  EXPECT_NE(refusal([&] { metrics.histogram({"h", ""}, {}); }), "nothing was thrown");
  EXPECT_NE(refusal([&] { metrics.histogram({"h", ""}, {1, 1}); }), "nothing was thrown");
  metrics.histogram({"h", ""}, {1, 2});
  EXPECT_NE(refusal([&] {
              metrics.histogram({"h", "", {{"a", "b"}}}, {1, 3});
            }),
            "nothing was thrown");
}

TEST(Metrics, LoseNothingOfSeveralThreads) {
  constexpr uint64_t kThreads = 4, kUpdates = 20'000;
  Metrics metrics;
  {
    std::vector<Thread> threads;
    for (uint64_t i = 0; i < kThreads; ++i)
      threads.emplace_back("counts", [&] {
        Counter& counter = metrics.counter({"updates_total", ""});
        Histogram& histogram = metrics.histogram({"values", ""}, {1, 2});
        for (uint64_t n = 0; n < kUpdates; ++n) {
          counter.add();
          histogram.observe(static_cast<double>(n % 3) + 0.5);
        }
      });
  }
  const auto samples = metrics.samples();
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].value, kThreads * kUpdates);
  EXPECT_EQ(samples[1].counts[0] + samples[1].counts[1] + samples[1].counts[2],
            kThreads * kUpdates);
  EXPECT_EQ(samples[1].counts[2], kThreads * (kUpdates / 3));
}

}  // namespace
}  // namespace argosy
