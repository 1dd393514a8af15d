// One table of a server, fed from memory without sockets: exchanges that push the gradients of one
// batch of zipf keys and pull the rows of the next, by one thread and by several. Also by the time
// of the processor, which other programs on the machine change less: what several threads could do
// if each had a core.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <unordered_set>

#include "argosy/base/mutex.h"
#include "argosy/base/rng.h"
#include "argosy/ps/exchange_job.h"
#include "bench/bench.h"

namespace argosy::benches {
namespace {

constexpr size_t kDim = 9, kUnique = 6220, kBatches = 64, kUnderWay = 4;

ps::Placement placement() {
  ps::TableSpec spec{.name = "rows",
                     .dim = kDim,
                     .rule = "adam",
                     .init = "uniform(-0.01, 0.01)",
                     .learning_rate = "0.001"};
  return ps::place({}, {spec}, {0}, 1);
}

std::vector<Key> zipf_keys(uint64_t rows, uint64_t seed) {
  const RandomStream random(seed);
  std::vector<Key> keys;
  std::unordered_set<Key> seen;
  for (uint64_t i = 0; keys.size() < kUnique; ++i) {
    const auto rank = static_cast<uint64_t>(std::pow(static_cast<double>(rows), random.uniform(i)));
    const Key key = mix(RandomStream(rank).below(0, rows) + 1);
    if (seen.insert(key).second) keys.push_back(key);
  }
  return keys;
}

double cpu_seconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// The shard of a server, and exchanges of one worker as frames.
class FedShard {
 public:
  FedShard(size_t threads, uint64_t rows)
      : shard_(placement(), 0, threads), lanes_(threads, ps::Lanes::Threads::one_per_part) {
    for (size_t i = 0; i < kBatches; ++i) frames_.push_back(make_frame(zipf_keys(rows, i)));
  }
  ~FedShard() { wait_for(0); }
  FedShard(const FedShard&) = delete;
  FedShard& operator=(const FedShard&) = delete;

  struct Speed {
    double rows_per_second;  // that were pushed and pulled
    double cpu_seconds;      // of the threads that work on rows
    double feeder_seconds;   // of the one that feeds them
  };
  Speed run(size_t exchanges) {
    const double start = seconds_now();
    const double feeder = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    const double all = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (size_t i = 0; i < exchanges; ++i) send();
    wait_for(0);
    const double seconds = seconds_now() - start;
    const double fed = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - feeder;
    return {static_cast<double>(exchanges * kUnique) / seconds,
            cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - all - fed, fed};
  }

 private:
  /// Pulls the keys, and pushes the list of the exchange before, which has as many.
  static std::shared_ptr<Buffer> make_frame(const std::vector<Key>& keys) {
    ByteBuffer out;
    out.put(ps::ExchangeHead{.sequence = 0, .flags = ps::ExchangeHead::kPullRows, .lists = 1});
    out.put(uint64_t{0});  // the list
    out.put(uint64_t{kUnique});
    out.put(uint64_t{kUnique});
    out.put_all(std::span<const Key>(keys));
    const std::vector<float> grads(kUnique * kDim, 0.01F);
    out.put_all(std::span<const float>(grads));
    auto buffer = std::make_shared<Buffer>();
    buffer->resize(out.bytes().size());
    std::ranges::copy(out.bytes(), buffer->bytes().begin());
    return buffer;
  }

  void send() {
    wait_for(kUnderWay - 1);
    const uint64_t sequence = ++sent_;
    const auto& frame = frames_[sequence % frames_.size()];
    ps::ExchangeHead head{.sequence = sequence, .flags = ps::ExchangeHead::kPullRows, .lists = 1};
    const uint64_t list = sequence - 1;
    std::memcpy(frame->bytes().data(), &head, sizeof head);
    std::memcpy(frame->bytes().data() + sizeof head, &list, sizeof list);
    const auto exchange = take_exchange(shard_, {FrameKind::exchange, sequence, frame});
    exchange->lists = lists_;
    if (sequence == 1) {  // nothing was pulled yet
      exchange->view.lists.clear();
    } else {
      check_lists(shard_, *exchange);
    }
    {
      const Lock lock(mutex_);
      ++under_way_;
    }
    auto job =
        std::make_shared<ps::ExchangeJob>(shard_, buffers_, memory_, std::vector{exchange},
                                          sequence, [this](ps::ExchangeJob&, const std::string&) {
                                            const Lock lock(mutex_);
                                            --under_way_;
                                            changed_.notify_one();
                                          });
    lanes_.post(0, job, job->size());
  }

  void wait_for(size_t at_most) {
    const Lock lock(mutex_);
    changed_.wait(mutex_, [&]() REQUIRES(mutex_) { return under_way_ <= at_most; });
  }

  ps::Shard shard_;
  BufferPool buffers_;
  ps::StepMemory memory_;
  std::shared_ptr<ps::KeptLists> lists_ = std::make_shared<ps::KeptLists>(kBatches);
  std::vector<std::shared_ptr<Buffer>> frames_;
  uint64_t sent_ = 0;
  Mutex mutex_;
  CondVar changed_;
  size_t under_way_ GUARDED_BY(mutex_) = 0;
  ps::Lanes lanes_;
};

BenchResults run(const BenchFlags& flags) {
  const auto threads = static_cast<size_t>(integer(flags, "threads"));
  const auto rows = static_cast<uint64_t>(integer(flags, "rows"));
  const auto exchanges = static_cast<size_t>(integer(flags, "exchanges"));
  FedShard one(1, rows), several(threads, rows);
  std::vector<double> alone, together, ratios, cpu_alone, cpu_together, fed, cpu_ratios;
  for (FedShard* shard : {&one, &several}) shard->run(2 * kBatches);  // makes the rows
  for (int64_t round = 0; round < integer(flags, "rounds"); ++round) {
    FedShard::Speed first{}, second{};
    for (int64_t turn = round; turn < round + 2; ++turn)  // in turns, who comes first
      (turn % 2 == 0 ? first : second) = (turn % 2 == 0 ? one : several).run(exchanges);
    alone.push_back(first.rows_per_second);
    together.push_back(second.rows_per_second);
    ratios.push_back(second.rows_per_second / first.rows_per_second);
    cpu_alone.push_back(first.cpu_seconds);
    cpu_together.push_back(second.cpu_seconds);
    fed.push_back(second.feeder_seconds);
    cpu_ratios.push_back(static_cast<double>(threads) * first.cpu_seconds /
                         (second.cpu_seconds + second.feeder_seconds));
  }
  return {{"threads", static_cast<double>(threads)},
          {"rows_per_second_of_one", median(alone)},
          {"rows_per_second", median(together)},
          {"ratio_to_one", median(ratios)},
          {"best_ratio_to_one", *std::ranges::max_element(ratios)},
          {"cpu_seconds_of_one", median(cpu_alone)},
          {"cpu_seconds", median(cpu_together)},
          {"feeder_cpu_seconds", median(fed)},
          {"ratio_by_cpu", median(cpu_ratios)}};
}

}  // namespace

Bench shard() {
  return {.help = "one table of a server, fed from memory, by one thread and by several",
          .flags = {{"threads", "2"}, {"rows", "1000000"}, {"exchanges", "200"}, {"rounds", "11"}},
          .run = run};
}

}  // namespace argosy::benches
