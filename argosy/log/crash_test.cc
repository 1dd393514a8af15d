#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/log/test_log.h"

namespace argosy {
namespace {

using Operation = SimulatedDisk::Operation;
using Failing = SimulatedDisk::Failing;

/// A log on a disk that fails, beside what it must hold: every record that was promised, with its
/// content, and of those above what commit() was called with last, which may be there or not.
class Voyage {
 public:
  explicit Voyage(uint64_t seed)
      : dice_(seed, 0),
        env_(disk_, "host", seed),
        options_{.folder = "log",
                 .identity = "job",
                 .durability = dice_.hit(0.5) ? Durability::fsync : Durability::journal,
                 .segment_bytes = 2000 + dice_.below(20000)} {}

  void run(size_t steps) {
    open();
    for (step_ = 0; step_ < steps && !testing::Test::HasFailure(); ++step_) {
      SCOPED_TRACE("step " + std::to_string(step_));
      step();
    }
    crash();
  }
  size_t crashes() const { return crashes_; }
  size_t replayed() const { return replayed_; }
  size_t refused() const { return refused_; }

 private:
  void step() {
    stopping(0.07, [&] { any_step(); });
  }

  /// The host may stop at any change of the disk. Not a process between a sync that failed and what
  /// it does next: nobody after it can know that the system has lost what can still be read.
  void stopping(double probability, const std::function<void()>& run) {
    if (dice_.hit(probability)) disk_.stop_after(dice_.below(12));
    const uint64_t failed = disk_.failed_syncs();
    try {
      run();
    } catch (const SimulatedDisk::Stopped&) {
      crash(disk_.failed_syncs() == failed ? 0.5 : 1.0);
    }
  }

  void any_step() {
    const uint64_t what = dice_.below(100);
    if (what < 60) return record();
    if (what < 68) return crash();
    if (what < 74) return disk_.set_capacity(disk_.used() + dice_.below(8000));
    if (what < 84) {
      disk_.set_capacity(uint64_t{1} << 40);
      return disk_.heal();
    }
    if (what < 88) return disk_.inject(Operation::sync, any_failing());
    if (what < 91) return disk_.inject(Operation::append, any_failing());
    if (what < 95) return attempt([&] { log_->seal(); });
    remove();
  }

  Failing any_failing() { return dice_.hit(0.7) ? Failing::once : Failing::always; }

  std::string any_text() {
    const uint64_t size = dice_.hit(0.1) ? dice_.below(9000) : dice_.below(60);
    std::string text(size, ' ');
    for (char& c : text) c = static_cast<char>('a' + dice_.below(26));
    return text;
  }

  void record() {
    std::vector<std::string> frames(dice_.below(4));
    for (std::string& frame : frames) frame = any_text();
    std::string whole;
    for (size_t i = 0; i < frames.size(); ++i)
      whole += "[" + std::to_string(i + 1) + ":" + frames[i] + "]";
    const bool abandoned = dice_.hit(0.1), left_open = !abandoned && dice_.hit(0.03);
    attempt([&] {
      log_->begin_record();
      // What a failed sync took back is gone for good once a record has begun.
      forget_above(log_->last_durable());
      uint32_t kind = 0;
      for (const std::string& frame : frames) log_->add_frame(++kind, log_bytes(frame));
      if (abandoned) return log_->abandon();
      if (left_open) return;
      doubtful_.emplace_back(log_->last_durable() + 1, whole);
      const uint64_t number = log_->commit();
      ASSERT_EQ(number, doubtful_.back().first);
      doubtful_.clear();
      promised_.emplace_back(number, whole);
    });
    if (left_open) crash();
  }

  /// Runs it; an IoError may take back what was promised, as last_durable() says.
  void attempt(const std::function<void()>& run) {
    try {
      run();
    } catch (const IoError&) {
      const bool fell = !promised_.empty() && promised_.back().first > log_->last_durable();
      if (options_.durability == Durability::fsync) {
        ASSERT_FALSE(fell) << "what was synced is promised for ever";
      }
      while (!promised_.empty() && promised_.back().first > log_->last_durable()) {
        doubtful_.insert(doubtful_.begin(), promised_.back());
        promised_.pop_back();
      }
    }
  }

