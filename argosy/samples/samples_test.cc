#include "argosy/samples/samples.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "argosy/data/dataset.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

class SamplesTest : public testing::Test {
 public:
  SamplesTest()
      : dir_((std::filesystem::temp_directory_path() /
              ("argosy_data_" + std::to_string(env_->random())))
                 .string()) {
    env_->make_directories(dir_);
  }
  ~SamplesTest() override { std::filesystem::remove_all(dir_); }

 protected:
  std::string write(const std::string& name, const std::string& content) {
    std::string path = dir_ + "/" + name;
    write_file_atomically(*env_, path, std::as_bytes(std::span(content)));
    return path;
  }
  std::string idx_failure(const std::string& content) {
    const std::string path = write("bad", content);
    try {
      read_idx(*env_, path);
    } catch (const DataError& e) {
      return std::string(e.what()).substr(path.size());
    }
    return "nothing was thrown";
  }

  std::unique_ptr<Env> env_ = real_env();
  std::string dir_;
};

TEST_F(SamplesTest, ReadsIdx) {
  const Tensor tensor = read_idx(*env_, write("ok", std::string("\0\0\x08\x02\0\0\0\x02\0\0\0\x03"
                                                                "abcdef",
                                                                18)));
  EXPECT_EQ(tensor.shape(), (Shape{2, 3}));
  EXPECT_EQ(tensor.as<uint8_t>()[5], 'f');
}

TEST_F(SamplesTest, RefusesDamagedIdx) {
  EXPECT_EQ(idx_failure(""), ": not an IDX file of unsigned bytes");
  EXPECT_EQ(idx_failure("hello, world"), ": not an IDX file of unsigned bytes");
  EXPECT_EQ(idx_failure(std::string("\0\0\x08\x01\0\0\0\x05"
                                    "abc",
                                    11)),
            ": [5] needs 5 bytes, the file has 3");
  EXPECT_EQ(idx_failure(std::string("\0\0\x08\x02\0\0", 6)),
            ": an IDX header of 2 dimensions is cut off or too long");
  EXPECT_EQ(idx_failure(std::string("\0\0\x08\x02\xff\xff\xff\xff\xff\xff\xff\xff"
                                    "abc",
                                    15)),
            ": the header promises more than the file has");
  EXPECT_EQ(idx_failure(std::string("\x1f\x8b\x08\0\0\0\0\0", 8)).substr(0, 27),
            ": damaged or truncated gzip");
}

TEST_F(SamplesTest, HousingRefusesABadLineWithItsNumber) {
  write("housing.data", "1 2 3 4 5 6 7 8 9 10 11 12 13 14\n1 2 3\n");
  try {
    housing_samples(*env_, dir_);
    FAIL();
  } catch (const DataError& e) {
    EXPECT_EQ(std::string(e.what()), dir_ + "/housing.data:2: 3 numbers, expected 14");
  }
}

TEST_F(SamplesTest, HousingScalesFeaturesAndSplits) {
  const Samples samples = housing_samples(*env_, "");
  EXPECT_EQ(samples.train.at("x").shape(), (Shape{404, 13}));
  EXPECT_EQ(samples.test.at("y").shape(), (Shape{102, 1}));
  for (float value : samples.train.at("x").as<float>()) ASSERT_LE(std::abs(value), 1.0F);
}

TEST_F(SamplesTest, RealMnistHasItsCounts) {
  const std::string folder = data_folder("mnist");
  if (folder.empty()) GTEST_SKIP() << "set ARGOSY_DATA to a folder with mnist/";
  const Samples samples = mnist_samples(*env_, folder);
  EXPECT_EQ(samples.train.at("x").shape(), (Shape{60000, 784}));
  EXPECT_EQ(samples.test.at("label").shape(), (Shape{10000, 1}));
}

TEST(ArrayDataset, DeliversEachInstanceOnceInAnOrderOfTheSeed) {
  Tensor ids({103}, DType::i64);
  for (int64_t i = 0; i < 103; ++i) ids.as<int64_t>()[static_cast<size_t>(i)] = i;
  const auto data = array_dataset({{"id", ids}}, {.batch_size = 10});
  EXPECT_EQ(data->batches(), 11U);
  const auto epoch = [&](uint64_t seed) {
    std::vector<int64_t> order;
    Batch batch;
    data->begin_epoch(seed);
    while (data->next(batch))
      for (int64_t id : batch.feeds.at("id").as<int64_t>()) order.push_back(id);
    return order;
  };
  const auto first = epoch(1);
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 103U);
  EXPECT_EQ(first.size(), 103U);
  EXPECT_EQ(first, epoch(1));
  EXPECT_NE(first, epoch(2));
}

TEST(ArrayDataset, DropsALastBatchThatIsNotFull) {
  const auto data = array_dataset({{"x", Tensor({25, 2})}}, {.batch_size = 10, .drop_last = true});
  Batch batch;
  data->begin_epoch(0);
  int batches = 0;
  while (data->next(batch)) {
    EXPECT_EQ(batch.size, 10U);
    ++batches;
  }
  EXPECT_EQ(batches, 2);
  EXPECT_EQ(data->batches(), 2U);
}

TEST(ArrayDataset, SharesShuffleAlikeAndMakeOneEpochTogether) {
  Tensor ids({103}, DType::i64);
  for (int64_t i = 0; i < 103; ++i) ids.as<int64_t>()[static_cast<size_t>(i)] = i;
  const auto epoch = [&](size_t index, uint64_t seed) {
    const auto data = array_dataset({{"id", ids}}, {.batch_size = 10, .share = {index, 3}});
    std::vector<int64_t> order;
    Batch batch;
    data->begin_epoch(seed);
    while (data->next(batch))
      for (int64_t id : batch.feeds.at("id").as<int64_t>()) order.push_back(id);
    return order;
  };
  std::set<int64_t> all;
  size_t count = 0;
  for (size_t index = 0; index < 3; ++index) {
    const auto part = epoch(index, 5);
    EXPECT_EQ(part.size(), index == 0 ? 35U : 34U);
    EXPECT_EQ(part, epoch(index, 5));
    EXPECT_NE(part, epoch(index, 6));
    all.insert(part.begin(), part.end());
    count += part.size();
  }
  EXPECT_EQ(count, 103U);
  EXPECT_EQ(all.size(), 103U);
}

TEST(ArrayDataset, RefusesArraysOfDifferentLength) {
  EXPECT_THROW(array_dataset({{"a", Tensor({3, 2})}, {"b", Tensor({4})}}, {}), ConfigError);
}

}  // namespace
}  // namespace argosy
