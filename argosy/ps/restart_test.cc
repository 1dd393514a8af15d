// Jobs on a simulated network whose workers and servers crash at any moment, by seed, and are
// started again: everybody goes through the milestones in order, and nobody hangs.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"
#include "argosy/net/simulation.h"
#include "argosy/ps/client.h"
#include "argosy/ps/server.h"
#include "argosy/ps/test_exchanges.h"

namespace argosy::ps {
namespace {

using namespace std::chrono_literals;

constexpr int kEpochs = 3;
constexpr Key kShared = 1000;  // pushed by everyone

uint64_t trained(int epoch) { return static_cast<uint64_t>(2 * epoch + 2); }
uint64_t saved(int epoch) { return trained(epoch) + 1; }

struct JobSpec {
  uint32_t servers = 2, workers = 3;
  bool sync = false;
  bool journal = false;  // servers come back with all they had
};

/// What the workers of a job have done so far.
struct Record {
  int saved = 0;                     // the last epoch
  std::vector<int> trained;          // the last epoch, by worker
  std::vector<int> sent, confirmed;  // pushes, by worker
  std::vector<bool> crashed;         // ever, by worker
  bool forgotten = false;            // what milestone 2 gave, with the server that had it
  std::string trouble;

  void expect(bool holds, const std::string& what) {
    if (!holds) trouble += what + "\n";
  }
};

/// A process of a worker: milestones, epochs of steps, the first worker's saves, the end.
class JobWorker {
 public:
  JobWorker(Simulation& simulation, const Placement& placement, uint32_t number,
            const JobSpec& spec, uint32_t restarts, Record& record)
      : number_(number), spec_(spec), record_(record), host_("worker" + std::to_string(number)) {
    ClientOptions options{
        .servers = {}, .worker = number, .workers = spec.workers, .restarts = restarts};
    if (spec.journal) options.away = 10min;
    for (uint32_t s = 0; s < spec.servers; ++s)
      options.servers.push_back({"server" + std::to_string(s), 1});
    client_ = Client::make(simulation.host_env(host_), simulation.host(host_), placement,
                           std::move(options));
    if (restarts == 0) {
      write_script(0);
      return;
    }
    client_->ask(0, request_of(verbs::Standing{}),
                 [this](std::exception_ptr error, const auto& result) {
                   if (failed(error)) return;
                   write_script(answer_of<verbs::Standing>(result).milestone);
                 });
  }

  bool finished() const { return done_ || crashed_ || !error_.empty(); }
  bool crashed() const { return crashed_; }
  const std::string& host() const { return host_; }
  const std::string& error() const { return error_; }
  void crash() {
    crashed_ = record_.crashed[number_] = true;
    client_.reset();
  }

 private:
  using Task = std::function<void()>;

  void write_script(uint64_t standing) {
    const auto add_milestone = [&](uint64_t milestone, const std::string& text = "") {
      if (milestone <= standing) return;
      script_.emplace_back([this, milestone, text] { come_to(milestone, text); });
    };
    add_milestone(1);
    if (standing <= 2) script_.emplace_back([this] { come_to(2, number_ == 0 ? "begin" : ""); });
    add_milestone(3);
    for (int epoch = 1; epoch <= kEpochs; ++epoch) {
      if (trained(epoch) > standing) {
        script_.emplace_back([this, epoch] { begin_epoch(epoch); });
        if (spec_.sync) on_all(request_of(verbs::Join{static_cast<uint64_t>(epoch)}));
        script_.emplace_back([this] { step(nullptr); });
        if (spec_.sync) on_all(request_of(verbs::Pause{static_cast<uint64_t>(epoch)}));
        script_.emplace_back([this, epoch] { end_epoch(epoch); });
        add_milestone(trained(epoch), "metrics");
      }
      if (number_ == 0 && saved(epoch) > standing) {
        on_all(request_of(verbs::Mark{}));  // stands for a save
        script_.emplace_back([this, epoch] { save(epoch); });
      }
      add_milestone(saved(epoch));
    }
    on_all(request_of(verbs::Leave{}));
    go_on();
  }

