#include "argosy/data/file_dataset.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"

namespace argosy {
namespace {

const BatchLayout kLayout{.columns = {{"label", {-1, 1}, DType::i64}},
                          .indices = {{.index = "id.index", .slots = {"id"}}},
                          .key_sets = 1};
const std::vector<SlotSpec> kSlots = {{"id", SlotKind::ids, 1}, {"label", SlotKind::ids, 1}};

/// Files of lines "1 <id> 1 <label>", all ids different.
class FileDatasetTest : public testing::Test {
 protected:
  std::vector<std::string> write(size_t files, size_t lines) {
    std::vector<std::string> paths;
    for (size_t f = 0; f < files; ++f) {
      std::string text;
      for (size_t i = 0; i < lines + f; ++i) {
        text += "1 " + std::to_string(next_) + " 1 1\n";
        expected_.insert(next_++);
      }
      paths.push_back(folder_.write("part-" + std::to_string(f), text));
    }
    return paths;
  }
  static FileOptions options(std::vector<std::string> files) {
    FileOptions options;
    options.files = std::move(files);
    options.slots = kSlots;
    options.batch_size = 7;
    return options;
  }

  TestFolder folder_;
  uint64_t next_ = 100;
  std::multiset<Key> expected_;
};

/// The ids of a batch in the order of its instances.
std::vector<Key> ids_of(const Batch& batch) {
  std::vector<Key> ids;
  for (const int32_t row : batch.feeds.at("id.index").as<int32_t>())
    ids.push_back(batch.keys[0][static_cast<size_t>(row)]);
  return ids;
}

std::vector<Key> read_on(Dataset& data, size_t batches = SIZE_MAX) {
  std::vector<Key> all;
  Batch batch;
  for (size_t i = 0; i < batches && data.next(batch); ++i)
    for (const Key id : ids_of(batch)) all.push_back(id);
  return all;
}

std::string failure(Dataset& data) {
  try {
    data.begin_epoch(1);
    read_on(data);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST_F(FileDatasetTest, EachInstanceComesOnceWhateverTheThreads) {
  const auto files = write(5, 40);
  for (const size_t threads : {1, 2, 3, 8}) {
    FileOptions o = options(files);
    o.threads = threads;
    o.audit = true;
    QueueDataset queue(kLayout, o);
    InMemoryDataset memory(kLayout, o, true);
    for (uint64_t epoch = 1; epoch <= 2; ++epoch) {
      for (Dataset* data : {static_cast<Dataset*>(&queue), static_cast<Dataset*>(&memory)}) {
        data->begin_epoch(epoch);
        const std::vector<Key> seen = read_on(*data);
        EXPECT_EQ(std::multiset<Key>(seen.begin(), seen.end()), expected_);
        EXPECT_EQ(data->notes(), std::vector<std::string>{"audit: 210 instances of 5 files, each "
                                                          "delivered once"});
      }
    }
  }
}

TEST_F(FileDatasetTest, OneThreadKeepsTheOrderOfTheFiles) {
  QueueDataset data(kLayout, options(write(3, 20)));
  data.begin_epoch(1);
  const std::vector<Key> seen = read_on(data);
  EXPECT_TRUE(std::ranges::is_sorted(seen));
}

TEST_F(FileDatasetTest, AnEpochGoesOnWhereItWasLeftWithAnyNumberOfThreads) {
  const auto files = write(4, 50);
  for (const size_t threads : {1, 3}) {
    for (const size_t later_threads : {1, 2}) {
      for (const size_t done : {0, 1, 9, 1000}) {
        FileOptions o = options(files);
        o.threads = threads;
        QueueDataset first(kLayout, o);
        first.begin_epoch(1);
        std::vector<Key> seen = read_on(first, done);
        o.threads = later_threads;
        QueueDataset second(kLayout, o);
        second.begin_epoch(1, first.position());
        for (const Key id : read_on(second)) seen.push_back(id);
        EXPECT_EQ(std::multiset<Key>(seen.begin(), seen.end()), expected_)
            << threads << " then " << later_threads << " threads, after " << done;
      }
    }
  }
}

TEST_F(FileDatasetTest, AShuffledEpochGoesOnInTheSameOrder) {
  const auto files = write(3, 30);
  FileOptions o = options(files);
  o.threads = 2;
  InMemoryDataset whole(kLayout, o, true), first(kLayout, o, true), second(kLayout, o, true);
  whole.begin_epoch(5);
  const std::vector<Key> expected = read_on(whole);
  EXPECT_FALSE(std::ranges::is_sorted(expected));
  first.begin_epoch(5);
  std::vector<Key> seen = read_on(first, 4);
  second.begin_epoch(5, first.position());
  for (const Key id : read_on(second)) seen.push_back(id);
  EXPECT_EQ(seen, expected);
  whole.begin_epoch(6);
  EXPECT_NE(read_on(whole), expected);
  EXPECT_EQ(*whole.batches(), (expected.size() + 6) / 7);
}

TEST_F(FileDatasetTest, DropLastLeavesOutWhatDoesNotFillABatch) {
  FileOptions o = options(write(1, 20));
  o.drop_last = true;
  o.audit = true;
  QueueDataset queue(kLayout, o);
  InMemoryDataset memory(kLayout, o);
  for (Dataset* data : {static_cast<Dataset*>(&queue), static_cast<Dataset*>(&memory)}) {
    data->begin_epoch(1);
    EXPECT_EQ(read_on(*data).size(), 14U);
  }
}

TEST_F(FileDatasetTest, ReadsThroughAPipeAndGoesOnByItsOutput) {
  const auto files = write(3, 25);
  FileOptions o = options(files);
  o.pipe.command = "cat -";
  QueueDataset first(kLayout, o);
  first.begin_epoch(1);
  std::vector<Key> seen = read_on(first, 5);
  QueueDataset second(kLayout, o);
  second.begin_epoch(1, first.position());
  for (const Key id : read_on(second)) seen.push_back(id);
  EXPECT_EQ(std::multiset<Key>(seen.begin(), seen.end()), expected_);
}

TEST_F(FileDatasetTest, ACommandThatFailsOrWritesNothingIsAnError) {
  FileOptions o = options(write(2, 25));
  o.pipe.command = "head -3; echo no such model >&2; exit 7";
  EXPECT_NE(failure(*std::make_unique<QueueDataset>(kLayout, o))
                .find("exit status 7, stderr: no such model"),
            std::string::npos);
  EXPECT_NE(failure(*std::make_unique<InMemoryDataset>(kLayout, o)).find("exit status 7"),
            std::string::npos);
  o.pipe.command = "true";
  for (const std::string& message : {failure(*std::make_unique<QueueDataset>(kLayout, o)),
                                     failure(*std::make_unique<InMemoryDataset>(kLayout, o))}) {
    EXPECT_TRUE(message.starts_with("no instance in 2 files, the first is ")) << message;
    EXPECT_TRUE(message.ends_with("part-0 through 'true'")) << message;
  }
}

TEST_F(FileDatasetTest, BadLinesAreCountedAndTooManyAreFatal) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "1 5 1 1\n";
  const std::string path = folder_.write("bad", text + "1 x 1 1\n");
  FileOptions o = options({path});
  QueueDataset data(kLayout, o);
  data.begin_epoch(1);
  EXPECT_EQ(read_on(data).size(), 200U);
  ASSERT_EQ(data.notes().size(), 1U);
  EXPECT_EQ(data.notes()[0], "1 of 201 lines are bad and were skipped, the first is " + path +
                                 ":201: slot 'id' at byte 3: expected an id of 64 bits, found 'x'");
  o.max_bad_ratio = 0.001;
  EXPECT_NE(failure(*std::make_unique<QueueDataset>(kLayout, o)).find("max_bad_ratio allows 0.001"),
            std::string::npos);
}

TEST_F(FileDatasetTest, IdsBeyondTheTableMakeABadLine) {
  FileOptions o = options({folder_.write("ids", "1 9 1 1\n1 10 1 1\n")});
  o.slots[0].limit = 10;
  EXPECT_NE(failure(*std::make_unique<QueueDataset>(kLayout, o))
                .find("ids:2: slot 'id': id 10 is beyond its table of 10 rows"),
            std::string::npos);
}

/// For log loss: other labels would silently be trained on.
TEST_F(FileDatasetTest, LabelsOtherThanZeroAndOneMakeABadLine) {
  BatchLayout layout = kLayout;
  for (const char* label : {"2", "-1", "0.5", "1e9"}) {
    FileOptions o =
        options({folder_.write("labels", "1 9 1 1\n1 9 1 " + std::string(label) + "\n")});
    o.slots[1].kind = SlotKind::floats;
    layout.columns = {{.input = o.slots[1].name, .shape = {-1, 1}, .binary = true}};
    std::ostringstream expected;
    expected << "labels:2: label '" << o.slots[1].name << "' is " << std::stof(label)
             << ", expected 0 or 1 for log loss";
    const std::string queued = failure(*std::make_unique<QueueDataset>(layout, o));
    EXPECT_NE(queued.find(expected.str()), std::string::npos) << queued;
    const std::string loaded = failure(*std::make_unique<InMemoryDataset>(layout, o));
    EXPECT_NE(loaded.find(expected.str()), std::string::npos) << loaded;
    layout.columns[0].binary = false;
    EXPECT_EQ(failure(*std::make_unique<QueueDataset>(layout, o)), "");
  }
}

/// Instances that were loaded for another program than the one with the log loss.
TEST_F(FileDatasetTest, LabelsThatAreLoadedAlreadyAreLookedAtInTheirBatch) {
  FileOptions o = options({folder_.write("labels", "1 9 1 1\n1 9 1 2\n")});
  InMemoryDataset data(kLayout, o, false);
  data.load_into_memory();
  BatchLayout layout = kLayout;
  layout.columns[0].binary = true;
  data.set_layout(layout);
  EXPECT_EQ(failure(data),
            "label 'label' of instance 1 of a batch is 2, expected 0 or 1 for log loss");
}

TEST_F(FileDatasetTest, MemoryIsLoadedAheadAndReleased) {
  InMemoryDataset data(kLayout, options(write(2, 10)));
  data.preload_into_memory();
  data.wait_preload_done();
  EXPECT_EQ(data.get_memory_data_size(), 21U);
  data.local_shuffle(3);
  data.begin_epoch(1);
  EXPECT_FALSE(std::ranges::is_sorted(read_on(data)));
  data.release_memory();
  EXPECT_EQ(data.get_memory_data_size(), 0U);
  data.begin_epoch(1);
  EXPECT_EQ(read_on(data).size(), 21U);
}

TEST_F(FileDatasetTest, StoppingInTheMiddleLeavesNothingBehind) {
  FileOptions o = options(write(4, 200));
  o.threads = 2;
  o.pipe.command = "cat; sleep 30";
  QueueDataset data(kLayout, o);
  data.begin_epoch(1);
  EXPECT_EQ(read_on(data, 2).size(), 14U);
}

std::unique_ptr<Dataset> counting_loader(size_t n, LoaderOptions o) {
  o.slots = kSlots;
  o.batch_size = 7;
  return data_loader(kLayout, o, [n] {
    return [n, i = size_t{0}](Columns& out) mutable {
      if (i == n) return false;
      *out.add_ids(0, 1) = ++i;
      *out.add_ids(1, 1) = 0;
      out.commit();
      return true;
    };
  });
}

TEST(DataLoader, GivesWhatTheGeneratorGives) {
  const auto data = counting_loader(50, {});
  for (int epoch = 1; epoch <= 2; ++epoch) {
    data->begin_epoch(1);
    const std::vector<Key> seen = read_on(*data);
    ASSERT_EQ(seen.size(), 50U);
    EXPECT_TRUE(std::ranges::is_sorted(seen));
  }
  const auto dropping = counting_loader(50, {.slots = {}, .drop_last = true});
  dropping->begin_epoch(1);
  EXPECT_EQ(read_on(*dropping).size(), 49U);
}

TEST(DataLoader, ShufflesWithinItsBufferAndGoesOnInThatOrder) {
  const auto data = counting_loader(500, {.slots = {}, .shuffle = 40});
  data->begin_epoch(9);
  const std::vector<Key> expected = read_on(*data);
  EXPECT_FALSE(std::ranges::is_sorted(expected));
  EXPECT_EQ(std::set<Key>(expected.begin(), expected.end()).size(), 500U);
  data->begin_epoch(9);
  std::vector<Key> seen = read_on(*data, 20);
  const auto later = counting_loader(500, {.slots = {}, .shuffle = 40});
  later->begin_epoch(9, data->position());
  for (const Key id : read_on(*later)) seen.push_back(id);
  EXPECT_EQ(seen, expected);
}

TEST(DataLoader, AFailureOfTheGeneratorReachesTheReader) {
  const auto data = data_loader(kLayout, {.slots = kSlots}, [] {
    return [](Columns&) -> bool { throw DataError("the sensor is gone"); };
  });
  EXPECT_EQ(failure(*data), "the sensor is gone");
}

/// Gives the files of some passes.
class PlannedFiles final : public SharedFiles {
 public:
  explicit PlannedFiles(std::vector<std::vector<uint32_t>> passes) : passes_(std::move(passes)) {}
  void begin_epoch() override {
    const Lock lock(mutex_);
    pass_ = next_ = 0;
  }
  std::optional<uint32_t> take(uint32_t, uint32_t) override {
    const Lock lock(mutex_);
    if (next_ == passes_[pass_].size()) return std::nullopt;
    return passes_[pass_][next_++];
  }
  bool begin_next_pass() override {
    const Lock lock(mutex_);
    if (pass_ + 1 == passes_.size()) return false;
    ++pass_;
    next_ = 0;
    return true;
  }
  uint64_t pass() const override {
    const Lock lock(mutex_);
    return pass_;
  }

 private:
  const std::vector<std::vector<uint32_t>> passes_;
  mutable Mutex mutex_;
  size_t pass_ GUARDED_BY(mutex_) = 0, next_ GUARDED_BY(mutex_) = 0;
};

TEST_F(FileDatasetTest, SharedFilesAreReadAsTheyAreGiven) {
  FileOptions o = options(write(4, 1));  // ids 100, 101..102, 103..105, 106..109
  for (const std::string command : {"", "cat -"}) {
    o.pipe.command = command;
    o.shared = std::make_shared<PlannedFiles>(std::vector<std::vector<uint32_t>>{{2}, {}, {3, 0}});
    QueueDataset data(kLayout, o);
    for (int epoch = 0; epoch < 2; ++epoch) {
      data.begin_epoch(1);
      EXPECT_EQ(read_on(data), (std::vector<Key>{103, 104, 105}));
      EXPECT_TRUE(data.begin_next_pass());
      EXPECT_EQ(read_on(data), std::vector<Key>{});
      EXPECT_TRUE(data.begin_next_pass());
      EXPECT_EQ(read_on(data), (std::vector<Key>{106, 107, 108, 109, 100}));
      EXPECT_EQ(data.pass(), 2U);
      EXPECT_FALSE(data.begin_next_pass());
    }
  }
}

}  // namespace
}  // namespace argosy
