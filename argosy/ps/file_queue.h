#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace argosy::ps {

/// What has been given out in a pass, as a journal keeps it.
struct PastFiles {
  struct Lane {
    uint32_t worker = 0, lane = 0, lanes = 1;
    std::vector<uint32_t> files = {};
    template <class A>
    void fields(A& a) {
      a(worker, lane, lanes, files);
    }
  };
  uint64_t epoch = 0, pass = 0;
  uint32_t count = 0;  // of the epoch's files
  std::vector<uint32_t> trained = {};
  std::vector<Lane> lanes = {};
  template <class A>
  void fields(A& a) {
    a(epoch, pass, count, trained, lanes);
  }
};

/// What a worker does in a first pass when its own share is at its end.
enum class Stealing : uint8_t {
  off,  // nothing: who reads what does not depend on who is quick
  on,   // it takes from the share that has most left
};

/// The files of an epoch, which the reading lanes of workers take as they get free. Each worker has
/// a contiguous share and takes that first. An epoch has passes: what was taken in one and not
/// trained, because its worker was lost, is free again in the next. Invariants:
///   1. A file is free, taken by one lane of one worker, or trained; a trained one stays so.
///   2. What a lane was given as its n-th file of a pass, or that there was none, stays true in
///      that pass: a worker that is started again reads the same files in the same order.
///   3. An epoch is whole when every file is trained.
/// The queue of a server that was started again knows nothing; with each call a lane says what it
/// has taken, so that the queue learns. Thread safety: none.
class FileQueue {
 public:
  static constexpr uint32_t kMaxFiles = 1 << 20;  // in an epoch
  static constexpr uint32_t kMaxLanes = 1 << 12;  // of a worker

  explicit FileQueue(uint32_t workers) : workers_(workers) {}

  /// Lane i of n reads files i, i + n, ... of its worker's share, as long as they are free.
  struct Lane {
    uint32_t worker = 0, lane = 0, lanes = 1;
    auto operator<=>(const Lane&) const = default;
  };
  /// Of an epoch; the first epoch is 1, its first pass 0.
  struct Pass {
    uint64_t epoch = 0, number = 0;
    uint32_t files = 0;  // that the worker sees; the same for all
    template <class A>
    void fields(A& a) {
      a(epoch, number, files);
    }
  };
  /// The file behind those that the lane has `taken` in this pass; nothing: none is left for it.
  /// The first call of a later pass begins that one. Throws DataError where workers do not see the
  /// same number of files.
  std::optional<uint32_t> take(const Lane& lane, const Pass& pass, std::span<const uint32_t> taken,
                               Stealing stealing);
  /// These have been trained to their end, whoever else has taken them meanwhile. All of the epoch
  /// that have been, in order; none of an epoch that is over.
  std::vector<uint32_t> trained(const Pass& pass, std::span<const uint32_t> numbers);

  /// Changes with past().
  uint64_t version() const { return version_; }
  PastFiles past() const;
  /// Of the server that this one replaces.
  void recover(const PastFiles& past);

 private:
  enum class State : uint8_t { free, taken, trained };
  struct Given {
    std::vector<uint32_t> files;
    bool at_end = false;
  };
  struct Share {
    uint32_t begin, end;
  };

  bool enter(const Pass& pass);
  Share share(uint32_t worker) const;
  std::optional<uint32_t> free_file(const Lane& lane, Stealing stealing) const;

  const uint32_t workers_;
  Pass now_;
  std::vector<State> files_;
  std::map<Lane, Given> given_;  // in this pass
  uint64_t version_ = 0;
};

}  // namespace argosy::ps
