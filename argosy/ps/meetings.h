#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/ps/file_queue.h"
#include "argosy/ps/roster.h"
#include "argosy/ps/verb.h"
#include "argosy/ps/wire.h"

namespace argosy::ps {

/// The meetings that are over, and who has which file, as a journal keeps them.
struct PastMeetings {
  struct Answer {
    uint64_t number = 0;
    std::vector<std::byte> bytes = {};
    template <class A>
    void fields(A& a) {
      a(number, bytes);
    }
  };
  struct Series {
    std::string name = {};
    uint64_t last = 0;
    std::vector<Answer> answers = {};
    template <class A>
    void fields(A& a) {
      a(name, last, answers);
    }
  };
  uint64_t pass = 0, milestone = 0;
  std::vector<std::byte> milestone_answer = {};
  std::vector<Series> series = {};
  PastFiles files = {};  // the queue of server 0
  template <class A>
  void fields(A& a) {
    a(pass, milestone, milestone_answer, series, files);
  }
};

/// The verbs by which workers wait for each other (verbs.h): gather, join, milestone, standing.
/// Events in, answers out; the roster says who is waited for. Thread safety: none.
class Meetings {
 public:
  /// Bytes of finished gathers kept for restarted workers; the oldest are dropped first.
  static constexpr size_t kKept = size_t{64} << 20;

  explicit Meetings(const Roster& roster) : roster_(roster) {}

  struct Answer {
    std::vector<Asker> askers;     // all get these bytes: one copy, it may be large
    std::vector<std::byte> bytes;  // encoded
    std::string error = {};        // instead
  };
  struct Outcome {
    std::vector<Answer> answers;
    std::vector<uint32_t> joined;  // workers to add to the step group
  };

  // A worker arrives. settle() answers it, now or later. Throw DataError for an invalid meeting.
  void come(const Asker& asker, verbs::Gather gather, Env::Time now);
  void come(const Asker& asker, const verbs::Join& join, Env::Time now);
  void come(const Asker& asker, verbs::Milestone milestone, Env::Time now);
  void ask_standing(const Asker& asker, const std::string& series) {
    standing_.emplace_back(asker, series);
  }

  /// The first hello of an incarnation: the passes, milestones and gathers it lists are over.
  void begin_anew(const Hello& hello);
  /// The last pass that has begun.
  uint64_t pass() const { return pass_; }
  /// This server restarts from a save made after `milestone`.
  void go_on_from(uint64_t milestone) { milestone_ = milestone; }
  /// Changes with past().
  uint64_t version() const { return version_; }
  PastMeetings past() const;
  /// Of the server that this one replaces.
  void recover(const PastMeetings& past);
  /// Completes every meeting that nobody is missing from. Call it after each event here or in the
  /// roster.
  Outcome settle();

  verbs::Missed::Result missed() const;

  struct Wait {
    std::string what;
    std::vector<uint32_t> here, missing;
    Env::Time since;
  };
  std::vector<Wait> waits() const;

 private:
  enum class Kind : uint8_t { gather, join, milestone };
  struct Id {
    Kind kind;
    std::string series;  // of a gather
    uint64_t number;
    auto operator<=>(const Id&) const = default;
  };
  struct Meeting {
    std::string name;                                  // of a gather or milestone
    std::map<uint32_t, std::vector<std::byte>> parts;  // by worker
    std::map<uint32_t, Asker> askers;                  // by worker
    Env::Time since;
  };
  /// Finished gathers of one series.
  struct Past {
    uint64_t last = 0;  // number of the last one
    std::map<uint64_t, std::vector<std::byte>> answers;
  };

  Meeting& meeting(const Id& id, const Asker& asker, const std::string& name,
                   std::vector<std::byte> bytes, Env::Time now);
  std::vector<uint32_t> missing(const Id& id, const Meeting& meeting) const;
  bool is_over(const Id& id) const;
  std::vector<std::byte> end(const Id& id, const Meeting& meeting, Outcome& outcome);
  std::vector<std::byte> answer_past(const Id& id) const;
  bool is_lost(const Id& id) const;
  void keep(const Id& id, const std::vector<std::byte>& answer);
  static std::string text(const Id& id, const Meeting& meeting);

  const Roster& roster_;
  std::map<Id, Meeting> open_;
  std::map<std::string, Past> gathers_;                // by series
  std::deque<std::pair<std::string, uint64_t>> kept_;  // series and number, the oldest first
  size_t kept_bytes_ = 0;
  uint64_t version_ = 0;
  uint64_t pass_ = 0, milestone_ = 0;  // the last ones
  std::vector<std::byte> milestone_answer_;
  std::set<std::pair<uint32_t, uint64_t>> missed_;       // workers and milestones
  std::vector<std::pair<Asker, std::string>> standing_;  // with the series they ask for
};

}  // namespace argosy::ps
