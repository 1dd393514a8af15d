#include "argosy/world/simulated_disk.h"

#include <algorithm>
#include <set>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/world/disk_env.h"

namespace argosy {
namespace {

using Operation = SimulatedDisk::Operation;
using Failing = SimulatedDisk::Failing;

struct SimulatedDiskTest : testing::Test {
  SimulatedDiskTest() { env.make_directories("d"); }

  /// A file of `n` bytes, all of them 7.
  std::unique_ptr<WritableFile> write(const std::string& path, size_t n) {
    auto file = env.create_file(path);
    file->append(std::vector<std::byte>(n, std::byte{7}));
    return file;
  }

  SimulatedDisk disk;
  DiskEnv env{disk, "host"};
};

TEST_F(SimulatedDiskTest, AProcessThatIsKilledLosesNothingItHasWritten) {
  const auto file = write("d/a", 100);
  disk.crash_process("host");
  EXPECT_EQ(env.file_size("d/a"), 100U);
  file->append(std::vector<std::byte>(5));
  EXPECT_EQ(env.file_size("d/a"), 100U) << "the dead write no more";
}

TEST_F(SimulatedDiskTest, AMachineThatGoesDownKeepsWhatWasSynced) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Dice dice(seed, 0);
    const auto file = write("d/a", 1000);
    file->sync();
    env.sync_folder("d");
    file->append(std::vector<std::byte>(1000, std::byte{7}));
    disk.crash_machine("host", dice);
    const auto left = env.read_file("d/a");
    ASSERT_GE(left.size(), 1000U) << "seed " << seed;
    EXPECT_EQ(std::ranges::count(std::span(left).first(1000), std::byte{7}), 1000);
  }
}

TEST_F(SimulatedDiskTest, WhatWasNotSyncedTearsLosesBlocksAndNames) {
  bool whole = false, shorter = false, hole = false, garbage = false, vanished = false;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Dice dice(seed, 0);
    write("d/a", 5000);
    disk.crash_machine("host", dice);
    if (!env.file_exists("d/a")) {
      vanished = true;
      continue;
    }
    const auto left = env.read_file("d/a");
    whole = whole || std::ranges::count(left, std::byte{7}) == 5000;
    shorter = shorter || left.size() < 5000;
    for (size_t at = 0; at + SimulatedDisk::kBlock < left.size(); at += SimulatedDisk::kBlock) {
      const auto block = std::span(left).subspan(at, SimulatedDisk::kBlock);
      const std::set<std::byte> values(block.begin(), block.end());
      const bool later = left.back() == std::byte{7};  // one behind it has survived
      hole = hole || (later && values == std::set{std::byte{0}});
      garbage = garbage || (later && values.size() > 10);
    }
    env.remove_file("d/a");
    env.sync_folder("d");
  }
  EXPECT_TRUE(whole && shorter && hole && garbage && vanished);
}

TEST_F(SimulatedDiskTest, ARemovedNameMayReturnUntilItsFolderIsSynced) {
  size_t returned = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Dice dice(seed, 0);
    write("d/a", 1)->sync();
    env.sync_folder("d");
    env.remove_file("d/a");
    const bool synced = seed % 2 == 0;
    if (synced) env.sync_folder("d");
    disk.crash_machine("host", dice);
    if (!env.file_exists("d/a")) continue;
    EXPECT_FALSE(synced) << "seed " << seed;
    ++returned;
  }
  EXPECT_GT(returned, 10U);
  EXPECT_LT(returned, 40U);
}

TEST_F(SimulatedDiskTest, ARenameIsDurable) {
  Dice dice(1, 0);
  write("d/a", 10)->sync();
  env.rename_file("d/a", "d/b");
  disk.crash_machine("host", dice);
  EXPECT_EQ(env.list_files("d"), std::vector<std::string>{"b"});
}