  void go_on() {
    if (script_.empty()) {
      done_ = true;
      return client_->close();
    }
    const Task task = std::move(script_.front());
    script_.pop_front();
    task();
  }
  bool failed(const std::exception_ptr& error) {
    if (error == nullptr) return false;
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      error_ = e.what();
    }
    return true;
  }
  void on_all(const Request& request) {
    script_.emplace_back([this, request] {
      missing_ = spec_.servers;
      for (uint32_t server = 0; server < spec_.servers; ++server)
        client_->ask(server, request, [this](std::exception_ptr error, const auto&) {
          if (!failed(error) && --missing_ == 0) go_on();
        });
    });
  }
  void come_to(uint64_t milestone, const std::string& text) {
    client_->ask(0, request_of(verbs::Milestone{milestone, "a place", bytes_of_text(text)}),
                 [this, milestone](std::exception_ptr error, const auto& result) {
                   if (failed(error)) return;
                   if (milestone == 2)
                     record_.expect(
                         record_.forgotten || text_of(result).find("begin") != std::string::npos,
                         host_ + " does not know where to begin");
                   go_on();
                 });
  }

  void begin_epoch(int epoch) {
    record_.expect(record_.saved >= epoch - 1, host_ + " begins epoch " + std::to_string(epoch) +
                                                   " before the last one is saved");
    steps_ = 6 + 3 * static_cast<int>(number_);  // some are done before others
    go_on();
  }
  void end_epoch(int epoch) {
    record_.trained[number_] = epoch;
    go_on();
  }
  void save(int epoch) {
    for (uint32_t i = 0; i < spec_.workers; ++i)
      record_.expect(record_.crashed[i] || record_.trained[i] >= epoch,
                     "epoch " + std::to_string(epoch) + " is saved before worker " +
                         std::to_string(i) + " has trained it");
    record_.saved = std::max(record_.saved, epoch);
    go_on();
  }

  /// Pulls, with the push of the step before.
  void step(const std::shared_ptr<KeyLists>& before) {
    auto exchange = std::make_shared<Exchange>();
    if (before != nullptr) {
      exchange->pushes.push_back({before, {ones_}});
      exchange->dense.emplace_back(dense_ones_);
      exchange->ends_step = true;
      ++record_.sent[number_];
      --steps_;
    }
    const bool last = steps_ == 0;
    if (!last) {
      exchange->lists = std::make_shared<KeyLists>(client_->placement(), keys_);
      exchange->rows.emplace_back(rows_);
      exchange->parameters.emplace_back(parameters_);
    }
    exchange->done = [this, lists = exchange->lists, pushed = before != nullptr,
                      last](std::exception_ptr error) {
      if (failed(error)) return;
      if (pushed) ++record_.confirmed[number_];
      if (last) return go_on();
      step(lists);
    };
    client_->exchange(std::move(exchange));
  }

  const uint32_t number_;
  const JobSpec spec_;
  Record& record_;
  const std::string host_;
  std::deque<Task> script_;
  uint32_t missing_ = 0;
  int steps_ = 0;
  bool done_ = false, crashed_ = false;
  std::string error_;
  std::vector<std::vector<Key>> keys_{{number_, kShared}};
  std::vector<float> ones_ = std::vector<float>(2 * kTestDim, 1.0F), rows_ = ones_;
  std::vector<float> dense_ones_ = std::vector<float>(kTestDense, 1.0F), parameters_ = dense_ones_;
  std::shared_ptr<Client> client_;
};

class SimulatedJob {
 public:
  SimulatedJob(uint64_t seed, const JobSpec& spec, const Faults& faults)
      : spec_(spec), simulation_(seed, faults), placement_(adding_placement(spec.servers)) {
    record_.trained.resize(spec.workers);
    record_.crashed.resize(spec.workers);
    record_.sent = record_.confirmed = record_.trained;
    for (uint32_t i = 0; i < spec.servers; ++i) {
      servers_.emplace_back();
      start_server(i);
    }
    for (uint32_t i = 0; i < spec.workers; ++i) {
      workers_.emplace_back();
      start_worker(i);
    }
  }

