#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/watch/activity.h"

namespace argosy {

/// Numbers of workers or of servers, in order. A report names the first ones only of very many.
struct Numbers {
  std::vector<uint32_t> listed = {};
  bool more = false;

  bool may_have(uint32_t number) const {
    return more || std::ranges::find(listed, number) != listed.end();
  }
};

/// Whom a process waits for.
struct Wait {
  std::string role = {};  // "server", "worker"
  Numbers peers = {};
  double seconds = 0;
  /// For a server's wait: the workers whose answers are held until then.
  Numbers held = {};
  std::string what = {};  // in words: "exchange 912: rows of emb", "to end step 411"
};

/// The report of a process about itself.
struct ProcessStatus {
  std::string role = {};  // "server", "worker"
  uint32_t index = 0;
  int64_t pid = 0;
  Doing doing = Doing::starting;
  double since = 0;  // seconds that it has been doing that
  int epoch = 0;     // 0: it has none
  uint64_t step = 0;
  std::optional<double> rate = {};       // samples per second
  std::optional<uint64_t> queue = {};    // exchanges on their way; of a server: answers held back
  std::optional<double> staleness = {};  // steps from a pull to its push
  std::optional<uint64_t> rows = {};
  /// What was lost when it was started again ("nothing"), once it is back; "": it was not.
  std::string lost = {};
  std::string note = {};  // an outside cause that blocks it: "part-0 gives nothing"
  std::vector<Wait> waits = {};
};

/// Longest line that a pipe keeps whole when several processes write to it.
inline constexpr size_t kLongestStatusLine = 4096;

/// One line, without its end, of words NAME=VALUE in any order:
///   status role=server index=1 pid=72 doing=serving since=31.2 step=410 queue=2 rows=90210
///     note=part-0%20gives%20nothing wait=worker:2,4-6:4.2:0-1,3:to%20end%20step%20411
/// A wait is ROLE:NUMBERS:SECONDS:HELD:WHAT, the longest ones first; those that would make the line
/// too long are left out. NUMBERS ends with "+" where there are more. In texts %XX is a byte.
std::string format_status(const ProcessStatus& status);
/// Absent if the line is no status. Unknown names are skipped.
std::optional<ProcessStatus> parse_status(std::string_view line);

/// "0-3,7"; numbers in order.
std::string format_numbers(const Numbers& numbers);

/// Escapes a text to one word without '=' and ':'; unescape returns nothing for other words.
std::string escape(std::string_view text);
std::optional<std::string> unescape(std::string_view word);

/// Words NAME=VALUE of a line that begins with the word `kind`; absent if it does not.
using Fields = std::vector<std::pair<std::string_view, std::string_view>>;
std::optional<Fields> split_fields(std::string_view line, std::string_view kind);

}  // namespace argosy
