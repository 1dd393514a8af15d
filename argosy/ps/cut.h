#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "argosy/base/bytes.h"
#include "argosy/base/env.h"
#include "argosy/log/format.h"
#include "argosy/ps/placement.h"
#include "argosy/ps/saved_table.h"
#include "argosy/ps/server_mark.h"

// A cut is a checkpoint made of journals (docs/formats/cut.md): for each server a folder with links
// of its journal's segments, and a file that says what they hold.
namespace argosy::ps {

/// A segment of a journal that will not change any more.
struct CutSegment {
  uint64_t number = 0, bytes = 0;
  uint64_t sum = 0;  // of its header and its last frame, which covers what is between
  template <class A>
  void fields(A& a) {
    a(number, bytes, sum);
  }
  bool operator==(const CutSegment&) const = default;
};

/// A journal whose last segment is sealed, with links of all segments in another folder. Those that
/// cannot be linked there are open, so that they can be copied even if the journal lets them go.
struct SealedLog {
  struct Segment {
    LogSegment segment;
    std::unique_ptr<ReadableFile> file;
    bool linked = false;
    bool known = false;  // it was in the cut before
  };
  std::string folder;  // of the links
  std::string identity;
  uint64_t last_record = 0;
  std::vector<Segment> segments = {};

  uint64_t added() const;  // bytes of segments that were not in the cut before
};

/// Links the segments of `from` into sealed.folder, which it makes, behind those that `sealed` has.
/// Other segments there are left of a cut that was never finished, and go. Throws IoError.
SealedLog link_segments(Env& env, const std::string& from, std::span<const LogSegment> segments,
                        SealedLog sealed);
/// Copies what could not be linked, and syncs the folder.
std::vector<CutSegment> finish_links(Env& env, SealedLog sealed);

/// What a server's part of a cut holds: all that is needed to read it without its job. Between its
/// segments others of the log may be missing, whose content is in later ones.
struct CutPart {
  uint32_t index = 0;  // of the server
  Placement placement = {};
  std::string identity = {};  // of its log
  uint64_t last_record = 0;
  ServerMark mark = {};
  std::vector<uint64_t> rows = {};  // by table
  std::vector<CutSegment> segments = {};

  template <class A>
  void fields(A& a) {
    a(index, placement, identity, last_record, mark, rows, segments);
  }
  uint64_t bytes() const;  // of all segments
};

/// "server-1.cut", beside the folder "server-1".
std::string cut_file_name(uint32_t server);
std::string cut_folder_name(uint32_t server);
bool is_cut_file(const std::string& file);

/// Writes the file of a part, synced, last. Returns its sum, with the rows of all tables.
FileSum write_cut_part(Env& env, const std::string& dir, const CutPart& part);
/// Throws DataError naming the file where it is damaged.
CutPart read_cut_part(Env& env, const std::string& dir, const std::string& file);

/// Replays the part of one server and returns the table as the bytes of a saved one, so that
/// whoever reads those can read this. Needs the memory of its rows. Throws DataError, with file and
/// offset, for segments that are damaged, missing or of another cut, for rows that are not finite,
/// and where there are others than the part says.
std::unique_ptr<ByteReader> open_cut_table(Env& env, const std::string& dir,
                                           const SavedTable& saved);
/// Likewise the weights and states of the server's slices (Shard::parameters).
std::vector<float> read_cut_parameters(Env& env, const std::string& dir, const std::string& file);

}  // namespace argosy::ps
