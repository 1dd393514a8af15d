#include "argosy/ps/shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"
#include "argosy/world/env.h"

namespace argosy::ps {
namespace {

constexpr size_t kDim = 4;

Placement placement_of(uint32_t servers) {
  const ParameterSpec parameter{
      .name = "w", .elements = 40, .rule = "add", .learning_rate = "1", .unit = 4};
  const TableSpec rows{
      .name = "rows", .dim = kDim, .rule = "adam", .init = "uniform(-1, 1)", .track_unseen = true};
  return place({parameter}, {rows}, {0}, servers, {.min_block = 4});
}

/// Those of the first `n` that a shard holds.
std::vector<Key> own_keys(const Shard& shard, size_t n) {
  std::vector<Key> keys;
  for (Key i = 0; i < n; ++i)
    if (shard.placement().server_of(mix(i)) == shard.index()) keys.push_back(mix(i));
  return keys;
}

/// Rows that differ from each other, all changed once.
void fill(Shard& shard, size_t n) {
  const std::vector<Key> keys = own_keys(shard, n);
  const std::vector<float> grads(keys.size() * kDim, 0.5F);
  Ticket ticket;
  shard.table(0).locate(keys, {}, {}, ticket);
  apply_located(shard.table(0), ticket, grads, 1);
}

/// The files of the real world, and the most bytes that were read at once.
class WatchedEnv final : public Env {
 public:
  size_t most_read() const { return most_; }

  Time now() override { return real_->now(); }
  TimerId schedule(Duration after, std::function<void()> task) override {
    return real_->schedule(after, std::move(task));
  }
  bool cancel(TimerId timer) override { return real_->cancel(timer); }
  uint64_t random() override { return real_->random(); }
  std::unique_ptr<WritableFile> create_file(const std::string& path) override {
    return real_->create_file(path);
  }
  std::unique_ptr<WritableFile> create_new_file(const std::string& path) override {
    return real_->create_new_file(path);
  }
  std::unique_ptr<ReadableFile> open_file(const std::string& path) override {
    return std::make_unique<Watched>(*this, real_->open_file(path));
  }
  bool file_exists(const std::string& path) override { return real_->file_exists(path); }
  void rename_file(const std::string& from, const std::string& to) override {
    real_->rename_file(from, to);
  }
  void link_file(const std::string& from, const std::string& to) override {
    real_->link_file(from, to);
  }
  void remove_file(const std::string& path) override { real_->remove_file(path); }
  void truncate_file(const std::string& path, uint64_t size) override {
    real_->truncate_file(path, size);
  }
  void make_directories(const std::string& path) override { real_->make_directories(path); }
  std::vector<std::string> list_files(const std::string& folder) override {
    return real_->list_files(folder);
  }
  void sync_folder(const std::string& folder) override { real_->sync_folder(folder); }

 private:
  class Watched final : public ReadableFile {
   public:
    Watched(WatchedEnv& env, std::unique_ptr<ReadableFile> file)
        : env_(env), file_(std::move(file)) {}
    uint64_t size() const override { return file_->size(); }
    void read_at(uint64_t offset, std::span<std::byte> to) override {
      env_.most_ = std::max(env_.most_, to.size());
      file_->read_at(offset, to);
    }

