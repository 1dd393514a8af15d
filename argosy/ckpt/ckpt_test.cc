#include "argosy/ckpt/ckpt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include "argosy/base/error.h"
#include "argosy/base/file_sink.h"
#include "argosy/base/test_support.h"
#include "argosy/ckpt/checkpoint_files.h"
#include "argosy/ps/row_table.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

/// Checkpoints with a parameter, a counter and two tables.
class CkptTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  /// Saves rows 1 to 100 of value `row`, in a file, and 1 to 10 of another table.
  std::string save(const std::string& name, float weight, float row, int epoch = 2) {
    std::string dir = path(name);
    env_->make_directories(dir);
    Manifest manifest;
    manifest.resume.epoch = epoch;
    manifest.generation = 1;
    for (const ps::TableSpec& spec :
         {ps::TableSpec{.name = "clicks", .dim = 2, .rule = "adagrad"},
          ps::TableSpec{.name = "seen", .dim = 1, .entry = "show_click", .track_unseen = true}}) {
      const auto table = make_row_table(spec);
      std::vector<Key> keys;
      for (Key key = 1; key <= (spec.dim == 2 ? 100U : 10U); ++key) keys.push_back(key);
      table->assign(keys, std::vector<float>(spec.dim * keys.size(), row));
      manifest.tables.push_back(save_table_file(*env_, dir, spec.name + ".1.rows", *table));
    }
    save_model(*env_, manifest_path(dir),
               {manifest.text(),
                {{"fc.w", Tensor::of<float>({2, 2}, {weight, 1, 2, 3})},
                 {"@step", Tensor::of<int64_t>({1}, {7})}}});
    return dir;
  }

  /// What `run` prints; and its message, if it throws.
  static std::string printed(const std::function<void(std::FILE*)>& run) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::tmpfile(), std::fclose);
    std::string thrown;
    try {
      run(out.get());
    } catch (const Error& e) {
      thrown = std::string("thrown: ") + e.what();
    }
    std::string text(static_cast<size_t>(std::ftell(out.get())), '\0');
    std::rewind(out.get());
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), out.get()), text.size());
    return text + thrown;
  }
  std::string verify(const std::string& dir) {
    return printed([&](std::FILE* out) { verify_checkpoints(*env_, dir, out); });
  }
  std::string diff(const std::string& a, const std::string& b) {
    return printed([&](std::FILE* out) {
      const bool some = diff_checkpoints(*env_, a, b, out) == Difference::some;
      std::fputs(some ? "different" : "equal", out);
    });
  }
  std::string text_of(const std::string& file) {
    const std::vector<std::byte> bytes = env_->read_file(file);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static void flip(const std::string& file, size_t at) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(stream.get() ^ 1);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(byte);
  }

  const TestFolder folder_;
  const std::unique_ptr<Env> env_ = real_env();
};

TEST_F(CkptTest, ListNamesEachCheckpointBelowAFolder) {
  save("model/0", 1, 1);
  save("model/1", 1, 1, 3);
  const std::string text =
      printed([&](std::FILE* out) { list_checkpoints(*env_, path("model"), out); });
  EXPECT_TRUE(has(text, "model/0: goes on with epoch 2, generation 1, ")) << text;
  EXPECT_TRUE(has(text, "model/1: goes on with epoch 3, generation 1, ")) << text;
  EXPECT_TRUE(has(text, "  clicks: 100 rows, ")) << text;
  EXPECT_TRUE(has(text, "  seen: 10 rows, ")) << text;
  EXPECT_TRUE(has(printed([&](std::FILE* out) { list_checkpoints(*env_, path("."), out); }), "0"));
  fs::create_directory(path("none"));
  EXPECT_TRUE(has(printed([&](std::FILE* out) { list_checkpoints(*env_, path("none"), out); }),
                  "thrown: " + path("none") + ": no model at or below it"));
}

TEST_F(CkptTest, ListCountsTheRowsOfEarlierReleases) {
  const std::string golden = std::string(ARGOSY_SOURCE_DIR) + "/tests/golden/saved_model";
  const std::string text =
      printed([&](std::FILE* out) { list_checkpoints(*env_, golden + "/servers", out); });
  EXPECT_TRUE(has(text, "2 files")) << text;
  EXPECT_TRUE(has(verify(golden), "which the checkpoint has not noted")) << verify(golden);
  EXPECT_TRUE(has(verify(golden), " sound\n")) << verify(golden);
}