  void forget_above(uint64_t record) {
    std::erase_if(doubtful_, [&](const auto& one) { return one.first > record; });
  }

  void remove() {
    const auto segments = log_->segments();
    if (segments.size() < 2) return;
    const LogSegment gone = segments[dice_.below(segments.size() - 1)];
    const auto within = [&](const auto& record) {
      return record.first >= gone.first_record && record.first <= gone.last_record;
    };
    // Until it has returned the log may say so or not.
    for (const auto& record : promised_)
      if (within(record)) maybe_removed_.push_back(record);
    attempt([&] {
      log_->remove_segment(gone.number);
      std::erase_if(promised_, within);
    });
  }

  void crash(double machines = 0.5) {
    ++crashes_;
    disk_.heal();
    disk_.set_capacity(uint64_t{1} << 40);
    const bool machine = dice_.hit(machines);
    if (machine)
      disk_.crash_machine("host", dice_);
    else
      disk_.crash_process("host");
    log_ = nullptr;
    if (!open(machine && options_.durability == Durability::journal)) return;
    if (dice_.hit(0.2)) open();  // nothing has changed
    stopping(0.2, [&] { open(); });
  }

  /// False: a journal was refused after the machine went down, and begun anew.
  bool open(bool may_lose = false) {
    Records replayed;
    try {
      log_ = open_log(env_, options_, [&](LogRecord& record) {
        replayed.emplace_back(record.number(), text_of(record));
      });
    } catch (const DataError& e) {
      EXPECT_TRUE(may_lose) << e.what();
      ++refused_;
      for (const std::string& name : env_.list_files("log")) env_.remove_file("log/" + name);
      env_.sync_folder("log");
      replayed.clear();
      promised_.clear();
      log_ = open_log(env_, options_, {});
    }
    check(replayed, may_lose);
    promised_ = replayed;
    doubtful_.clear();
    may_return_.insert(may_return_.end(), maybe_removed_.begin(), maybe_removed_.end());
    maybe_removed_.clear();
    replayed_ += replayed.size();
    return true;
  }

  /// Promised ones first, of the doubtful ones those that follow.
  void check(const Records& replayed, bool may_lose) {
    Records expected = promised_;
    for (const auto& record : doubtful_)
      if (expected.empty() || record.first > expected.back().first) expected.push_back(record);
    size_t at = 0;
    for (const auto& record : replayed) {
      while (at < expected.size() && expected[at] != record &&
             std::ranges::find(maybe_removed_, expected[at]) != maybe_removed_.end())
        ++at;
      // In a journal a removal is as little promised as a record.
      if (may_lose && (at == expected.size() || expected[at] != record) &&
          std::ranges::find(may_return_, record) != may_return_.end())
        continue;
      ASSERT_LT(at, expected.size()) << "record " << record.first << " was never committed";
      ASSERT_EQ(expected[at].first, record.first);
      ASSERT_EQ(expected[at].second, record.second);
      ++at;
    }
    if (may_lose) return;
    for (; at < promised_.size(); ++at)
      ASSERT_TRUE(std::ranges::find(maybe_removed_, promised_[at]) != maybe_removed_.end())
          << "record " << promised_[at].first << " is lost";
  }

  Dice dice_;
  SimulatedDisk disk_;
  DiskEnv env_;
  const LogOptions options_;
  std::unique_ptr<LogWriter> log_;
  Records promised_, doubtful_, maybe_removed_, may_return_;
  size_t step_ = 0, crashes_ = 0, replayed_ = 0, refused_ = 0;
};

TEST(LogCrash, WhatWasPromisedIsReplayedWhateverFails) {
  const auto [first, last] = seeds_to(500);
  size_t crashes = 0, replayed = 0, refused = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Voyage voyage(seed);
    voyage.run(80);
    ASSERT_FALSE(HasFailure());
    crashes += voyage.crashes();
    replayed += voyage.replayed();
    refused += voyage.refused();
  }
  std::cout << "seeds " << first << " to " << last << ": " << crashes << " crashes, " << replayed
            << " records replayed, " << refused << " journals refused after a machine's crash\n";
}

}  // namespace
}  // namespace argosy