  void crash_worker(uint32_t number, Env::Duration at, Env::Duration away) {
    simulation_.env().schedule(at, [this, number, away] {
      JobWorker& worker = *workers_[number].back();
      if (worker.finished()) return;
      worker.crash();
      simulation_.crash(worker.host());
      ++coming_;
      simulation_.env().schedule(away, [this, number] {
        --coming_;
        start_worker(number);
      });
    });
  }
  void crash_server(uint32_t number, Env::Duration at, Env::Duration away) {
    simulation_.env().schedule(at, [this, number, away] {
      if (down_.contains(number) || servers_[number]->done()) return;
      down_.insert(number);
      record_.forgotten = record_.forgotten || (number == 0 && !spec_.journal);
      log_ += "crash of server " + std::to_string(number) + "\n";
      simulation_.crash("server" + std::to_string(number), Simulation::Crash::process);
      ++coming_;
      simulation_.env().schedule(away, [this, number] {
        --coming_;
        down_.erase(number);
        start_server(number, true);
      });
    });
  }
  bool run() {
    return simulation_.run_until(
        [&] {
          return coming_ == 0 &&
                 std::ranges::all_of(workers_,
                                     [](const auto& w) { return w.back()->finished(); }) &&
                 std::ranges::all_of(servers_, [](const auto& s) { return s->done(); });
        },
        30min);
  }
  float value(Key key) {
    return peek(servers_[placement_.server_of(key)]->shard().table(0), std::vector<Key>{key})[0];
  }
  const JobWorker& worker(uint32_t number) const { return *workers_[number].back(); }
  const Record& record() const { return record_; }
  const std::string& log() const { return log_; }

 private:
  void start_worker(uint32_t number) {
    auto& processes = workers_[number];
    processes.push_back(std::make_unique<JobWorker>(
        simulation_, placement_, number, spec_, static_cast<uint32_t>(processes.size()), record_));
  }
  void start_server(uint32_t number, bool again = false) {
    const std::string host = "server" + std::to_string(number);
    ServerOptions options{.index = number,
                          .workers = spec_.workers,
                          .sync = spec_.sync,
                          .limits = {.grace = 20s, .away = 10min},
                          .log = [this](const std::string& line) { log_ += line + "\n"; }};
    if (spec_.journal) options.journal = JournalOptions{.folder = host, .recover = again};
    servers_[number] = Server::make(simulation_.host_env(host), placement_, std::move(options));
    simulation_.host(host).listen({host, 1}, servers_[number]->acceptor());
  }

  const JobSpec spec_;
  Record record_;
  Simulation simulation_;
  const Placement placement_;
  std::string log_;
  int coming_ = 0;
  std::set<uint32_t> down_;  // servers
  std::vector<std::shared_ptr<Server>> servers_;
  std::vector<std::vector<std::unique_ptr<JobWorker>>> workers_;  // all processes of each
};

/// Servers and clients that are told what to do one by one.
class Stage {
 public:
  explicit Stage(ServerOptions options, uint32_t servers = 1)
      : options_(std::move(options)), simulation_(1), placement_(adding_placement(servers)) {
    options_.log = [this](const std::string& line) { log_ += line + "\n"; };
    servers_.resize(servers);
    for (uint32_t i = 0; i < servers; ++i) start_server(i);
  }
  void start_server(uint32_t index) {
    const std::string host = "server" + std::to_string(index);
    simulation_.crash(host);
    options_.index = index;
    servers_[index] = Server::make(simulation_.host_env(host), placement_, options_);
    simulation_.host(host).listen({host, 1}, servers_[index]->acceptor());
  }
  /// A process at a host of its own.
  std::shared_ptr<Client> worker(uint32_t number, uint32_t restarts = 0) {
    const std::string host = host_of(number, restarts);
    ClientOptions options{.servers = {},
                          .worker = number,
                          .workers = options_.workers,
                          .restarts = restarts,
                          .log = options_.log};
    for (size_t i = 0; i < servers_.size(); ++i)
      options.servers.push_back({"server" + std::to_string(i), 1});
    return Client::make(simulation_.host_env(host), simulation_.host(host), placement_,
                        std::move(options));
  }
  void crash(uint32_t number, uint32_t restarts = 0) {
    simulation_.crash(host_of(number, restarts));
  }
  template <class V>
  struct Outcome {
    bool there = false, failed = false;
    typename V::Result result;
  };
  template <class V>
  std::shared_ptr<Outcome<V>> ask(Client& client, const V& verb) {
    auto outcome = std::make_shared<Outcome<V>>();
    client.ask(0, request_of(verb),
               [outcome](std::exception_ptr error, const std::vector<std::byte>& answer) {
                 outcome->there = true;
                 outcome->failed = error != nullptr;
                 if (!outcome->failed) outcome->result = answer_of<V>(answer);
               });
    return outcome;
  }
  template <class V>
  typename V::Result call(Client& client, const V& verb) {
    const auto outcome = ask(client, verb);
    EXPECT_TRUE(run_until([&] { return outcome->there; })) << verb.text() << "\n" << log_;
    EXPECT_FALSE(outcome->failed) << verb.text();
    return outcome->result;
  }
  /// Pushes ones for a key.
  bool push(Client& client, Key key) {
    const std::vector<std::vector<Key>> keys{{key}};
    const std::vector<float> ones(kTestDim, 1.0F);
    auto exchange = std::make_shared<Exchange>();
    exchange->pushes.push_back({std::make_shared<KeyLists>(placement_, keys), {ones}});
    bool done = false;
    exchange->done = [&done](const std::exception_ptr& error) { done = error == nullptr; };
    client.exchange(exchange);
    return run_until([&] { return done; });
  }
  float value(Key key) {
    return peek(servers_[placement_.server_of(key)]->shard().table(0), std::vector<Key>{key})[0];
  }
  bool run_until(const std::function<bool()>& done) { return simulation_.run_until(done, 10min); }
  /// Lets time pass.
  void pass(Env::Duration duration) {
    simulation_.run_until([] { return false; }, duration);
  }
  const Placement& placement() const { return placement_; }
  Server& server(size_t index = 0) { return *servers_[index]; }
  const std::string& log() const { return log_; }

