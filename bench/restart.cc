// A server that is killed and started again from its journal of many rows (9 weights with Adam's
// state): how long until it could answer, and what of that is reading, checking and putting.
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/log/reader.h"
#include "argosy/ps/journal.h"
#include "argosy/world/env.h"
#include "bench/bench.h"
#include "bench/processes.h"

namespace argosy::benches {
namespace {

constexpr size_t kDim = 9, kBatch = size_t{1} << 16;

ps::Placement placement() {
  ps::TableSpec spec{.name = "rows", .dim = kDim, .rule = "adam", .init = "uniform(-0.01, 0.01)"};
  return ps::place({}, {spec}, {0}, 1);
}

/// A folder for the journal, removed with it.
class JournalFolder {
 public:
  JournalFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "argosy_restart_XXXXXX").string();
    check<IoError>(::mkdtemp(name.data()) != nullptr, "cannot make a folder like ", name);
    path_ = name;
  }
  ~JournalFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  JournalFolder(const JournalFolder&) = delete;
  JournalFolder& operator=(const JournalFolder&) = delete;
  const std::string& path() const { return path_; }
  double bytes() const {
    double all = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      all += static_cast<double>(entry.file_size());
    return all;
  }

 private:
  std::string path_;
};

struct Done {
  double rows = 0;
};

/// A journal as a server of these rows leaves it.
Done write_journal(const std::string& folder, uint64_t rows) {
  const auto env = real_env();
  ps::Shard shard(placement(), 0, 1);
  ps::Journal journal(*env, shard, {.folder = folder}, "bench");
  const std::vector<float> grads(kBatch * kDim, 0.5F);
  std::vector<Key> keys;
  for (uint64_t row = 0; row < rows;) {
    keys.clear();
    for (; keys.size() < kBatch && row < rows; ++row) keys.push_back(mix(row + 1));
    ps::Ticket ticket;
    shard.table(0).locate(keys, {}, shard.part(0), ticket);
    ps::apply_located(shard.table(0), ticket, std::span(grads).first(keys.size() * kDim), 1);
    shard.changes()->rows_changed(0, 0, ticket);
    journal.collect({.mark = {.step = row, .applied = {row}, .trained = {}}});
    journal.write();
  }
  return {static_cast<double>(shard.rows())};
}

struct Restarted {
  double rows = 0, seconds = 0, cpu_seconds = 0;  // of all its threads
};
Restarted restart(const std::string& folder) {
  const double start = seconds_now();
  const auto env = real_env();
  ps::Shard shard(placement(), 0, 1);
  const ps::Journal journal(*env, shard, {.folder = folder, .recover = true}, "bench");
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {.rows = static_cast<double>(shard.rows()),
          .seconds = seconds_now() - start,
          .cpu_seconds = seconds(used.ru_utime) + seconds(used.ru_stime)};
}

/// The files, as they are; then with all that makes a record count.
struct Read {
  double files = 0, records = 0;
};
Read read(const std::string& folder, const std::string& identity) {
  const auto env = real_env();
  double start = seconds_now();
  std::vector<std::byte> block(size_t{4} << 20);
  for (const std::string& name : env->list_files(folder)) {
    const auto file = env->open_file(folder + "/" + name);
    for (uint64_t at = 0; at < file->size(); at += block.size())
      file->read_at(at,
                    std::span(block).first(std::min<uint64_t>(block.size(), file->size() - at)));
  }
  Read all{.files = seconds_now() - start};
  start = seconds_now();
  read_log(*env, folder, identity, [](LogRecord&) {});
  all.records = seconds_now() - start;
  return all;
}

BenchResults run(const BenchFlags& flags) {
  const auto rows = static_cast<uint64_t>(integer(flags, "rows"));
  const JournalFolder folder;
  BenchProcess<Done> writer([&] { return write_journal(folder.path(), rows); });
  const double written = writer.wait().rows;
  std::vector<double> seconds, cpu_seconds;
  for (int64_t i = 0; i < integer(flags, "times"); ++i) {
    BenchProcess<Restarted> server([&] { return restart(folder.path()); });
    const Restarted one = server.wait();
    check<DataError>(one.rows == written, one.rows, " rows came back of ", written);
    seconds.push_back(one.seconds);
    cpu_seconds.push_back(one.cpu_seconds);
  }
  ps::Shard shard(placement(), 0, 1);
  const std::string identity = ps::journal_identity(shard, "bench");
  BenchProcess<Read> reader([&] { return read(folder.path(), identity); });
  const Read parts = reader.wait();
  return {{"rows", written},
          {"journal_bytes", folder.bytes()},
          {"seconds", median(seconds)},
          {"cpu_seconds", median(cpu_seconds)},
          {"read_seconds", parts.files},
          {"check_seconds", parts.records - parts.files},
          {"rest_seconds", median(seconds) - parts.records}};
}

}  // namespace

Bench restart() {
  return {.help = "a server that comes back from its journal: how long until it could answer",
          .flags = {{"rows", "10000000"}, {"times", "3"}},
          .run = run};
}

}  // namespace argosy::benches
