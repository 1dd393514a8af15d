#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/ps/changes.h"
#include "argosy/ps/parameter.h"
#include "argosy/ps/placement.h"
#include "argosy/ps/row_table.h"
#include "argosy/ps/verbs.h"
#include "argosy/ps/wire.h"

namespace argosy::ps {

/// The parameters and tables of one server; it knows no workers and no network. Work is cut into
/// parts that threads may do in parallel: each parameter belongs to one part, tables are cut by
/// shard. Thread safety: full.
class Shard {
 public:
  /// Throws ConfigError.
  Shard(Placement placement, uint32_t index, size_t parts, const TableHome& home = {});

  const Placement& placement() const { return placement_; }
  uint32_t index() const { return index_; }
  const ServerShape& shape() const { return shape_; }
  size_t parts() const { return own_.size(); }
  RowPart part(size_t number) const { return {number, parts()}; }
  size_t tables() const { return tables_.size(); }
  RowTable& table(size_t number) { return *tables_[number]; }
  /// Throws DataError.
  RowTable& table(const std::string& name);

  /// From now on keeps a ChangeSet. Call it before anything changes.
  void track_changes() { changes_ = std::make_unique<ChangeSet>(tables_, parts()); }
  /// Null: nobody tracks changes.
  ChangeSet* changes() { return changes_.get(); }

  // On the slices of a part; the spans cover all slices, in order.
  void apply_parameters(size_t part, std::span<const float> grads, uint64_t step);
  void read_parameters(size_t part, std::span<float> weights) const;
  /// One slice, as a range of those spans.
  struct Range {
    size_t begin, size;
  };
  std::vector<Range> parameter_ranges(size_t part) const;

  /// Weights and state of each slice.
  std::vector<float> parameters() const;
  /// Throws DataError, and changes nothing, where the size does not fit.
  void set_parameters(std::span<const float> values);

  /// Writes one file per table to `folder`.
  std::vector<SavedTable> save(Env& env, const std::string& folder, uint64_t generation);
  /// Reads files that any number of servers saved, keeping the keys of this one. All tables are
  /// replaced, or with a DataError none.
  void load(Env& env, const std::string& folder, std::span<const SavedTable> files);
  verbs::ReadRows::Result read_rows(const verbs::ReadRows& request);
  size_t shrink(uint32_t unseen);
  size_t rows() const;  // of all tables
  std::string stats() const;

 private:
  const Placement placement_;
  const uint32_t index_;
  const ServerShape shape_;
  std::vector<std::unique_ptr<Parameter>> parameters_;  // its slices
  std::vector<size_t> begins_;                          // of each, in the floats of all
  std::vector<std::vector<size_t>> own_;                // by part: numbers of slices
  std::vector<std::unique_ptr<RowTable>> tables_;
  std::unique_ptr<ChangeSet> changes_;
};

}  // namespace argosy::ps
