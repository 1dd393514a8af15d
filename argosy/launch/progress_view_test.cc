#include "argosy/launch/progress_view.h"

#include <gtest/gtest.h>

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;

TEST(ProgressView, AddsRatesAndWeighsMetricsBySamples) {
  ProgressView view(2, 0s);
  view.take(
      "worker=1 epoch=1 epochs=2 step=340 steps=1000 samples=300000 seconds=3 loss=0.4 auc=0.8");
  view.take(
      "worker=0 epoch=1 epochs=2 step=320 steps=1000 samples=100000 seconds=2 loss=0.8 auc=0.7");
  EXPECT_EQ(view.line(),
            "epoch 1/2  step 320..340/1000  loss 0.5000  auc 0.7750  150,000 samples/s");
}

TEST(ProgressView, TheLastReportOfAWorkerCounts) {
  ProgressView view(1, 0s);
  view.take("worker=0 epoch=1 epochs=2 step=1 steps=10 samples=100 seconds=1 loss=9");
  view.take("worker=0 epoch=2 epochs=2 step=4 steps=10 samples=400 seconds=2 loss=1.25");
  EXPECT_EQ(view.line(), "epoch 2/2  step 4/10  loss 1.2500  200 samples/s");
}

TEST(ProgressView, WorkersMayBeInDifferentEpochsAndReadDifferentFiles) {
  ProgressView view(2, 0s);
  view.take("worker=0 epoch=2 epochs=3 step=5 steps=90 samples=10 seconds=1");
  view.take("worker=1 epoch=1 epochs=3 step=88 steps=91 samples=10 seconds=1");
  EXPECT_EQ(view.line(), "epoch 1..2/3  step 88..5/90..91  20 samples/s");
}

TEST(ProgressView, SaysHowManyWorkersReport) {
  ProgressView view(3, 0s);
  view.take("worker=2 epoch=1 epochs=1 step=5 samples=0 seconds=0 loss=1");
  EXPECT_EQ(view.line(), "epoch 1/1  step 5  loss 1.0000  0 samples/s  1 of 3 workers");
}

TEST(ProgressView, MetricOfSomeWorkersIsTheMeanOfThose) {
  ProgressView view(2, 0s);
  view.take("worker=0 epoch=1 epochs=1 step=1 samples=10 seconds=1 loss=1");
  view.take("worker=1 epoch=1 epochs=1 step=1 samples=10 seconds=1 auc=0.5 loss=2");
  EXPECT_EQ(view.line(), "epoch 1/1  step 1  loss 1.5000  auc 0.5000  20 samples/s");
}

TEST(ProgressView, LinesThatAreNoReportsChangeNothing) {
  ProgressView view(1, 0s);
  for (const char* line : {"", "epoch=1", "worker=x", "worker=-1", "worker=0 step=-1",
                           "worker=0 loss=", "worker=0 =1", "worker=0 loss", "worker=0  step=1"})
    view.take(line);
  EXPECT_EQ(view.line(), "");
  EXPECT_EQ(view.last(), std::nullopt);
}

TEST(ProgressView, ShowsNewsOncePerPeriod) {
  const ProgressView::Time start{};
  const std::string report = "worker=0 epoch=1 epochs=1 samples=0 seconds=0 step=";
  ProgressView view(1, 5s);
  EXPECT_EQ(view.due(start), std::nullopt);
  view.take(report + "1");
  EXPECT_EQ(view.due(start), "epoch 1/1  step 1  0 samples/s");
  view.take(report + "2");
  EXPECT_EQ(view.due(start + 4s), std::nullopt);
  view.take(report + "3");
  EXPECT_EQ(view.due(start + 5s), "epoch 1/1  step 3  0 samples/s");
  EXPECT_EQ(view.due(start + 20s), std::nullopt);
  view.take(report + "4");
  EXPECT_EQ(view.last(), "epoch 1/1  step 4  0 samples/s");
  EXPECT_EQ(view.last(), std::nullopt);
}

TEST(Progress, ReportIsReadAsItWasWritten) {
  const auto report = parse_progress(
      "worker=1 epoch=1 epochs=2 step=340 steps=1000 samples=174080 seconds=4.2 loss=0.47 auc=nan");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->worker, 1);
  EXPECT_EQ(report->steps, 1000U);
  EXPECT_EQ(report->samples, 174080U);
  EXPECT_DOUBLE_EQ(report->seconds, 4.2);
  ASSERT_EQ(report->metrics.size(), 2U);
  EXPECT_EQ(report->metrics[0], (std::pair<std::string, double>("loss", 0.47)));
  EXPECT_NE(report->metrics[1].second, report->metrics[1].second);
}

}  // namespace
}  // namespace argosy::launch
