#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "argosy/base/key.h"
#include "argosy/base/trained.h"
#include "argosy/net/frame.h"
#include "argosy/ps/archive.h"
#include "argosy/ps/file_queue.h"
#include "argosy/ps/saved_table.h"
#include "argosy/ps/server_mark.h"

// The requests of a worker to a server other than exchanges. A verb is a struct: its fields, name,
// text for messages and result type. A file of verbs/ performs it on the server; one that only its
// own tests use may be declared there.
namespace argosy::ps {

/// What a worker can tell a restarted server of its previous life.
struct KnownOfServer {
  uint64_t milestone = 0, pass = 0;               // the last ones answered
  bool paused = false;                            // it has left the step group since
  std::map<std::string, uint64_t> gathered = {};  // by series: the last one answered
};

namespace verbs {

/// An empty answer.
struct Done {
  template <class A>
  void fields(A&) {}
};

/// Leaves the job for good.
struct Leave {
  static constexpr const char* kName = "leave";
  using Result = Done;
  std::string text() const { return kName; }
  template <class A>
  void fields(A&) {}
};

/// Leaves the step group at the end of a pass. Ignored if a later pass has begun, of which an
/// earlier incarnation of this worker is a member.
struct Pause {
  static constexpr const char* kName = "pause";
  using Result = Done;
  uint64_t pass = 0;
  std::string text() const { return fmt::format("pause {}", pass); }
  void note(KnownOfServer& known, const Done&) const { known.paused = true; }
  template <class A>
  void fields(A& a) {
    a(pass);
  }
};

/// The bytes of each worker at a meeting, in worker order.
struct Gathered {
  struct Part {
    uint32_t worker = 0;
    std::vector<std::byte> bytes = {};
    template <class A>
    void fields(A& a) {
      a(worker, bytes);
    }
  };
  std::vector<Part> parts = {};
  template <class A>
  void fields(A& a) {
    a(parts);
  }
};

/// Answered once all that this server has applied is in its journal, if it has one.
struct Secure {
  static constexpr const char* kName = "secure";
  using Result = Done;
  std::string text() const { return "wait for its journal"; }
  template <class A>
  void fields(A&) {}
};

/// Joins the step group of a pass: when every remaining worker asks, or at once if it has begun.
struct Join {
  static constexpr const char* kName = "join";
  using Result = Done;
  uint64_t pass = 0;
  std::string text() const { return fmt::format("join {}", pass); }
  void note(KnownOfServer& known, const Done&) const {
    known.pass = std::max(known.pass, pass);
    known.paused = false;
  }
  template <class A>
  void fields(A& a) {
    a(pass);
  }
};

/// Answered with the bytes of all once every remaining worker, dead ones that may come back
/// included, has come to meeting `number` (from 1) of its series. A finished one repeats its
/// answer; if that is no longer kept, a caller without bytes gets none, others get an error.
struct Gather {
  static constexpr const char* kName = "gather";
  using Result = Gathered;
  std::string series = {};
  uint64_t number = 0;
  std::string name = {};  // what for; the same in all workers
  std::vector<std::byte> bytes = {};
  std::string text() const { return "gather " + name; }
  void note(KnownOfServer& known, const Gathered&) const {
    uint64_t& last = known.gathered[series];
    last = std::max(last, number);
  }
  template <class A>
  void fields(A& a) {
    a(series, number, name, bytes);
  }
};

/// A gather that every worker comes to once, in the order of the numbers. It waits for worker 0 as
/// long as that one may come back. One that is over or has been passed by anyone is answered at
/// once, the last completed one with its bytes, others with none.
struct Milestone {
  static constexpr const char* kName = "milestone";
  using Result = Gathered;
  uint64_t number = 0;
  std::string name = {};
  std::vector<std::byte> bytes = {};
  std::string text() const { return name; }
  void note(KnownOfServer& known, const Gathered&) const {
    known.milestone = std::max(known.milestone, number);
  }
  template <class A>
  void fields(A& a) {
    a(number, name, bytes);
  }
};

/// How far the job is; answered once all workers have come.
struct Standing {
  static constexpr const char* kName = "standing";
  struct Result {
    uint64_t milestone = 0;  // the last one that is over; 0: none
    uint64_t gather = 0;     // the last one of the series that is over
    template <class A>
    void fields(A& a) {
      a(milestone, gather);
    }
  };
  std::string series = {};  // of gathers
  std::string text() const { return kName; }
  void note(KnownOfServer& known, const Result& result) const {
    known.milestone = std::max(known.milestone, result.milestone);
  }
  template <class A>
  void fields(A& a) {
    a(series);
  }
};

/// How far this worker has pushed its data, in any of its incarnations.
struct Progress {
  static constexpr const char* kName = "progress";
  using Result = Trained;
  std::string text() const { return kName; }
  template <class A>
  void fields(A&) {}
};

/// What was loaded has these batches of each worker: they are its progress.
struct Resume {
  static constexpr const char* kName = "resume";
  using Result = Done;
  std::vector<Trained> trained = {};  // by worker
  std::string text() const { return kName; }
  template <class A>
  void fields(A& a) {
    a(trained);
  }
};

/// Milestones completed without a worker that had not left, and that it has not reached since: its
/// work before them was not done.
struct Missed {
  static constexpr const char* kName = "missed";
  struct Result {
    struct One {
      uint32_t worker = 0;
      uint64_t milestone = 0;
      template <class A>
      void fields(A& a) {
        a(worker, milestone);
      }
    };
    std::vector<One> all = {};
    template <class A>
    void fields(A& a) {
      a(all);
    }
  };
  std::string text() const { return kName; }
  template <class A>
  void fields(A&) {}
};

/// The next file of an epoch for a reading lane of the worker (FileQueue::take).
struct TakeFile {
  static constexpr const char* kName = "take_file";
  struct Result {
    std::vector<uint32_t> file = {};  // its number; empty: none is left for this lane
    template <class A>
    void fields(A& a) {
      a(file);
    }
  };
  FileQueue::Pass pass = {};
  uint32_t lane = 0, lanes = 1;
  Stealing stealing = Stealing::off;
  std::vector<uint32_t> taken = {};
  std::string text() const { return fmt::format("take a file of epoch {}", pass.epoch); }
  template <class A>
  void fields(A& a) {
    a(pass, lane, lanes, stealing, taken);
  }
};

/// These files of an epoch are trained, and all their gradients are applied. Which are by now.
struct TrainedFiles {
  static constexpr const char* kName = "trained_files";
  struct Result {
    std::vector<uint32_t> numbers = {};  // in order
    template <class A>
    void fields(A& a) {
      a(numbers);
    }
  };
  FileQueue::Pass pass = {};
  std::vector<uint32_t> numbers = {};
  std::string text() const { return fmt::format("trained files of epoch {}", pass.epoch); }
  template <class A>
  void fields(A& a) {
    a(pass, numbers);
  }
};

/// Weights and optimizer state of the server's slices, and its step.
struct ReadParameters {
  static constexpr const char* kName = "read_parameters";
  struct Result {
    uint64_t step = 0;
    std::vector<float> values = {};  // of each slice: weights, then state
    template <class A>
    void fields(A& a) {
      a(step, values);
    }
  };
  std::string text() const { return "read parameters"; }
  template <class A>
  void fields(A&) {}
};

struct WriteParameters {
  static constexpr const char* kName = "write_parameters";
  using Result = Done;
  uint64_t step = 0;
  std::vector<float> values = {};  // as ReadParameters gives them
  std::string text() const { return "write parameters"; }
  template <class A>
  void fields(A& a) {
    a(step, values);
  }
};

/// How far the server is.
struct Mark {
  static constexpr const char* kName = "mark";
  using Result = ServerMark;
  std::string text() const { return kName; }
  template <class A>
  void fields(A&) {}
};

/// Writes one file per table, named after it and the generation.
struct Save {
  static constexpr const char* kName = "save";
  struct Result {
    std::vector<SavedTable> files = {};
    template <class A>
    void fields(A& a) {
      a(files);
    }
  };
  uint64_t generation = 0;
  std::string folder = {};
  std::string text() const { return fmt::format("save {} {}", generation, folder); }
  template <class A>
  void fields(A& a) {
    a(generation, folder);
  }
};

/// Reads such files, of any number of servers; each server keeps its own keys.
struct Load {
  static constexpr const char* kName = "load";
  using Result = Done;
  std::string folder = {};
  std::vector<SavedTable> files = {};
  std::string text() const { return "load " + folder; }
  template <class A>
  void fields(A& a) {
    a(folder, files);
  }
};

/// Before a cut: has the journal write what has changed since the last one, some with each record,
/// so that the cut need not hold all that was written in between. Answered when that is done.
struct PrepareCut {
  static constexpr const char* kName = "prepare_cut";
  using Result = Done;
  std::string text() const { return "prepare a cut"; }
  template <class A>
  void fields(A&) {}
};

/// Takes a cut of the server's journal while exchanges go on: the state behind exchange `behind` of
/// the worker that asks and before its next one. So all servers of a sync job take that of the same
/// step; in the other modes each has what had come from other workers by then.
struct Cut {
  static constexpr const char* kName = "cut";
  struct Result {
    SavedTable part = {};                 // the file of this server's part; no table
    std::vector<SavedTable> tables = {};  // each in that file
    ServerMark mark = {};
    uint64_t bytes = 0, added = 0;  // of its segments, and of those that the last cut has not
    bool late = false;              // the next exchange had been taken, so there is no cut
    template <class A>
    void fields(A& a) {
      a(part, tables, mark, bytes, added, late);
    }
  };
  std::string folder = {};
  uint64_t behind = 0;
  std::string text() const { return fmt::format("cut behind {} {}", behind, folder); }
  template <class A>
  void fields(A& a) {
    a(folder, behind);
  }
};

/// Keys and weights of a table, one page per request.
struct ReadRows {
  static constexpr const char* kName = "read_rows";
  struct Place {
    uint64_t shard = 0, row = 0;
    bool at_end = false;
    template <class A>
    void fields(A& a) {
      a(shard, row, at_end);
    }
  };
  struct Result {
    Place next = {};
    std::vector<Key> keys = {};
    std::vector<float> rows = {};
    template <class A>
    void fields(A& a) {
      a(next, keys, rows);
    }
  };
  std::string table = {};
  Place from = {};
  std::string text() const { return "read rows of " + table; }
  template <class A>
  void fields(A& a) {
    a(table, from);
  }
};

/// RowTable::shrink on every table that tracks it; answers how many rows were erased.
struct Shrink {
  static constexpr const char* kName = "shrink";
  struct Result {
    uint64_t erased = 0;
    template <class A>
    void fields(A& a) {
      a(erased);
    }
  };
  uint32_t unseen = 0;
  std::string text() const { return fmt::format("shrink {}", unseen); }
  template <class A>
  void fields(A& a) {
    a(unseen);
  }
};

/// The server's content in lines of text.
struct Stats {
  static constexpr const char* kName = "stats";
  struct Result {
    std::string lines = {};
    template <class A>
    void fields(A& a) {
      a(lines);
    }
  };
  std::string text() const { return kName; }
  template <class A>
  void fields(A&) {}
};

/// Ends the server, whoever is left.
struct Stop {
  static constexpr const char* kName = "stop";
  using Result = Done;
  std::string text() const { return kName; }
  template <class A>
  void fields(A&) {}
};

}  // namespace verbs

/// A verb on its way to a server.
struct Request {
  std::string verb;
  std::vector<std::byte> fields = {};
  std::string text = {};  // for messages; it is not sent
  /// Notes what the answer tells about the server, if anything. Throws DataError.
  std::function<void(KnownOfServer&, std::span<const std::byte> answer)> note = {};
};

template <class V>
typename V::Result answer_of(std::span<const std::byte> bytes) {
  return decode_fields<typename V::Result>(bytes, std::string("answer to ") + V::kName);
}

template <class V>
Request request_of(const V& verb) {
  Request request{V::kName, encode_fields(verb), verb.text(), {}};
  if constexpr (requires(KnownOfServer & known, typename V::Result r) { verb.note(known, r); })
    request.note = [verb](KnownOfServer& known, std::span<const std::byte> answer) {
      verb.note(known, answer_of<V>(answer));
    };
  return request;
}

std::vector<std::byte> encode(const Request& request);
Request decode_request(const InFrame& frame);  // throws DataError

}  // namespace argosy::ps
