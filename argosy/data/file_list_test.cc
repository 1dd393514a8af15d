#include "argosy/data/file_list.h"

#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"

namespace argosy {
namespace {

using Strings = std::vector<std::string>;

class FileList : public testing::Test {
 protected:
  FileList() {
    std::filesystem::create_directories(folder_.path() + "/sub/below");
    for (const char* name : {"part-2", "part-10", "part-1", ".hidden", "other", "sub/x", "a[b]"})
      folder_.write(name, "1\n");
  }
  /// Files of the sources, all relative to the folder.
  Strings list(const Strings& sources) const {
    Strings full, files;
    for (const std::string& source : sources) full.push_back(folder_.path() + "/" + source);
    for (const std::string& file : list_files(full))
      files.push_back(file.substr(folder_.path().size() + 1));
    return files;
  }
  TestFolder folder_;
};

TEST_F(FileList, ExpandsInTheOrderOfTheListAndSortsEachPart) {
  EXPECT_EQ(list({"part-2", "part-1*"}), (Strings{"part-2", "part-1", "part-10"}));
  EXPECT_EQ(list({"."}), (Strings{"./a[b]", "./other", "./part-1", "./part-10", "./part-2"}));
  EXPECT_EQ(list({"s?b"}), (Strings{"sub/x"}));
  EXPECT_EQ(list({"a[b]"}), (Strings{"a[b]"})) << "a file of that very name is no pattern";
}

TEST_F(FileList, RefusesWhatStandsForNoFile) {
  EXPECT_THROW(list_files({}), ConfigError);
  EXPECT_THROW(list({"missing"}), ConfigError);
  EXPECT_THROW(list({"part-1", "no*"}), ConfigError);
  EXPECT_EQ(message_of<ConfigError>([&] { list({"sub/below"}); }),
            folder_.path() + "/sub/below: the folder holds no file");
}

TEST(FilesOfWorker, TheFirstWorkersTakeOneMore) {
  const Strings files = {"a", "b", "c", "d", "e"};
  const auto share = [&](size_t worker, size_t workers) {
    const auto part = files_of_worker(files, worker, workers);
    return Strings(part.begin(), part.end());
  };
  EXPECT_EQ(share(0, 3), (Strings{"a", "b"}));
  EXPECT_EQ(share(1, 3), (Strings{"c", "d"}));
  EXPECT_EQ(share(2, 3), (Strings{"e"}));
  EXPECT_EQ(share(6, 7), Strings{});
  EXPECT_THROW(share(3, 3), ConfigError);
}

}  // namespace
}  // namespace argosy