TEST_F(SimulatedDiskTest, ALinkIsTheSameFile) {
  const auto file = write("d/a", 10);
  env.link_file("d/a", "d/b");
  file->append(std::vector<std::byte>(10));
  EXPECT_EQ(env.file_size("d/b"), 20U);
  EXPECT_EQ(disk.used(), 20U);
  EXPECT_THROW(env.link_file("d/a", "d/b"), IoError);
  env.remove_file("d/a");
  EXPECT_EQ(env.list_files("d"), std::vector<std::string>{"b"});
}

TEST_F(SimulatedDiskTest, AFullDiskTakesWhatFits) {
  disk.set_capacity(150);
  const auto file = write("d/a", 100);
  EXPECT_EQ(message_of<IoError>([&] { file->append(std::vector<std::byte>(100)); }),
            "write d/a: No space left on device");
  EXPECT_EQ(env.file_size("d/a"), 150U);
  env.truncate_file("d/a", 100);
  EXPECT_NO_THROW(file->append(std::vector<std::byte>(50)));
}

TEST_F(SimulatedDiskTest, FailuresComeOnceOrFromNowOn) {
  const auto file = write("d/a", 10), other = write("d/b", 10);
  disk.inject(Operation::append, Failing::once, "d/a");
  EXPECT_NO_THROW(other->append(std::vector<std::byte>(10)));
  EXPECT_THROW(file->append(std::vector<std::byte>(10)), IoError);
  EXPECT_EQ(env.file_size("d/a"), 15U);
  EXPECT_NO_THROW(file->append(std::vector<std::byte>(10)));
  disk.inject(Operation::read, Failing::always);
  EXPECT_THROW(env.read_file("d/a"), IoError);
  EXPECT_THROW(env.read_file("d/b"), IoError);
  disk.heal();
  EXPECT_NO_THROW(env.read_file("d/a"));
}

TEST_F(SimulatedDiskTest, WhatAFailedSyncHasLostIsNotSavedByTheNext) {
  size_t shortest = 5010;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto file = write("d/a", 10);
    file->sync();
    env.sync_folder("d");
    file->append(std::vector<std::byte>(5000, std::byte{7}));
    disk.inject(Operation::sync, Failing::once);
    EXPECT_THROW(file->sync(), IoError);
    EXPECT_NO_THROW(file->sync());
    EXPECT_EQ(env.file_size("d/a"), 5010U) << "it can be read";
    Dice dice(seed, 0);
    disk.crash_machine("host", dice);
    shortest = std::min<size_t>(shortest, env.file_size("d/a"));
  }
  EXPECT_LT(shortest, 5010U);
}

TEST_F(SimulatedDiskTest, ItStopsBetweenAnyTwoChanges) {
  const auto file = write("d/a", 10);
  disk.stop_after(1);
  EXPECT_NO_THROW(file->append(std::vector<std::byte>(10)));
  EXPECT_THROW(file->append(std::vector<std::byte>(10)), SimulatedDisk::Stopped);
  EXPECT_EQ(env.file_size("d/a"), 25U);
  EXPECT_THROW(file->sync(), SimulatedDisk::Stopped);
  EXPECT_THROW(env.remove_file("d/a"), SimulatedDisk::Stopped);
  disk.crash_process("host");
  EXPECT_NO_THROW(env.remove_file("d/a"));
}

TEST_F(SimulatedDiskTest, BitsFlip) {
  write("d/a", 10);
  disk.flip_bit("d/a", 3, 4);
  EXPECT_EQ(env.read_file("d/a")[3], std::byte{7 ^ 16});
}

TEST_F(SimulatedDiskTest, TheSameDiceGiveTheSameCrash) {
  const auto run = [](uint64_t seed) {
    SimulatedDisk disk;
    DiskEnv env(disk, "host");
    const auto file = env.create_file("a");
    file->append(std::vector<std::byte>(9999, std::byte{7}));
    env.sync_folder(".");
    Dice dice(seed, 0);
    disk.crash_machine("host", dice);
    return env.read_file("a");
  };
  EXPECT_EQ(run(5), run(5));
  EXPECT_NE(run(5), run(6));
}

}  // namespace
}  // namespace argosy
