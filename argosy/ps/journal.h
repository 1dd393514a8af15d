#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/log/writer.h"
#include "argosy/ps/cut.h"
#include "argosy/ps/journal_frames.h"
#include "argosy/ps/meetings.h"
#include "argosy/ps/shard.h"

namespace argosy::ps {

/// "none", "journal" or "fsync". Throws ConfigError.
Durability parse_durability(std::string_view text);

struct JournalOptions {
  std::string folder;
  Durability durability = Durability::journal;
  Env::Duration every = std::chrono::milliseconds(250);  // between records
  size_t bytes = size_t{8} << 20;                        // of changed rows that make a record due
  uint64_t segment_bytes = uint64_t{64} << 20;
  /// Go on from what the folder has. Otherwise the journal of an earlier run is removed from it.
  bool recover = false;
  /// Instead: only look what the folder has of this run, and wait for take_up().
  bool offer = false;
  uint64_t run = 0;  // of which the records have to be
};

/// What the log of this server is known by.
std::string journal_identity(const Shard& shard, const std::string& job);

/// How far a journal is with writing all rows anew.
struct JournalSweep {
  uint64_t first_record = 0;
  uint32_t table = 0;
  Section section = Section::rows;
  RowImages::Cursor cursor = {};
  bool done = false;
};

/// What has changed since the last cut, which the next one adds to the segments of that.
struct SinceCut {
  bool whole = true;  // nothing to add to: the next cut has all segments
  std::string folder = {};
  std::vector<LogSegment> segments = {};
  uint64_t last_record = 0;
  std::vector<DirtyKeys> changed = {};  // by table
  bool parameters = false, meetings = false;
};

/// How far a journal is with writing once more what has changed since the last cut.
struct Gathering {
  uint64_t first_record = 0;      // 0: it has not begun
  std::vector<size_t> ends = {};  // of the keys to write, by table
  uint32_t table = 0;
  size_t at = 0;
  bool done = false;
};

/// The log of one server. A record holds everything that the exchanges since the last one have
/// changed, as it is after them (images, no gradients), and how far each worker is: either all of
/// that counts or nothing. Invariants:
///
///   1. The images of a record are those of a moment at which no exchange is half applied, and its
///      state is that of the same moment. Replayed up to any record, a shard is as it was then.
///   2. A record is replayed in the order shrinks, replaced tables, rows, parameters, meetings,
///   state.
///      What a shrink erases follows from the rows, so it is repeated and not written row by row.
///   3. What was collected stays until it is written: a record that does not get to the disk is
///      written again as a whole, under the next number.
///   4. A cut may leave out segments behind the cut before, if their content is in those that it
///      has: what had changed was gathered in records since. Not where a shrink or a table that was
///      replaced lies between.
///   5. A sweep writes all rows anew, some with each record. Segments older than its beginning hold
///      nothing that is not in a later one, and go when it ends: from then on the records up to its
///      end (JournalState::whole) can only be replayed together.
///
/// Thread safety: none; collect() needs the shard to be at rest.
class Journal {
 public:
  /// Opens the log; with options.recover fills the shard, of which nothing has changed yet. Throws
  /// DataError for a log that is damaged, ConfigError for one of another job, and IoError.
  Journal(Env& env, Shard& shard, JournalOptions options, const std::string& job);
  ~Journal();

  /// With options.offer: the states of the records up to which the log can be replayed, in order;
  /// none: there is nothing to go on from.
  const std::vector<JournalState>& offers() const { return offers_; }
  /// Why what is there could not be looked at; "": it could, or nothing is there.
  const std::string& trouble() const { return trouble_; }
  /// With options.offer, before anything else: replays it up to the last one of that step, or
  /// as a whole; or begins it anew. Throws as the constructor does.
  void take_up(uint64_t settled);

  const JournalOptions& options() const { return options_; }
  /// Of the last record; nothing: there was none.
  const std::optional<JournalState>& recovered() const { return recovered_; }

  /// The meetings that were over.
  const PastMeetings& meetings() const { return meetings_; }

  /// Takes over what has changed: the state, the meetings unless they are as before, and the shard.
  /// Only if nothing is waiting().
  void collect(JournalState state, std::optional<PastMeetings> meetings = {});
  /// Whether the next record has everything, although not everything has changed.
  bool needs_all() const { return all_again_; }
  /// Whether something was collected and not written.
  bool waiting() const { return waiting_; }
  /// Writes what was collected and returns its state, which is safe from now on. Throws IoError.
  const JournalState& write();
  /// From the next record on writes what has changed since the last cut, some with each record, so
  /// that the next cut need not have everything that was written since.
  void begin_gathering();
  bool gathering() const { return gathering_ && !gathering_->done; }
  /// Ends the segment that is written to; links of the segments of a cut are in the folder on
  /// return, or else what is to be copied is open. Holds what was written last, so only if nothing
  /// is waiting(). Throws IoError.
  SealedLog cut(const std::string& folder);
  uint64_t bytes_written() const { return written_; }

 private:
  /// Images of one table.
  struct Rows {
    uint32_t table = 0;
    Section section = Section::rows;
    std::vector<Key> keys = {};
    std::vector<float> images = {};
  };

  void look();
  void open(uint64_t last_record);
  void write_record();
  void forget_what_is_lost();
  void gather();
  void note_changes();
  SealedLog link(const std::string& folder);
  void take_rows(uint32_t table, std::span<const Key> keys);
  void take_all(uint32_t table);
  void add_page(Rows& page);
  void sweep(size_t bytes);
  void begin_sweep_if_due();
  void end_sweep();
  Rows& spare(uint32_t table, Section section);
  uint64_t live_bytes() const;
  size_t bytes_of(const Rows& rows) const;

  Env& env_;
  Shard& shard_;
  const JournalOptions options_;
  const std::string identity_;
  uint64_t whole_ = 1;  // as in JournalState
  std::vector<JournalState> offers_;
  std::vector<uint64_t> offered_records_;  // their numbers
  std::string trouble_;
  std::unique_ptr<LogWriter> log_;  // null: take_up() comes first
  std::optional<JournalState> recovered_;
  PastMeetings meetings_;
  std::vector<std::byte> meeting_bytes_;  // encoded: those replayed, then the last ones collected
  std::vector<float> parameters_;         // likewise

  // What was collected:
  bool waiting_ = false;    // for write()
  bool all_again_ = false;  // records were lost: the next one has everything
  uint64_t last_record_ = 0;
  JournalState state_;
  std::vector<uint32_t> shrinks_, replaced_;
  std::vector<Rows> rows_;
  size_t used_ = 0;  // of rows_; the memory of the others is kept
  bool has_parameters_ = false, has_meetings_ = false;
  size_t collected_ = 0;  // bytes

  size_t changed_pages_ = 0;     // of rows_; the others were swept or gathered
  bool begins_segment_ = false;  // the record

  SinceCut since_;
  std::optional<Gathering> gathering_;
  std::optional<JournalSweep> sweep_;
  uint64_t written_ = 0;
};

}  // namespace argosy::ps
