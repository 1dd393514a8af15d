// The loop over epochs and batches: read, step, tell.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/mutex.h"
#include "argosy/train/trainer.h"

namespace argosy {
namespace {

/// Remembers the best value of a metric and how long ago it was.
class Patience {
 public:
  explicit Patience(const EarlyStop& stop) : stop_(stop) {}
  bool exhausted(const std::vector<Metric>& metrics) {
    const auto found = std::ranges::find(metrics, stop_.metric, &Metric::name);
    check<ConfigError>(found != metrics.end(), "early_stop: the model has no metric '",
                       stop_.metric, "'");
    const double score = stop_.higher_is_better ? found->value : -found->value;
    waited_ = score > best_ ? 0 : waited_ + 1;
    best_ = std::max(best_, score);
    return waited_ >= stop_.patience;
  }

 private:
  EarlyStop stop_;
  double best_ = -INFINITY;
  int waited_ = 0;
};

}  // namespace

/// One epoch, as the trainer's threads share it.
struct Trainer::Epoch {
  Epoch(const FitOptions& options, const Measures& measures)
      : options(options), metrics(measures) {}

  const FitOptions& options;
  std::vector<ProgressObserver*> observers, due;  // due: after the present step
  Env::Time start;
  Mutex mutex;  // locked where several threads compute
  Progress progress GUARDED_BY(mutex);
  MetricTally metrics GUARDED_BY(mutex);
  Next next GUARDED_BY(mutex) = Next::go_on;
  std::exception_ptr failure GUARDED_BY(mutex);
  size_t under_way GUARDED_BY(mutex) = 0;  // batches being read, waiting or being computed
  bool pausing GUARDED_BY(mutex) = false;  // for a checkpoint: no new batch begins
  CondVar changed;