 private:
  static std::string host_of(uint32_t number, uint32_t restarts) {
    return "worker" + std::to_string(number) + "." + std::to_string(restarts);
  }
  ServerOptions options_;
  std::string log_;
  Simulation simulation_;
  const Placement placement_;
  std::vector<std::shared_ptr<Server>> servers_;
};

verbs::Milestone at(uint64_t number, const std::string& bytes = "") {
  return {number, "a place", bytes_of_text(bytes)};
}

TEST(Milestone, IsKeptForAWorkerThatComesLate) {
  Stage stage({.workers = 2, .limits = {.away = 1min}});
  const auto first = stage.worker(0), second = stage.worker(1);
  for (const uint64_t milestone : {1, 2}) {
    const auto answer = stage.ask(*first, at(milestone, "mine"));
    EXPECT_EQ(text_of(stage.call(*second, at(milestone, "yours"))), "mineyours");
    ASSERT_TRUE(stage.run_until([&] { return answer->there; }));
    EXPECT_EQ(text_of(answer->result), "mineyours");
  }
  stage.crash(1);
  const auto again = stage.worker(1, 1);
  EXPECT_EQ(stage.call(*again, verbs::Standing{}).milestone, 2U);
  EXPECT_EQ(text_of(stage.call(*again, at(2))), "mineyours");
  EXPECT_TRUE(stage.call(*again, at(1)).parts.empty());  // of nobody
}

TEST(Milestone, WaitsForTheFirstWorkerOnlyAndForAsLongAsItMayBeAway) {
  Stage stage({.workers = 3, .limits = {.grace = 3s, .away = 1min}});
  const auto first = stage.worker(0), second = stage.worker(1), third = stage.worker(2);
  for (const auto& worker : {first, second, third}) stage.call(*worker, verbs::Stats{});
  stage.crash(2);
  const auto both = stage.ask(*first, at(1));
  stage.call(*second, at(1));
  EXPECT_TRUE(has(stage.log(), "worker 2 is taken for dead"));
  stage.crash(0);
  const auto alone = stage.ask(*second, at(2));
  stage.pass(50s);
  EXPECT_TRUE(has(stage.log(), "worker 0 is taken for dead"));
  EXPECT_FALSE(alone->there);
  ASSERT_TRUE(stage.run_until([&] { return alone->there; })) << stage.log();
  EXPECT_TRUE(has(stage.log(), "worker 0 has not come back and is given up"));
}

TEST(Milestone, IsOverWhereSomebodyIsBeyondIt) {
  Stage stage({.workers = 2});
  const auto first = stage.worker(0), second = stage.worker(1);
  const auto later = stage.ask(*first, at(7));
  EXPECT_TRUE(stage.call(*second, at(3)).parts.empty());
  EXPECT_FALSE(later->there);
  stage.call(*second, at(7));
}

TEST(Restart, AServerEndsWhenADeadWorkerHasStayedAway) {
  Stage stage({.workers = 2, .limits = {.grace = 3s, .away = 1min}});
  const auto first = stage.worker(0), second = stage.worker(1);
  stage.call(*second, verbs::Stats{});
  stage.crash(1);
  stage.call(*first, verbs::Leave{});
  stage.pass(55s);
  EXPECT_FALSE(stage.server().done());
  const auto again = stage.worker(1, 1);
  stage.call(*again, verbs::Stats{});
  stage.pass(2min);
  EXPECT_FALSE(stage.server().done());
  stage.crash(1, 1);
  stage.pass(2min);
  EXPECT_TRUE(stage.server().done());
}

/// Two processes of a worker number their calls alike.
TEST(Restart, TheResultOfALostProcessIsNotItsSuccessors) {
  std::vector<std::function<void()>> tasks;
  Stage stage(
      {.workers = 1, .limits = {.away = 1min}, .background = [&](std::function<void()> task) {
         tasks.push_back(std::move(task));
       }});
  const auto first = stage.worker(0);
  stage.ask(*first, verbs::ReadRows{.table = "rows", .from = {}});
  ASSERT_TRUE(stage.run_until([&] { return tasks.size() == 1; }));
  stage.crash(0);
  const auto again = stage.worker(0, 1);
  const auto shrunk = stage.ask(*again, verbs::Shrink{1});
  ASSERT_TRUE(stage.run_until([&] { return tasks.size() == 2; }));
  tasks[0]();
  stage.pass(5s);
  EXPECT_FALSE(shrunk->there);
  tasks[1]();
  ASSERT_TRUE(stage.run_until([&] { return shrunk->there; }));
  EXPECT_EQ(shrunk->result.erased, 0U);
  tasks.clear();  // they hold the server, which must not outlive the stage
}

/// One server has forgotten the worker, another has not: both take all that comes.
TEST(Restart, AWorkerBeginsBehindWhatAnyServerHasOfIt) {
  Stage stage({.workers = 1, .limits = {.away = 1min}}, 2);
  Key at_first = 1, at_second = 1;
  while (stage.placement().server_of(at_first) != 0) ++at_first;
  while (stage.placement().server_of(at_second) != 1) ++at_second;
  const auto before = stage.worker(0);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(stage.push(*before, at_first));
  stage.crash(0);
  stage.start_server(1);
  const auto after = stage.worker(0, 1);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(stage.push(*after, at_first));
    ASSERT_TRUE(stage.push(*after, at_second));
  }
  EXPECT_EQ(stage.value(at_first), 8.0F);
  EXPECT_EQ(stage.value(at_second), 3.0F);
}

