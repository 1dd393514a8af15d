#include "argosy/train/saved_cut.h"

#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/ps/test_cut.h"
#include "argosy/train/saved_model.h"
#include "argosy/world/disk_env.h"

namespace argosy {
namespace {

/// A cut of one server, made a checkpoint.
void take_cut(ps::OneServer& server, const std::string& dir, uint64_t number) {
  SavedCut cut;
  cut.parts.push_back({"", ps::cut_file_name(0), server.cut(dir, number)});
  cut.tables.push_back({"rows", ps::cut_file_name(0), cut.parts[0].sum});
  cut.tables[0].sum.rows = server.shard.table(0).size();
  cut.marks.push_back({.step = number, .applied = {number}, .trained = {}});
  cut.states.push_back({"mean", Tensor::of<float>({2}, {1, 2})});
  cut.shapes.emplace_back("w", Shape{5, 10});
  save_cut(server.env, dir, cut, {.epoch = 2}, number);
}

/// What a checkpoint holds, as a model would load it.
struct LoadedCut {
  std::vector<std::byte> table;
  std::vector<float> parameters;
};

LoadedCut load_cut(Env& env, const std::string& dir) {
  const CheckpointContent content = read_checkpoint(env, dir);
  LoadedCut loaded;
  check_table_file(env, dir, content.manifest.tables.at(0));
  const auto bytes = open_table_file(env, dir, content.manifest.tables.at(0));
  const auto all = bytes->take(bytes->left());
  loaded.table.assign(all.begin(), all.end());
  for (const NamedTensor& tensor : content.tensors) {
    if (tensor.name != "w") continue;
    EXPECT_EQ(tensor.value.shape(), (Shape{5, 10}));
    const auto values = tensor.value.as<float>();
    loaded.parameters.assign(values.begin(), values.end());
  }
  return loaded;
}

TEST(SavedCut, HasParametersStatesAndStep) {
  SimulatedDisk disk;
  DiskEnv env(disk, "server");
  ps::OneServer server(env, false);
  Dice dice(1, 6);
  server.change(dice, 1, 20);
  take_cut(server, "saves/cut-1", 7);
  const CheckpointContent content = read_checkpoint(env, "saves/cut-1");
  std::vector<std::string> names;
  for (const NamedTensor& tensor : content.tensors) names.push_back(tensor.name);
  EXPECT_EQ(names, (std::vector<std::string>{"mean", "w", "@step"}));
  EXPECT_EQ(content.tensors[2].value.as<int64_t>()[0], 7);
  EXPECT_EQ(content.manifest.resume.epoch, 2);
  EXPECT_TRUE(load_cut(env, "saves/cut-1").table == ps::held_by(server.shard).table);
}

/// 200 places: of 100 the process is killed, of 100 the machine goes down.
TEST(SavedCut, KilledAnywhereLeavesTheOldCheckpointOrTheNew) {
  size_t olds = 0, news = 0;
  for (uint64_t point = 0; point < 200; ++point) {
    SCOPED_TRACE("point " + std::to_string(point));
    SimulatedDisk disk;
    DiskEnv env(disk, "server", point);
    Dice dice(point, 6);
    ps::Held before, during;
    {
      ps::OneServer server(env, false);
      uint64_t step = 0;
      for (; step < 12; ++step) {
        server.change(dice, step + 1, 60);
        server.record(step + 1);
      }
      take_cut(server, "saves/cut-1", ++step);
      before = ps::held_by(server.shard);
      for (size_t i = 0; i <= point % 5; ++i) server.change(dice, ++step, 40);
      during = ps::held_by(server.shard);
      disk.stop_after(point / 2 % 30);
      try {
        take_cut(server, "saves/cut-2", step);
      } catch (const SimulatedDisk::Stopped&) {
      }
    }
    if (point % 2 == 0)
      disk.crash_process("server");
    else
      disk.crash_machine("server", dice);
    const bool is_new = env.file_exists(manifest_path("saves/cut-2"));
    ++(is_new ? news : olds);
    const LoadedCut loaded = load_cut(env, is_new ? "saves/cut-2" : "saves/cut-1");
    const ps::Held& held = is_new ? during : before;
    ASSERT_TRUE(loaded.table == held.table);
    ASSERT_EQ(loaded.parameters, held.parameters);
    load_cut(env, "saves/cut-1");
  }
  EXPECT_GT(olds, 60U);
  EXPECT_GT(news, 20U);
}

}  // namespace
}  // namespace argosy
