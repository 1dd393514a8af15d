// Servers that load a save of many rows (9 weights with Adam's state), one process each: the peak
// memory during the load, against the size of the loaded rows. A second load keeps the first one's
// rows until the new ones are complete.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "argosy/base/rng.h"
#include "argosy/ps/shard.h"
#include "argosy/world/env.h"
#include "bench/bench.h"
#include "bench/processes.h"

namespace argosy::benches {
namespace {

constexpr size_t kDim = 9, kBatch = 4096;

ps::Placement placement(uint32_t servers) {
  ps::TableSpec spec{.name = "rows", .dim = kDim, .rule = "adam", .init = "uniform(-0.01, 0.01)"};
  return ps::place({}, {spec}, {0}, servers);
}

/// A folder for the save, removed with it.
class SaveFolder {
 public:
  SaveFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "argosy_load_XXXXXX").string();
    check<IoError>(::mkdtemp(name.data()) != nullptr, "cannot make a folder like ", name);
    path_ = name;
  }
  ~SaveFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  SaveFolder(const SaveFolder&) = delete;
  SaveFolder& operator=(const SaveFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Makes a server's part of the save.
struct Saved {
  double rows = 0;
};
Saved save_rows(const ps::Placement& placement, uint32_t index, uint64_t rows,
                const std::string& folder) {
  const auto env = real_env();
  ps::Shard shard(placement, index, 1);
  const auto loading = shard.table(0).images().begin_load();
  const size_t width = shard.table(0).recipe().floats(ps::Section::rows);
  const std::vector<float> images(kBatch * width, 0.5F);
  std::vector<Key> keys;
  const auto add = [&] {
    loading->add(ps::Section::rows, keys, std::span(images).first(keys.size() * width));
    keys.clear();
  };
  for (uint64_t row = 0; row < rows; ++row) {
    const Key key = mix(row + 1);
    if (placement.server_of(key) != index) continue;
    keys.push_back(key);
    if (keys.size() == kBatch) add();
  }
  add();
  loading->commit();
  shard.save(*env, folder, 1);
  return {static_cast<double>(shard.rows())};
}

struct Loaded {
  double rows = 0, seconds = 0;
  double resident_bytes = 0, peak_bytes = 0;  // more than before
};
Loaded load_rows(const ps::Placement& placement, uint32_t index, const std::string& folder,
                 int64_t times) {
  const auto env = real_env();
  std::vector<ps::SavedTable> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back({"rows", entry.path().filename().string()});
  ps::Shard shard(placement, index, 1);
  const double before = resident_bytes(), start = seconds_now();
  for (int64_t i = 0; i < times; ++i) shard.load(*env, folder, files);
  return {.rows = static_cast<double>(shard.rows()),
          .seconds = seconds_now() - start,
          .resident_bytes = resident_bytes() - before,
          .peak_bytes = peak_resident_bytes() - before};
}

BenchResults run(const BenchFlags& flags) {
  const auto rows = static_cast<uint64_t>(integer(flags, "rows"));
  const auto servers = static_cast<uint32_t>(integer(flags, "servers"));
  const int64_t times = integer(flags, "times");
  const ps::Placement placed = placement(servers);
  const SaveFolder folder;
  std::vector<BenchProcess<Saved>> savers;
  for (uint32_t i = 0; i < servers; ++i)
    savers.emplace_back([&] { return save_rows(placed, i, rows, folder.path()); });
  double saved = 0;
  for (auto& saver : savers) saved += saver.wait().rows;
  std::vector<BenchProcess<Loaded>> loaders;
  for (uint32_t i = 0; i < servers; ++i)
    loaders.emplace_back([&] { return load_rows(placed, i, folder.path(), times); });
  Loaded all;
  double worst = 0;
  for (auto& loader : loaders) {
    const Loaded one = loader.wait();
    all.rows += one.rows;
    all.seconds = std::max(all.seconds, one.seconds);
    all.resident_bytes += one.resident_bytes;
    all.peak_bytes += one.peak_bytes;
    worst = std::max(worst, one.peak_bytes / one.resident_bytes);
  }
  check<DataError>(saved == static_cast<double>(rows) && all.rows == saved, rows,
                   " rows were wanted, ", saved, " saved and ", all.rows, " loaded");
  const double payload = all.rows * (sizeof(Key) + 3 * kDim * sizeof(float));
  return {{"servers", static_cast<double>(servers)},
          {"rows", all.rows},
          {"seconds", all.seconds},
          {"bytes_of_tables", all.resident_bytes},
          {"peak_bytes", all.peak_bytes},
          {"peak_to_tables", worst},
          {"peak_to_payload", all.peak_bytes / payload}};
}

}  // namespace

Bench load() {
  return {.help = "servers that load a save of many rows: the most memory they have meanwhile",
          .flags = {{"rows", "10000000"}, {"servers", "2"}, {"times", "1"}},
          .run = run};
}

}  // namespace argosy::benches