TEST(Restart, AProcessThatWasStartedLaterTakesThePlaceOfTheOneBefore) {
  Stage stage({.workers = 1});
  const auto before = stage.worker(0);
  ASSERT_TRUE(stage.push(*before, 1));
  const auto after = stage.worker(0, 1);
  ASSERT_TRUE(stage.push(*after, 1));
  EXPECT_EQ(stage.value(1), 2.0F);
  const auto late = stage.ask(*before, verbs::Stats{});
  ASSERT_TRUE(stage.run_until([&] { return late->there; }));
  EXPECT_TRUE(late->failed);
}

TEST(Restart, AServerThatGoesOnFromASaveSaysWhatEachWorkerHasLost) {
  Stage stage({.workers = 1});
  const auto worker = stage.worker(0);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(stage.push(*worker, 1));
  const ServerMark mark = stage.call(*worker, verbs::Mark{});
  EXPECT_EQ(mark.text(), "4 4 trained 0 0 0");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(stage.push(*worker, 1));
  stage.start_server(0);
  stage.server().goes_on_from(mark, 9);
  ASSERT_TRUE(stage.push(*worker, 1));
  EXPECT_TRUE(has(stage.log(),
                  "server 0: worker 0 had 7 exchanges with a server before this one and goes on: "
                  "the save has 4 of them, 3 are lost; it saw step 7, the save has step 4, 3 steps "
                  "are lost"))
      << stage.log();
  EXPECT_EQ(stage.call(*worker, verbs::Standing{}).milestone, 9U);
}

struct RestartSeeds : testing::TestWithParam<int> {
  static constexpr int kJobs = 20;
  static constexpr Faults kBadNetwork{.drop = 0.01,
                                      .duplicate = 0.02,
                                      .reorder = 0.03,
                                      .truncate = 0.001,
                                      .flip = 0.001,
                                      .cut = 0.002,
                                      .min_delay = 50us,
                                      .max_delay = 20ms};
  static uint64_t seed(int job) { return static_cast<uint64_t>(GetParam() * kJobs + job); }

