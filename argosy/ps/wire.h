#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "argosy/base/key.h"
#include "argosy/base/trained.h"
#include "argosy/net/frame.h"
#include "argosy/ps/placement.h"
#include "argosy/ps/row_columns.h"

// The messages between servers and workers; docs/formats/frames.md has the bytes.
namespace argosy::ps {

/// Where the servers of a job go on that was lost as a whole, its servers and its workers: each
/// server offers what its journal has, and worker 0 says which of that it is for all of them.
namespace settling {
constexpr uint64_t kNowhere = 0;  // nothing is to be settled, or it is not known yet
constexpr uint64_t kAnew = 1;     // no server uses its journal
constexpr uint64_t kEnds = 2;     // each at the end of its journal: steps are no common matter
constexpr uint64_t at_step(uint64_t step) { return step + 3; }
constexpr uint64_t step_of(uint64_t settled) { return settled - 3; }
constexpr bool goes_on(uint64_t settled) { return settled >= kEnds; }
}  // namespace settling

/// The first frame of a worker on a link.
struct Hello {
  std::string job;
  uint64_t plan_hash = 0;  // of the Placement
  uint32_t worker = 0, workers = 1;
  uint64_t incarnation = 0;  // of the worker's process
  uint32_t inflight = 8;     // key lists that the server keeps for it
  uint64_t answered = 0;     // the last exchange that servers at this address have answered
  uint32_t restarts = 0;     // how often the worker's process has been started again
  // For a restarted server, what its predecessors told this process:
  uint64_t step = 0;                              // the last one seen
  uint64_t milestone = 0;                         // the last one answered
  uint64_t pass = 0;                              // the last one joined
  bool paused = false;                            // it has left the step group since
  std::map<std::string, uint64_t> gathered = {};  // the last gather answered, by series
  std::string token = {};                         // not looked at yet
  uint64_t settled = settling::kNowhere;          // of worker 0: where all servers go on
  uint64_t first = 0;  // exchanges up to here were an earlier process' to send
};

/// The server's answer.
struct Welcome {
  uint32_t server = 0;
  uint64_t applied = 0;      // the last exchange of this worker that was applied
  uint64_t step = 0;         // of the server
  uint64_t incarnation = 0;  // of the server's process
  uint32_t journal = 0;  // 1: it was recovered from a journal, which has them all up to `applied`
  uint64_t settled = settling::kNowhere;  // where the servers of this job went on
};

/// What a server answers that does not know yet where its job goes on.
struct Offers {
  uint32_t server = 0;
  uint64_t run = 0;                   // of its journal: others than that of one run do not fit
  std::vector<uint64_t> places = {};  // values of Hello::settled; none: it is settled, greet again
};

/// Answers a ping.
struct Pong {
  uint64_t received = 0, applied = 0;  // the last exchange of this worker
  std::string waits_for = {};          // who holds it up, if anyone
};

std::vector<std::byte> encode(const Hello& hello);
std::vector<std::byte> encode(const Welcome& welcome);
std::vector<std::byte> encode(const Offers& offers);
std::vector<std::byte> encode(const Pong& pong);
// Throw DataError:
Hello decode_hello(const InFrame& frame);
Welcome decode_welcome(const InFrame& frame);
Offers decode_offers(const InFrame& frame);
Pong decode_pong(const InFrame& frame);

/// In the id of an error frame: whether another try may help.
enum class Severity : uint64_t { transient = 0, final = 1 };

/// In front of the payload of an exchange, which goes on with
///   the numbers of the lists that are pushed,
///   if pulling rows: the number of keys of each key set,
///   for each pushed list the same,
///   the keys of the pull, and if carried those of the pushed lists,
///   if pushing dense: the gradients of the server's slices,
///   for each pushed list, for each table: the gradients of its rows,
///   for the pull, and if carried for each pushed list, for each key set: the side columns that
///   tables ask for: counts of u32, then shows and clicks.
/// All numbers in front of the floats have 64 bits, so every part is aligned.
struct ExchangeHead {
  uint64_t sequence = 0;
  uint32_t flags = 0;
  uint32_t lists = 0;    // that are pushed
  Trained trained = {};  // once it is applied; zeros where it pushes nothing

  enum Flag : uint32_t {
    kPushDense = 1,
    kPullDense = 2,
    kPullRows = 4,
    kEndsStep = 8,
    kInference = 16,    // a pull that makes no rows and leaves no list
    kCarriesKeys = 32,  // of the pushed lists
    kRecord = 64,       // the step that this ends is one that all servers' journals have
  };
  static constexpr uint32_t kAllFlags = 127;
  bool has(Flag flag) const { return (flags & flag) != 0; }
};

/// In front of the payload of a reply, which goes on with the weights of the server's slices if
/// they were pulled, then for each table its rows.
struct ReplyHead {
  uint64_t sequence = 0;
  uint64_t step = 0;       // of the server, when it read the rows
  uint64_t durable = 0;    // exchanges of this worker up to here will not be lost
  uint64_t staleness = 0;  // steps from the pulls of the pushed lists to their push, added up
};

/// The sizes that exchanges with one server are made of.
struct ServerShape {
  ServerShape(const Placement& placement, uint32_t server);
  size_t key_sets;
  struct Wanted {
    bool counts = false, scores = false;
    size_t values() const { return (counts ? 1 : 0) + (scores ? 2 : 0); }  // of 4 bytes, a key
  };
  std::vector<Wanted> columns;  // by key set
  size_t dense_floats = 0;
  std::vector<size_t> dims, sets;  // by table: floats of a row, its key set
};

/// The parts of an exchange, over its payload.
struct ExchangeView {
  ExchangeHead head;
  std::vector<std::span<const Key>> pull;  // by key set
  std::vector<RowColumns> pull_columns;    // the same
  struct List {
    uint64_t number = 0;
    std::vector<uint64_t> counts;               // of keys, by key set
    std::vector<std::span<const Key>> keys;     // by key set, if carried
    std::vector<RowColumns> columns;            // the same
    std::vector<std::span<const float>> grads;  // by table
  };
  std::vector<List> lists;
  std::span<const float> dense;

  bool pushes() const { return head.has(ExchangeHead::kPushDense) || !lists.empty(); }
};
/// Throws DataError.
ExchangeView parse_exchange(std::span<const std::byte> payload, const ServerShape& shape);

/// The parts of a reply, over its payload.
struct ReplyView {
  ReplyHead head;
  std::span<const float> dense;
  std::vector<std::span<const float>> rows;  // by table
};
/// `keys`: how many were pulled, by key set; empty: no rows. Throws DataError.
ReplyView parse_reply(std::span<const std::byte> payload, const ServerShape& shape, bool dense,
                      std::span<const size_t> keys);

}  // namespace argosy::ps
