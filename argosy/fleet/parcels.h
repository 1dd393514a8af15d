#pragma once

#include <optional>
#include <string>
#include <vector>

#include "argosy/fleet/communicator.h"
#include "argosy/fleet/plan.h"

namespace argosy {

/// What ranks exchange in one call: gradients of parameters that lie together, or those of the rows
/// of one table.
struct Parcel {
  struct Member {
    size_t table = 0;
    size_t begin = 0, size = 0;  // floats, in the memory of all buckets
  };
  std::optional<size_t> rows = {};   // the table
  std::vector<Member> members = {};  // of a bucket
  size_t begin = 0, size = 0;        // of a bucket: floats, in the memory of all buckets
};

/// The parcels of a step in the order in which backward ends them; the same on every rank. The
/// first bucket begins with kParcelHead floats, of which one says whether the rank has a batch.
struct Parcels {
  std::vector<Parcel> all;
  size_t floats = 0;         // of all buckets
  size_t first_bucket = 0;   // its number; there is always one
  std::vector<size_t> of;    // by table: its parcel
  std::vector<bool> placed;  // by table: nothing reads its gradient before it is exchanged
  /// "bucket of 300 floats: fc.w fc.b", a line for each.
  std::string text(const Plan& plan) const;
};
constexpr size_t kParcelHead = 16;  // a cache line

Parcels make_parcels(const Plan& plan, const CollectiveStrategy& strategy);

}  // namespace argosy
