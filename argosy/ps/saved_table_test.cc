#include "argosy/ps/saved_table.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/ps/row_table.h"
#include "argosy/world/env.h"

namespace argosy::ps {
namespace {

namespace fs = std::filesystem;

/// A table of two servers, saved in two epochs, and the tables that saves are loaded into.
class SavedTableTest : public testing::Test {
 protected:
  SavedTableTest() {
    for (const uint64_t epoch : {0, 1})
      for (const Key server : {0, 1}) {
        const auto table = make_row_table(kSpec);
        std::vector<Key> keys;
        for (Key key = server; key < 200; key += 2) keys.push_back(key);
        table->assign(keys, std::vector<float>(2 * keys.size(), 1.0F + static_cast<float>(epoch)));
        saved_[epoch].push_back(
            save_table_file(*env_, folder_.path(), file(epoch, server), *table));
      }
    for (const char* name : {"clicks", "others"}) {
      TableSpec spec = kSpec;
      spec.name = name;
      loaded_.push_back(make_row_table(spec));
    }
    save_table_file(*env_, folder_.path(), "others.rows", *loaded_[1]);
  }

  static std::string file(uint64_t epoch, uint64_t server) {
    return "clicks." + std::to_string(epoch) + "." + std::to_string(server) + "-of-2.rows";
  }
  std::string path(uint64_t epoch, uint64_t server) const {
    return folder_.path() + "/" + file(epoch, server);
  }
  void load(std::vector<SavedTable> files) {
    files.push_back({"others", "others.rows"});
    load_table_files(*env_, folder_.path(), files, loaded_, [](Key) { return true; });
  }
  std::string refusal() {
    std::string message = message_of<DataError>([&] { load(saved_[0]); });
    EXPECT_EQ(loaded_[0]->size(), 0U);
    return message;
  }

  const TableSpec kSpec{.name = "clicks", .dim = 2, .rule = "adagrad"};
  const TestFolder folder_;
  const std::unique_ptr<Env> env_ = real_env();
  std::vector<SavedTable> saved_[2];  // by epoch, then by server
  std::vector<std::unique_ptr<RowTable>> loaded_;
};

TEST_F(SavedTableTest, FilesAsTheyWereSavedAreLoaded) {
  EXPECT_EQ(saved_[0][1].sum.rows, 100U);
  EXPECT_EQ(saved_[0][1].sum.bytes, fs::file_size(path(0, 1)));
  load(saved_[0]);
  EXPECT_EQ(loaded_[0]->size(), 200U);
}

TEST_F(SavedTableTest, AFileOfAnotherEpochIsRefused) {
  fs::copy_file(path(1, 1), path(0, 1), fs::copy_options::overwrite_existing);
  const std::string message = refusal();
  EXPECT_TRUE(message.starts_with(path(0, 1) + ": is of another save, its sum is ")) << message;
}

TEST_F(SavedTableTest, AFileOfAnotherServerIsRefused) {
  fs::copy_file(path(0, 1), path(0, 0), fs::copy_options::overwrite_existing);
  const std::string message = refusal();
  EXPECT_TRUE(message.starts_with(path(0, 0) + ": is of another save, its sum is ")) << message;
}

TEST_F(SavedTableTest, AFileThatIsCutIsRefused) {
  const uint64_t whole = fs::file_size(path(0, 1));
  fs::resize_file(path(0, 1), whole - 8);
  EXPECT_EQ(refusal(), path(0, 1) + ": has " + std::to_string(whole - 8) + " bytes, expected the " +
                           std::to_string(whole) + " that were saved");
  fs::resize_file(path(0, 1), 3);
  EXPECT_TRUE(has(refusal(), ": has 3 bytes, expected the ")) << refusal();
}

TEST_F(SavedTableTest, AFlippedBitAnywhereIsRefusedBeforeAnyTableChanges) {
  const std::vector<std::byte> bytes = env_->read_file(path(0, 1));
  for (size_t at = 0; at < bytes.size(); at += 97) {
    std::vector<std::byte> damaged = bytes;
    damaged[at] ^= std::byte{4};
    write_file_atomically(*env_, path(0, 1), damaged);
    EXPECT_NE(refusal(), "nothing was thrown") << at;
  }
}

TEST_F(SavedTableTest, ATableThatCannotBeLoadedLeavesTheOthersAsTheyWere) {
  std::vector<std::byte> bytes = env_->read_file(folder_.path() + "/others.rows");
  bytes[bytes.size() - 1] ^= std::byte{1};
  write_file_atomically(*env_, folder_.path() + "/others.rows", bytes);
  EXPECT_EQ(refusal(), folder_.path() + "/others.rows: its checksum does not fit its bytes");
}

TEST_F(SavedTableTest, ASaveThatNotedNoSumsIsLoaded) {
  for (SavedTable& saved : saved_[0]) saved.sum = {};
  load(saved_[0]);
  EXPECT_EQ(loaded_[0]->size(), 200U);
}

}  // namespace
}  // namespace argosy::ps
