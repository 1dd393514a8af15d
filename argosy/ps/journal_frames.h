#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/bytes.h"
#include "argosy/log/reader.h"
#include "argosy/ps/row_replay.h"
#include "argosy/ps/server_mark.h"
#include "argosy/ps/shard.h"

namespace argosy::ps {

/// What a server must know besides its rows, parameters and meetings to go on.
struct JournalState {
  ServerMark mark = {};             // of what was applied
  std::vector<uint32_t> left = {};  // workers that have left the job
  uint64_t run = 0;      // the same on all servers of a job, also if it goes on from its journals
  uint64_t settled = 0;  // where it did (wire.h)
  /// The journal's own: the first record up to which the log has all that came before.
  uint64_t whole = 1;
  template <class A>
  void fields(A& a) {
    a(mark, left, run, settled, whole);
  }
};

/// Which rows a replay takes.
struct ReplayedRows {
  bool any = true;
  std::optional<uint32_t> table = {};  // only of this one

  bool wants(uint32_t number) const { return any && (!table || *table == number); }
};

/// Puts the records of a journal, one after the other, into a shard of which nothing has changed.
/// Thread safety: none.
class JournalReplay {
 public:
  /// What the frames of a record hold, in the order in which they are replayed.
  enum Frame : uint32_t {
    kShrink = 1,
    kReplace = 2,
    kRows = 3,
    kParameters = 4,
    kMeetings = 5,
    kState = 6,
  };

  /// `what` begins the messages of errors. The shard must outlive it.
  JournalReplay(Shard& shard, std::string what, ReplayedRows rows = {});

  /// Throws DataError for frames that do not fit the shard.
  void add(LogRecord& record);
  /// Once, after the last record: the parameters are the shard's.
  void finish();

  /// Those of the last record that had any, as the shard has them; none: they are as they began.
  const std::vector<float>& parameters() const { return parameters_; }
  /// The meetings that were over, encoded; none: there were none.
  const std::vector<std::byte>& meetings() const { return meetings_; }
  /// Of the last record; nothing: there was none.
  const std::optional<JournalState>& state() const { return state_; }

 private:
  void add_frame(const LogFrame& frame, const std::string& what);
  void add_rows(ByteSource& in);

  Shard& shard_;
  const std::string what_;
  const ReplayedRows rows_;
  std::vector<float> parameters_;
  std::vector<std::byte> meetings_;
  std::optional<JournalState> state_;
  RowReplay rows_ahead_;  // last: it puts rows while frames are read
};

}  // namespace argosy::ps
