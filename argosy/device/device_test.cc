#include <gtest/gtest.h>

#include <cstdlib>

#include "argosy/base/error.h"
#include "argosy/device/devices.h"
#include "argosy/device/gemm.h"
#include "argosy/device/sort.h"
#include "argosy/device/sums.h"

namespace argosy::device {
namespace {

class OnDevice : public testing::Test {
 protected:
  template <class T>
  T* upload(Buffer& buffer, const std::vector<T>& values) {
    T* there = buffer.room_for<T>(values.size());
    stream_.upload(there, values.data(), values.size() * sizeof(T));
    stream_.wait();
    return there;
  }
  template <class T>
  std::vector<T> back(const T* from, size_t n) {
    std::vector<T> values(n);
    stream_.download(values.data(), from, n * sizeof(T));
    stream_.wait();
    return values;
  }

  static int first_device() {
    if (devices("").count == 0) ::setenv(kEmulated, "1", 1);
    return 0;
  }
  Stream stream_{first_device()};
  Buffer a_, b_, c_, d_;
};

struct Twice {
  int64_t* x;
  ARGOSY_DEVICE void operator()(size_t i) const { x[i] = 2 * static_cast<int64_t>(i); }
};

TEST_F(OnDevice, RunsALoopOverIndices) {
  int64_t* x = a_.room_for<int64_t>(1000);
  for_each_index(stream_, 1000, Twice{x});
  const std::vector<int64_t> seen = back(x, 1000);
  for (size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], 2 * static_cast<int64_t>(i));
  for_each_index(stream_, 0, Twice{nullptr});
}

TEST_F(OnDevice, SortsWithEqualKeysInTheirOrder) {
  int64_t* keys = upload<int64_t>(a_, {3, 1, 2, 1, 3, 1});
  int64_t* values = upload<int64_t>(b_, {0, 1, 2, 3, 4, 5});
  sort_by_key(stream_, keys, values, 6);
  EXPECT_EQ(back(keys, 6), (std::vector<int64_t>{1, 1, 1, 2, 3, 3}));
  EXPECT_EQ(back(values, 6), (std::vector<int64_t>{1, 3, 5, 2, 0, 4}));
}

TEST_F(OnDevice, SumsByKey) {
  const int64_t* keys = upload<int64_t>(a_, {1, 1, 4, 7, 7, 7});
  const float* values = upload<float>(b_, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(sum(stream_, values, 6), 21);
  int64_t* unique = c_.room_for<int64_t>(6);
  float* sums = d_.room_for<float>(6);
  ASSERT_EQ(sum_by_key(stream_, keys, values, 6, unique, sums), 3U);
  EXPECT_EQ(back(unique, 3), (std::vector<int64_t>{1, 4, 7}));
  EXPECT_EQ(back(sums, 3), (std::vector<float>{3, 3, 15}));
}

struct Term {
  size_t terms;
  ARGOSY_DEVICE double operator()(size_t out, size_t i) const {
    return static_cast<double>(out * terms + i);
  }
};
struct Store {
  double* y;
  ARGOSY_DEVICE void operator()(size_t out, double total) const { y[out] = total; }
};

TEST_F(OnDevice, SumsAreWholeHoweverTheyAreCut) {
  for (const size_t outs : {1, 3, 100})
    for (const size_t terms : {0, 1, 31, 64, 65, 1000}) {
      double* y = a_.room_for<double>(outs);
      sums<double>(stream_, outs, terms, Term{terms}, Store{y});
      const std::vector<double> seen = back(y, outs);
      for (size_t out = 0; out < outs; ++out) {
        const auto n = static_cast<double>(terms), first = static_cast<double>(out * terms);
        EXPECT_EQ(seen[out], n * first + n * (n - 1) / 2) << outs << " of " << terms;
      }
    }
}

TEST_F(OnDevice, MultipliesEveryWayRound) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {1, 0, 2, 1, 0, 3};  // [2,3], [3,2]
  const std::vector<float> at = {1, 4, 2, 5, 3, 6}, bt = {1, 2, 0, 0, 1, 3};
  for (const bool trans_a : {false, true})
    for (const bool trans_b : {false, true}) {
      const float* pa = upload(a_, trans_a ? at : a);
      const float* pb = upload(b_, trans_b ? bt : b);
      float* c = c_.room_for<float>(4);
      gemm(stream_, {.m = 2, .n = 2, .k = 3, .trans_a = trans_a, .trans_b = trans_b}, pa, pb, c);
      EXPECT_EQ(back(c, 4), (std::vector<float>{5, 11, 14, 23})) << trans_a << trans_b;
    }
}

struct Complain {
  Fault* fault;
  ARGOSY_DEVICE void operator()(size_t i) const {
    if (i == 7) note(fault, FaultOp::embedding, -3, 7, 5);
  }
};

TEST_F(OnDevice, TellsWhatAKernelFoundWrongOnce) {
  for_each_index(stream_, 10, Complain{stream_.fault()});
  try {
    stream_.wait();
    FAIL() << "nothing was thrown";
  } catch (const DataError& e) {
    EXPECT_STREQ(e.what(), "embedding: index -3 at position 7, expected 0 to 4");
  }
  stream_.wait();
}

TEST_F(OnDevice, LendsTheSameMemoryAgain) {
  void* first = stream_.borrow(1000);
  void* second = stream_.borrow(1000);
  EXPECT_NE(first, second);
  stream_.give_back(first);
  EXPECT_EQ(stream_.borrow(900), first);
}

std::string refusal(const Devices& devices, int number) {
  try {
    devices.expect(number);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

TEST(Devices, AreEmulatedOnlyWhereTheEnvironmentSaysSo) {
  if (std::string(backend()) != "cpu") GTEST_SKIP() << "a CUDA build emulates nothing";
  EXPECT_EQ(devices("").count, 0);
  EXPECT_EQ(devices("3").count, 3);
  EXPECT_EQ(devices("3").label(2), "gpu:2 (emulated: the device kernels run on the CPU)");
  EXPECT_EQ(refusal(devices("3"), 2), "");
  EXPECT_EQ(refusal(devices("3"), 3),
            "there is no device gpu:3, expected gpu:0 to gpu:2, as ARGOSY_EMULATED_DEVICES says");
  EXPECT_EQ(refusal(devices(""), 0),
            "there is no device gpu:0: this build has no CUDA kernels (make cuda); "
            "ARGOSY_EMULATED_DEVICES=N makes N devices that run the device kernels on the CPU");
  EXPECT_THROW(devices("two"), ConfigError);
  EXPECT_THROW(devices("-1"), ConfigError);
}

TEST(Devices, AreSelectedByTheLauncher) {
  ::setenv("FLAGS_selected_gpus", "3,4", 1);
  EXPECT_EQ(selected_device(), 3);
  ::setenv("FLAGS_selected_gpus", "", 1);
  EXPECT_EQ(selected_device(), std::nullopt);
  ::setenv("FLAGS_selected_gpus", "x", 1);
  EXPECT_THROW(selected_device(), ConfigError);
  ::unsetenv("FLAGS_selected_gpus");
}

}  // namespace
}  // namespace argosy::device
