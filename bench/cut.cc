// Cuts of a server with many rows (9 weights with Adam's state) while a worker trains on zipf keys,
// at so many exchanges a second (60: 30,000 examples in batches of 512): how much longer exchanges
// take, what a cut adds on the disk, and what it takes of the processor.
// Server and worker are in this process, over loopback.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/modes/server_calls.h"
#include "argosy/ps/server.h"
#include "argosy/world/env.h"
#include "bench/bench.h"

namespace argosy::benches {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDim = 9, kBatch = 6220, kDense = size_t{300} << 10;
constexpr double kRowBytes = sizeof(Key) + 3 * kDim * sizeof(float);

ps::Placement placement() {
  ps::ParameterSpec dense{.name = "w", .elements = kDense, .rule = "adam"};
  ps::TableSpec spec{.name = "rows", .dim = kDim, .rule = "adam", .init = "uniform(-0.01, 0.01)"};
  return ps::place({dense}, {spec}, {0}, 1);
}

double process_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Pushes the gradients of one batch and pulls the rows of the next, one after the other.
class TrainingWorker {
 public:
  TrainingWorker(ps::Client& client, uint64_t rows, double per_second)
      : client_(client), rows_(rows), period_(1 / per_second), next_(seconds_now()) {}

  /// Seconds that it took, once it was time for it.
  double exchange() {
    auto next = std::make_shared<ps::Exchange>();
    if (lists_ != nullptr) {
      grads_.resize(kBatch * kDim, 0.01F);
      next->pushes.push_back({lists_, {grads_}});
      next->dense.emplace_back(dense_grads_);
      next->ends_step = true;
    }
    const std::vector<std::vector<Key>> sets = {keys()};
    next->lists = std::make_shared<ps::KeyLists>(client_.placement(), sets);
    values_.resize(kBatch * kDim);
    next->rows.emplace_back(values_);
    next->parameters.emplace_back(dense_);
    lists_ = next->lists;
    next_ = std::max(next_ + period_, seconds_now() - period_);
    if (const double early = next_ - seconds_now(); early > 0)
      std::this_thread::sleep_for(std::chrono::duration<double>(early));
    const double start = seconds_now();
    begin(client_, std::move(next))->wait();
    return seconds_now() - start;
  }
  double changed() const { return static_cast<double>(changed_); }
  void forget_changes() {
    seen_.assign(rows_, false);
    changed_ = 0;
  }

 private:
  std::vector<Key> keys() {
    std::vector<Key> keys;
    taken_.resize(rows_);
    while (keys.size() < kBatch) {
      const double at = std::pow(static_cast<double>(rows_), random_.uniform(draws_++));
      const auto row = std::min(static_cast<uint64_t>(at), rows_ - 1);
      if (taken_[row]) continue;
      taken_[row] = true;
      if (!seen_.empty() && !seen_[row]) {
        seen_[row] = true;
        ++changed_;
      }
      keys.push_back(row);
    }
    for (const Key key : keys) taken_[key] = false;
    return keys;
  }

  ps::Client& client_;
  const uint64_t rows_;
  const double period_;
  double next_;  // when the next one is due
  RandomStream random_{7};
  uint64_t draws_ = 0, changed_ = 0;
  std::vector<bool> taken_, seen_;
  std::shared_ptr<ps::KeyLists> lists_;
  std::vector<float> grads_, values_, dense_ = std::vector<float>(kDense),
                                      dense_grads_ = std::vector<float>(kDense, 0.01F);
};

struct Cut {
  ps::verbs::Cut::Result result;
  double seconds = 0;      // from the question to the answer
  double longest = 0;      // exchange meanwhile
  double cpu_seconds = 0;  // of everything, the worker's too
};

class CutBench {
 public:
  explicit CutBench(uint64_t rows)
      : folder_(fs::temp_directory_path() / ("argosy-bench-cut-" + std::to_string(::getpid()))),
        env_(real_env()),
        server_(ps::Server::make(
            *env_, placement(),
            {.threads = 1, .journal = ps::JournalOptions{.folder = folder_ / "journal"}})),
        at_(tcp_transport()),
        to_(tcp_transport()) {
    fill(rows);
    client_ = ps::Client::make(*env_, *to_, placement(),
                               {.servers = {at_->listen({"127.0.0.1", 0}, server_->acceptor())}});
  }
  ~CutBench() {
    client_->close();
    to_.reset();
    at_.reset();
    server_.reset();
    fs::remove_all(folder_);
  }
  CutBench(const CutBench&) = delete;
  CutBench& operator=(const CutBench&) = delete;