   private:
    WatchedEnv& env_;
    std::unique_ptr<ReadableFile> file_;
  };
  std::unique_ptr<Env> real_ = real_env();
  size_t most_ = 0;
};

struct ShardTest : testing::Test {
  WatchedEnv env;
  TestFolder folder;
};

TEST_F(ShardTest, RowsAreReadInPagesWhoseSizeDoesNotGrowWithTheTable) {
  constexpr size_t kRows = 500'000, kBytes = kRows * (sizeof(Key) + kDim * sizeof(float));
  constexpr size_t kFrame = size_t{5} << 20;
  static_assert(kBytes > 2 * kFrame);
  Shard shard(placement_of(1), 0, 1);
  fill(shard, kRows);
  std::map<Key, std::vector<float>> met;
  verbs::ReadRows request{.table = "rows", .from = {}};
  size_t pages = 0;
  while (!request.from.at_end) {
    const verbs::ReadRows::Result page = shard.read_rows(request);
    EXPECT_LT(encode_fields(page).size(), kFrame);
    ASSERT_EQ(page.rows.size(), page.keys.size() * kDim);
    for (size_t i = 0; i < page.keys.size(); ++i)
      EXPECT_TRUE(met.try_emplace(page.keys[i],
                                  page.rows.begin() + static_cast<ptrdiff_t>(i * kDim),
                                  page.rows.begin() + static_cast<ptrdiff_t>((i + 1) * kDim))
                      .second);
    request.from = page.next;
    ++pages;
  }
  EXPECT_GT(pages, 2U);
  EXPECT_EQ(met.size(), kRows);
  for (const Key key : {mix(0), mix(kRows / 2), mix(kRows - 1)})
    EXPECT_EQ(met.at(key), peek(shard.table(0), std::vector<Key>{key}));
}

TEST_F(ShardTest, ReadingRowsFromAPlaceThatIsNotThereEnds) {
  Shard shard(placement_of(1), 0, 1);
  fill(shard, 10);
  for (const verbs::ReadRows::Place& place :
       {verbs::ReadRows::Place{99, 0, false}, {~uint64_t{0}, ~uint64_t{0}, false}, {0, 0, true}}) {
    const auto page = shard.read_rows({.table = "rows", .from = place});
    EXPECT_TRUE(page.keys.empty() || place.shard < 16);
    EXPECT_LE(page.keys.size(), 10U);
  }
}

/// Two servers save, three load, one loads what the three saved: nothing is lost or changed.
TEST_F(ShardTest, SavesAreLoadedByAnyNumberOfServersAsStreams) {
  constexpr size_t kRows = 100'000;
  std::vector<SavedTable> files;
  std::map<Key, std::vector<float>> weights;
  for (uint32_t i = 0; i < 2; ++i) {
    Shard shard(placement_of(2), i, 1);
    fill(shard, kRows);
    const std::vector<Key> keys = own_keys(shard, kRows);
    const std::vector<float> rows = peek(shard.table(0), keys);
    for (size_t k = 0; k < keys.size(); ++k)
      weights[keys[k]].assign(rows.data() + k * kDim, rows.data() + (k + 1) * kDim);
    for (SavedTable& file : shard.save(env, folder.path() + "/a", 1))
      files.push_back(std::move(file));
  }
  size_t rows = 0;
  std::vector<SavedTable> again;
  for (uint32_t i = 0; i < 3; ++i) {
    Shard shard(placement_of(3), i, 2);
    fill(shard, 7);  // goes away
    shard.load(env, folder.path() + "/a", files);
    EXPECT_EQ(shard.rows(), own_keys(shard, kRows).size());
    rows += shard.rows();
    for (SavedTable& file : shard.save(env, folder.path() + "/b", 1))
      again.push_back(std::move(file));
  }
  EXPECT_EQ(rows, kRows);
  Shard one(placement_of(1), 0, 1);
  one.load(env, folder.path() + "/b", again);
  EXPECT_EQ(one.rows(), kRows);
  for (const auto& [key, row] : weights)
    ASSERT_EQ(peek(one.table(0), std::vector<Key>{key}), row) << key;
  EXPECT_LE(env.most_read(), size_t{2} << 20);  // a file has some 3 MB
}

TEST_F(ShardTest, ASaveThatDoesNotFitChangesNothing) {
  Shard shard(placement_of(1), 0, 1);
  fill(shard, 100);
  std::vector<SavedTable> files = shard.save(env, folder.path(), 1);
  const std::vector<Key> keys = own_keys(shard, 100);
  fill(shard, 100);
  const std::vector<float> before = peek(shard.table(0), keys);
  const std::string path = folder.path() + "/" + files[0].file;
  std::vector<std::byte> bytes = env.read_file(path);
  const auto load_error = [&] {
    return message_of<DataError>([&] { shard.load(env, folder.path(), files); });
  };
  bytes.push_back(std::byte{7});
  write_file_atomically(env, path, bytes);
  EXPECT_NE(load_error().find(" bytes, expected the "), std::string::npos) << load_error();
  files[0].sum = {};  // as in saves of the first releases
  EXPECT_EQ(load_error(), path + ": 1 bytes too many");
  bytes.resize(bytes.size() / 2);
  write_file_atomically(env, path, bytes);
  EXPECT_NE(load_error().find("ends early"), std::string::npos) << load_error();
  files[0].table = "others";
  EXPECT_EQ(load_error(), folder.path() + ": has no table 'rows'");
  EXPECT_EQ(peek(shard.table(0), keys), before);
  EXPECT_EQ(shard.rows(), 100U);
}

TEST_F(ShardTest, PartsTogetherApplyAndReadAllParameters) {
  for (const size_t parts : {1, 2, 3, 7}) {
    Shard shard(placement_of(3), 1, parts);
    const size_t floats = shard.shape().dense_floats;
    std::vector<float> grads(floats), read(floats, -99.0F);
    for (size_t i = 0; i < floats; ++i) grads[i] = static_cast<float>(i);
    size_t covered = 0;
    for (size_t part = 0; part < parts; ++part) {
      shard.apply_parameters(part, grads, 1);
      shard.read_parameters(part, read);
      for (const Shard::Range& range : shard.parameter_ranges(part)) covered += range.size;
    }
    EXPECT_EQ(covered, floats);
    EXPECT_EQ(read, grads);
    const std::vector<float> values = shard.parameters();
    Shard other(placement_of(3), 1, 1);
    other.set_parameters(values);
    EXPECT_EQ(other.parameters(), values);
    EXPECT_EQ(message_of<DataError>([&] { other.set_parameters(std::span(values).subspan(1)); }),
              "parameters: " + std::to_string(values.size() - 1) + " floats, expected " +
                  std::to_string(values.size()));
  }
}

TEST_F(ShardTest, WrongNamesAndNumbersAreNamed) {
  EXPECT_EQ(message_of<ConfigError>([] { Shard(placement_of(2), 2, 1); }),
            "server 2 but only 2 servers");
  Shard shard(placement_of(2), 1, 1);
  EXPECT_EQ(message_of<DataError>([&] { shard.table("row"); }),
            "no table 'row'; did you mean rows?");
}

}  // namespace
}  // namespace argosy::ps