TEST_F(CkptTest, VerifyLooksAtEverythingAndNamesTheFirstTrouble) {
  const std::string dir = save("a", 1, 1);
  EXPECT_TRUE(has(verify(dir), "3 sound\n")) << verify(dir);
  flip(dir + "/clicks.1.rows", 1000);  // of a weight
  const std::string text = verify(dir);
  EXPECT_TRUE(has(text, "BAD  " + dir + "/clicks.1.rows: its checksum does not fit its bytes\n"))
      << text;
  EXPECT_TRUE(has(text, "ok   " + dir + "/seen.1.rows: 10 rows of 1 weights")) << text;
  EXPECT_TRUE(has(text, "thrown: 1 of 3 bad, the first: " + dir + "/clicks.1.rows: ")) << text;
}

TEST_F(CkptTest, VerifyFindsAFileOfAnotherEpoch) {
  const std::string a = save("a", 1, 1), b = save("b", 1, 2);
  fs::copy_file(b + "/clicks.1.rows", a + "/clicks.1.rows", fs::copy_options::overwrite_existing);
  EXPECT_TRUE(has(verify(a), "is of another save")) << verify(a);
  fs::remove(a + "/clicks.1.rows");
  EXPECT_TRUE(has(verify(a), "BAD  ")) << verify(a);
}

TEST_F(CkptTest, VerifyFindsAKeyInTwoFiles) {
  const std::string dir = save("a", 1, 1);
  CheckpointFiles files = open_checkpoint(*env_, dir);
  fs::copy_file(dir + "/seen.1.rows", dir + "/more.rows");
  files.manifest.tables.push_back({"seen", "more.rows", files.manifest.tables[1].sum});
  save_model(*env_, manifest_path(dir), {files.manifest.text(), files.tensors});
  EXPECT_TRUE(has(verify(dir), "has key 1, which is also in ")) << verify(dir);
}

TEST_F(CkptTest, VerifyFindsRowsThatAreNotFinite) {
  const std::string dir = save("a", 1, 1);
  CheckpointFiles files = open_checkpoint(*env_, dir);
  FileSink file(*env_, dir + "/clicks.1.rows");
  ps::TableWriter writer(file, {.dim = 1, .row_floats = 1});
  const Key key = 9;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  writer.add(ps::Section::rows, std::span(&key, 1), std::span(&nan, 1));
  files.manifest.tables[0].sum = writer.finish();
  file.finish();
  save_model(*env_, manifest_path(dir), {files.manifest.text(), files.tensors});
  EXPECT_TRUE(has(verify(dir), "the row of key 9 holds NaN or infinity")) << verify(dir);
}

TEST_F(CkptTest, InspectPrintsShapesAndRowsByKey) {
  const std::string dir = save("a", 1, 0.5F);
  const auto inspect = [&](const InspectOptions& options) {
    return printed([&](std::FILE* out) { inspect_checkpoint(*env_, dir, options, out); });
  };
  const std::string all = inspect({});
  EXPECT_TRUE(has(all, "fc.w f32[2,2]: norm 3.87298, mean 1.75, from 1 to 3; 1 1 2 3\n")) << all;
  EXPECT_TRUE(has(all, "table clicks: 1 files, rows of 2 weights and 2 of state\n")) << all;
  EXPECT_TRUE(has(all, "table seen: 1 files, rows of 1 weights and 0 of state, with scores"))
      << all;
  EXPECT_TRUE(has(all, "  100 rows\n")) << all;
  EXPECT_EQ(inspect({.table = "clicks", .keys = {5, 999}}),
            "table clicks\n  5: weights 0.5 0.5 state 0 0\n  999: has no row\n");
  EXPECT_TRUE(has(inspect({.keys = {5}}), "has 2 tables, say with --table")) << inspect({});
  EXPECT_EQ(inspect({.table = "click"}),
            "thrown: " + dir + ": has no table 'click', did you mean clicks?");
  EXPECT_EQ(inspect({.parameter = "fc.v"}),
            "thrown: " + dir + ": has no parameter 'fc.v', did you mean fc.w?");
}