  bool checkpoint_due() const REQUIRES(mutex) {
    return options.checkpoint_every > 0 && progress.step % options.checkpoint_every == 0;
  }
};

void Trainer::after_step(Epoch& epoch, size_t instances) REQUIRES(epoch.mutex) {
  Progress& progress = epoch.progress;
  ++progress.step;
  progress.samples += instances;
  activity_.end_step(progress.epoch, progress.step, instances);
  progress.seconds = std::chrono::duration<double>(env_.now() - epoch.start).count();
  if (epoch.options.after_step) epoch.options.after_step(progress.epoch);
  const bool tell = epoch.options.on_step &&
                    (progress.step - 1) % std::max<uint64_t>(epoch.options.on_step_every, 1) == 0;
  epoch.due.clear();
  for (ProgressObserver* observer : epoch.observers)
    if (observer->due()) epoch.due.push_back(observer);
  if (!tell && epoch.due.empty()) return;
  progress.metrics = epoch.metrics.current();
  for (ProgressObserver* observer : epoch.due) observer->show(progress);
  if (tell && epoch.options.on_step(progress) == Next::stop) epoch.next = Next::stop;
}

void Trainer::checkpoint(const Dataset& data, Epoch& epoch) REQUIRES(epoch.mutex) {
  activity_.begin(Doing::saving);
  communicator_->drain();
  epoch.options.checkpoint({epoch.progress.epoch, data.position()});
}

/// Reads one more batch ahead; false at the end of the data.
bool Trainer::read_one(Dataset& data, Worker& worker) {
  const auto free = std::ranges::find_if(worker.slots, [&](const auto& slot) {
    return std::ranges::find(worker.read, slot.get()) == worker.read.end();
  });
  Slot& slot = **free;
  activity_.begin(Doing::reading);
  const Env::Time asked = env_.now();
  const bool more = data.next(slot.batch);
  const Env::Duration read = env_.now() - asked;
  worker.reading += std::chrono::duration<double>(read).count();
  counts_.reading.add(read);
  if (!more) return false;
  slot.lane->prepare(slot.batch);
  worker.read.push_back(&slot);
  return true;
}

/// The loop of the only thread, or of the one that shares out chunks: it locks nothing.
void Trainer::run_alone(Dataset& data, Worker& worker, Epoch& epoch)
    ARGOSY_THREAD_ANNOTATION(no_thread_safety_analysis) {
  const uint64_t every = epoch.options.checkpoint_every;
  uint64_t batches = epoch.progress.step;
  while (epoch.next == Next::go_on) {
    // Nothing is read beyond a checkpoint that is to come.
    while (worker.read.size() < worker.slots.size() &&
           (worker.read.empty() || every == 0 || batches % every != 0) && read_one(data, worker))
      ++batches;
    if (worker.read.empty()) return;
    Slot& slot = *worker.read.front();
    step_whole(slot.batch, *slot.lane, epoch.metrics);
    worker.read.pop_front();
    epoch.progress.reading += std::exchange(worker.reading, 0);
    after_step(epoch, slot.batch.size);
    if (epoch.checkpoint_due()) checkpoint(data, epoch);
  }
}

void Trainer::end_batch(Worker& worker, Epoch& epoch) REQUIRES(epoch.mutex) {
  const Batch& batch = worker.read.front()->batch;
  worker.read.pop_front();
  --epoch.under_way;
  epoch.changed.notify_all();
  epoch.progress.reading += std::exchange(worker.reading, 0);
  epoch.metrics.add(batch.size,
                    [&](VarId id) -> const Tensor& { return worker.executor.value(id); });
  after_step(epoch, batch.size);
}

/// The loop of one of several threads, each with batches of its own.
void Trainer::run_worker(Dataset& data, Worker& worker, Epoch& epoch) try {
  bool more = true, saves = false;  // saves: this thread makes the checkpoint that is due
  const Lock lock(epoch.mutex);
  while (epoch.next == Next::go_on && !epoch.failure) {
    while (more && !epoch.pausing && worker.read.size() < worker.slots.size()) {
      ++epoch.under_way;
      {
        const Unlocked unlocked(epoch.mutex);
        more = read_one(data, worker);
      }
      if (!more) --epoch.under_way;
    }
    if (!worker.read.empty()) {
      {
        const Unlocked unlocked(epoch.mutex);
        Slot& slot = *worker.read.front();
        run_step(slot.batch, *slot.lane, [&] { compute(slot.batch, *slot.lane, worker); });
      }
      end_batch(worker, epoch);
      if (epoch.checkpoint_due() && !epoch.pausing) epoch.pausing = saves = true;
    }
    if (!worker.read.empty()) continue;
    epoch.changed.notify_all();
    if (saves) {
      const auto quiet = [&]() REQUIRES(epoch.mutex) {
        return epoch.under_way == 0 || epoch.failure;
      };
      epoch.changed.wait(epoch.mutex, quiet);
      if (!epoch.failure) checkpoint(data, epoch);
      epoch.pausing = saves = false;
      epoch.changed.notify_all();
    }
    if (!more) break;
    const auto may_go_on = [&]() REQUIRES(epoch.mutex) { return !epoch.pausing || epoch.failure; };
    epoch.changed.wait(epoch.mutex, may_go_on);
  }
  const Unlocked unlocked(epoch.mutex);
  communicator_->pass(Pass::thread_done);
} catch (...) {
  {
    const Lock lock(epoch.mutex);
    // The batch of this thread stays under way: no checkpoint may follow that counts it as done.
    if (!epoch.failure) epoch.failure = std::current_exception();
    epoch.pausing = false;
    epoch.changed.notify_all();
  }
  try {
    communicator_->pass(Pass::thread_done);  // nobody waits for this thread
  } catch (const std::exception&) {
    return;  // the first failure is the one to report
  }
}

void Trainer::run_pass(Dataset& data, Epoch& epoch) {
  end_steps();
  for (const auto& worker : workers_) {
    worker->read.clear();
    worker->reading = 0;
  }
  begin_pass();
  if (active_ == 1) {
    run_alone(data, *workers_[0], epoch);
    communicator_->pass(Pass::thread_done);
  } else {
    std::vector<std::jthread> threads;
    threads.reserve(active_);
    for (size_t i = 0; i < active_; ++i)
      threads.emplace_back([&, worker = workers_[i].get()] { run_worker(data, *worker, epoch); });
    threads.clear();
    const Lock lock(epoch.mutex);
    if (epoch.failure) std::rethrow_exception(epoch.failure);
  }
  activity_.begin(Doing::sending);
  communicator_->drain();
  communicator_->pass(Pass::end);
}

/// Looks at an epoch before and after its threads: nothing is locked here.
Progress Trainer::fit(Dataset& data, const FitOptions& options)
    ARGOSY_THREAD_ANNOTATION(no_thread_safety_analysis) {
  check<ConfigError>(options.epochs > 0, "epochs must be positive, got ", options.epochs);
  check<ConfigError>(!options.early_stop || options.test != nullptr, "early_stop needs a test set");
  std::optional<ProgressLine> line;
  std::vector<ProgressObserver*> observers = options.observers;
  if (options_.observer != nullptr) observers.push_back(options_.observer.get());
  if (options.show != nullptr) observers.push_back(&line.emplace(env_, options.show));
  std::optional<Patience> patience;
  if (options.early_stop) patience.emplace(*options.early_stop);

  const ResumePoint resume = options.resume.value_or(ResumePoint{});
  Progress last;
  for (int number = resume.epoch; number <= options.epochs; ++number) {
    Epoch epoch(options, recorded_->measures);
    epoch.observers = observers;
    epoch.due.reserve(observers.size());
    Progress& progress = epoch.progress;
    progress.epoch = number;
    progress.epochs = options.epochs;
    const DataPosition from = number == resume.epoch ? resume.data : DataPosition{};
    progress.step = progress.resumed_at = from.batches;
    activity_.begin(Doing::reading);
    data.begin_epoch(options_.seed + static_cast<uint64_t>(number), from);
    progress.steps = data.batches();
    epoch.start = env_.now();
    do {
      const uint64_t before =
          (static_cast<uint64_t>(number) - 1) * data.most_passes() + data.pass();
      passes_ = std::max(passes_, before);
      communicator_->skip_passes(before);
      run_pass(data, epoch);
      if (data.most_passes() > 1) activity_.begin(Doing::meeting);
    } while (epoch.next == Next::go_on && data.begin_next_pass());
    if (options.join) {
      activity_.begin(Doing::meeting);
      options.join(epoch.metrics);
      progress.samples = epoch.metrics.instances();
    }
    // Of a worker whose files others have taken there may be none.
    check<DataError>(progress.step > 0 || epoch.metrics.instances() > 0, "epoch ", number,
                     " had no batch: the data set is empty");
    progress.metrics = epoch.metrics.totals();
    const std::vector<Metric> test =
        options.test != nullptr ? evaluate(*options.test) : std::vector<Metric>{};
    if (line) {
      std::string note;
      for (const Metric& metric : test)
        note += fmt::format("  test {} {:.4f}", metric.name, metric.value);
      line->finish_epoch(progress, note);
      for (const std::string& text : data.notes()) fmt::print(options.show, "{}\n", text);
      for (const std::string& text : communicator_->notes()) fmt::print(options.show, "{}\n", text);
    }
    Next next = epoch.next;
    if (options.on_epoch && options.on_epoch(progress, test) == Next::stop) next = Next::stop;
    if (patience && patience->exhausted(test)) next = Next::stop;
    last = std::move(progress);
    if (next == Next::stop) break;
  }
  return last;
}

}  // namespace argosy