  ps::Client& client() { return *client_; }

  /// A cut while the worker trains, or while nothing happens.
  Cut cut(TrainingWorker* worker) {
    Cut cut;
    const std::string to = folder_ / ("cut-" + std::to_string(++cuts_));
    const double start = seconds_now(), before = process_seconds();
    double longest = 0;
    const auto await = [&](const std::function<void()>& answers) {
      std::atomic<bool> answered = false;
      std::jthread waiting([&] {
        answers();
        answered = true;
      });
      while (worker != nullptr && !answered) longest = std::max(longest, worker->exchange());
    };
    const auto prepared = begin_each(*client_, {ps::request_of(ps::verbs::PrepareCut{})});
    await([&] { prepared(); });
    auto answers = begin_each(
        *client_,
        {ps::request_of(ps::verbs::Cut{.folder = to, .behind = client_->last_exchange()})});
    await([&] {
      cut.result = ps::answer_of<ps::verbs::Cut>(answers().front());
      cut.seconds = seconds_now() - start;
    });
    cut.longest = longest;
    cut.cpu_seconds = process_seconds() - before;
    return cut;
  }

 private:
  void fill(uint64_t rows) {
    server_->alone([&] {
      ps::RowTable& table = server_->shard().table(0);
      std::vector<Key> keys;
      for (Key key = 0; key < rows;) {
        keys.clear();
        for (; key < rows && keys.size() < kBatch; ++key) keys.push_back(key);
        table.assign(keys, std::vector<float>(keys.size() * kDim, 0.5F));
      }
      server_->shard().changes()->replaced(0);
    });
  }

  fs::path folder_;
  const std::unique_ptr<Env> env_;
  std::shared_ptr<ps::Server> server_;
  std::unique_ptr<Transport> at_, to_;
  std::shared_ptr<ps::Client> client_;
  int cuts_ = 0;
};

BenchResults run(const BenchFlags& flags) {
  const auto rows = static_cast<uint64_t>(integer(flags, "rows", kBatch * 4));
  const int64_t rounds = integer(flags, "rounds"), seconds = integer(flags, "seconds");
  CutBench bench(rows);
  TrainingWorker worker(bench.client(), rows, static_cast<double>(integer(flags, "rate")));
  const auto train = [&] {
    std::vector<double> times;
    for (const double end = seconds_now() + static_cast<double>(seconds); seconds_now() < end;)
      times.push_back(worker.exchange());
    return times;
  };
  train();
  const Cut first = bench.cut(&worker);
  std::vector<double> usual, longest_without, longest, took, added, ratio, idle;
  for (int64_t round = 0; round < rounds; ++round) {
    worker.forget_changes();
    const std::vector<double> times = train();
    usual.push_back(median(times));
    longest_without.push_back(std::ranges::max(times));
    const Cut cut = bench.cut(&worker);
    longest.push_back(cut.longest);
    took.push_back(cut.seconds);
    added.push_back(static_cast<double>(cut.result.added));
    ratio.push_back(static_cast<double>(cut.result.added) /
                    (worker.changed() * kRowBytes + 3 * kDense * sizeof(float)));
    std::this_thread::sleep_for(std::chrono::seconds(1));
    bench.cut(nullptr);  // what is left
    idle.push_back(bench.cut(nullptr).cpu_seconds);
  }
  constexpr double kMilli = 1e3, kMega = 1e6;
  return {{"rows", static_cast<double>(rows)},
          {"first_cut_s", first.seconds},
          {"exchange_ms", median(usual) * kMilli},
          {"longest_exchange_without_cut_ms", std::ranges::max(longest_without) * kMilli},
          {"longest_exchange_in_cut_ms", std::ranges::max(longest) * kMilli},
          {"cut_s", median(took)},
          {"cut_added_mb", median(added) / kMega},
          {"cut_added_per_changed_byte", median(ratio)},
          {"whole_mb", static_cast<double>(rows) * kRowBytes / kMega},
          {"idle_cut_cpu_s", median(idle)}};
}

}  // namespace

Bench cut() {
  return {.help = "cuts of a server while a worker trains: pauses, bytes, processor",
          .flags = {{"rows", "1000000"}, {"rounds", "5"}, {"seconds", "20"}, {"rate", "60"}},
          .run = run};
}

}  // namespace argosy::benches