  /// A moment of the job, which takes about two seconds.
  static Env::Duration moment(const RandomStream& random, uint64_t n) {
    return 1ms * random.below(n, 2500);
  }
  /// Shorter than the grace, or longer.
  static Env::Duration absence(const RandomStream& random, uint64_t n) {
    return random.below(n, 3) == 0 ? Env::Duration(25s) : 1ms * random.below(n, 2000);
  }
  static void expect_right_end(SimulatedJob& job, uint32_t workers) {
    ASSERT_TRUE(job.run()) << job.log();
    EXPECT_EQ(job.record().trouble, "") << job.log();
    EXPECT_EQ(job.record().saved, kEpochs) << job.log();
    for (uint32_t i = 0; i < workers; ++i) EXPECT_EQ(job.worker(i).error(), "") << job.log();
  }
};

TEST_P(RestartSeeds, WorkersThatComeBackTakePartInWhatIsLeft) {
  for (int i = 0; i < kJobs; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed(i)));
    const RandomStream random(seed(i));
    const JobSpec spec{.servers = 1 + static_cast<uint32_t>(random.below(0, 3)),
                       .workers = 1 + static_cast<uint32_t>(random.below(1, 3)),
                       .sync = seed(i) % 2 == 0};
    SimulatedJob job(seed(i), spec, kBadNetwork);
    for (uint64_t crash = 0; crash < 1 + seed(i) % 3; ++crash)
      job.crash_worker(static_cast<uint32_t>(random.below(10 * crash + 2, spec.workers)),
                       moment(random, 10 * crash + 3), absence(random, 10 * crash + 4));
    expect_right_end(job, spec.workers);
    for (uint32_t w = 0; !spec.sync && w < spec.workers; ++w) {
      EXPECT_GE(job.value(w), static_cast<float>(job.record().confirmed[w])) << job.log();
      EXPECT_LE(job.value(w), static_cast<float>(job.record().sent[w])) << job.log();
    }
  }
}

TEST_P(RestartSeeds, ServersThatComeBackHearWhereTheJobStands) {
  for (int i = 0; i < kJobs; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed(i)));
    const RandomStream random(seed(i), 1);
    const JobSpec spec{.servers = 1 + static_cast<uint32_t>(random.below(0, 3)),
                       .workers = 1 + static_cast<uint32_t>(random.below(1, 3)),
                       .sync = seed(i) % 2 == 0};
    SimulatedJob job(seed(i), spec, kBadNetwork);
    job.crash_server(static_cast<uint32_t>(random.below(2, spec.servers)), moment(random, 3),
                     1ms * random.below(4, 5000));
    if (seed(i) % 3 == 0)
      job.crash_worker(static_cast<uint32_t>(random.below(5, spec.workers)), moment(random, 6),
                       absence(random, 7));
    expect_right_end(job, spec.workers);
  }
}

/// Several times, at any moment: pushes are counted once, and meetings that are over stay so.
TEST_P(RestartSeeds, ServersThatComeBackWithTheirJournalsHaveEverything) {
  for (int i = 0; i < kJobs; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed(i)));
    const RandomStream random(seed(i), 2);
    const JobSpec spec{.servers = 1 + static_cast<uint32_t>(random.below(0, 3)),
                       .workers = 1 + static_cast<uint32_t>(random.below(1, 3)),
                       .sync = seed(i) % 2 == 0,
                       .journal = true};
    SimulatedJob job(seed(i), spec, kBadNetwork);
    for (uint64_t crash = 0; crash < 1 + seed(i) % 4; ++crash)
      job.crash_server(static_cast<uint32_t>(random.below(10 * crash + 2, spec.servers)),
                       moment(random, 10 * crash + 3), 1ms * random.below(10 * crash + 4, 5000));
    expect_right_end(job, spec.workers);
    if (testing::Test::HasFailure()) return;
    for (uint32_t w = 0; !spec.sync && w < spec.workers; ++w) {
      EXPECT_EQ(job.value(w), static_cast<float>(job.record().sent[w])) << job.log();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Restart, RestartSeeds, testing::Range(0, 10));

}  // namespace
}  // namespace argosy::ps