TEST_F(CkptTest, DiffNamesWhatDiffersAndByHowMuch) {
  const std::string a = save("a", 1, 0.5F), b = save("b", 1.25F, 0.75F);
  EXPECT_TRUE(diff(a, a).ends_with("equal")) << diff(a, a);
  const std::string text = diff(a, b);
  EXPECT_TRUE(has(text, "parameter fc.w: differs by 0.25 at most\n")) << text;
  EXPECT_TRUE(has(text, "table clicks: 0 rows are equal, 100 differ, 0 only in ")) << text;
  EXPECT_TRUE(has(text, "weights differ by 0.25 at most (key 1)")) << text;
  EXPECT_TRUE(text.ends_with("different"));
}

TEST_F(CkptTest, ReshardedModelsAreEqualAndMergeBackToTheSameBytes) {
  const std::string a = save("a", 1, 0.5F), three = path("three"), one = path("one");
  const auto reshard = [&](const std::string& from, uint32_t servers, const std::string& to) {
    return printed([&](std::FILE* out) { reshard_checkpoint(*env_, from, servers, to, out); });
  };
  EXPECT_EQ(reshard(a, 3, three), three + ": 110 rows of 2 tables in 6 files\n");
  EXPECT_TRUE(fs::exists(three + "/clicks.1.2-of-3.rows"));
  EXPECT_TRUE(has(verify(three), "each key in one of 3 files")) << verify(three);
  EXPECT_TRUE(diff(a, three).ends_with("equal")) << diff(a, three);
  reshard(three, 0, one);
  EXPECT_TRUE(diff(three, one).ends_with("equal"));
  for (const char* file : {"/clicks.1.rows", "/seen.1.rows", "/persistables.argosy"})
    EXPECT_EQ(text_of(a + file), text_of(one + file)) << file;
  EXPECT_TRUE(has(reshard(a, 2, three), "thrown: " + three + ": has a checkpoint already"));
}

TEST_F(CkptTest, CountedKeysSurviveResharding) {
  const std::string golden = std::string(ARGOSY_SOURCE_DIR) + "/tests/golden/saved_model/counted/0";
  printed([&](std::FILE* out) { reshard_checkpoint(*env_, golden, 5, path("five"), out); });
  printed([&](std::FILE* out) { reshard_checkpoint(*env_, path("five"), 0, path("one"), out); });
  EXPECT_TRUE(diff(golden, path("one")).ends_with("equal")) << diff(golden, path("one"));
  EXPECT_EQ(text_of(golden + "/embedding.1.rows"), text_of(path("one") + "/embedding.1.rows"));
}

TEST_F(CkptTest, ExportsAreReadableByOthers) {
  const std::string dir = save("a", 1, 0.5F);
  const auto exported = [&](const std::string& format) {
    return printed(
        [&](std::FILE* out) { export_checkpoint(*env_, dir, path(format), format, out); });
  };
  EXPECT_EQ(exported("text"), path("text") + ": 2 parameters and 2 tables as text\n");
  EXPECT_EQ(text_of(path("text") + "/fc.w.txt"), "1 1\n2 3\n");
  EXPECT_TRUE(text_of(path("text") + "/clicks.txt")
                  .starts_with("# key weights*2 state*2\n1 0.5 0.5 0 0\n2 "));
  exported("npy");
  const std::string npy = text_of(path("npy") + "/clicks.weights.npy");
  EXPECT_TRUE(has(npy, "{'descr': '<f4', 'fortran_order': False, 'shape': (100,2,), }")) << npy;
  EXPECT_EQ(npy.size(), 128U + 100 * 2 * sizeof(float));
  exported("safetensors");
  const std::string file = text_of(path("safetensors") + "/model.safetensors");
  EXPECT_TRUE(has(file, R"("clicks@weights":{"dtype":"F32","shape":[100,2],"data_offsets":[)"))
      << file;
  EXPECT_TRUE(has(exported("nyp"), "thrown: format 'nyp', expected text, npy or safetensors"));
}

}  // namespace
}  // namespace argosy
