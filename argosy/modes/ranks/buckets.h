#pragma once

#include <optional>
#include <string>
#include <vector>

#include "argosy/modes/communicator.h"
#include "argosy/plan/plan.h"

namespace argosy {

/// The payload of one collective call: gradients of adjacent parameters, or of one table's rows.
struct Bucket {
  struct Member {
    size_t parameter = 0;
    size_t begin = 0, size = 0;  // floats, in the memory of all buckets
  };
  std::optional<size_t> rows = {};   // the table
  std::vector<Member> members = {};  // of a bucket
  size_t begin = 0, size = 0;        // of a bucket: floats, in the memory of all buckets
};

/// The buckets of a step in the order in which backward completes them; the same on every rank. The
/// first one of parameters begins with kBucketHead floats, one of which says whether the rank has a
/// batch.
struct Buckets {
  std::vector<Bucket> all;
  size_t floats = 0;                           // of all buckets
  size_t first_bucket = 0;                     // its number; there is always one
  std::vector<size_t> of_parameter, of_table;  // the bucket of each
  std::vector<bool> placed;  // by parameter: nothing reads its gradient before it is exchanged
  /// "bucket of 300 floats: fc.w fc.b", a line for each.
  std::string text(const Plan& plan) const;
};
constexpr size_t kBucketHead = 16;  // a cache line

Buckets make_buckets(const Plan& plan, const CollectiveStrategy& strategy);

}  // namespace argosy
