#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "argosy/base/rng.h"
#include "argosy/ps/cut.h"
#include "argosy/ps/journal.h"
#include "argosy/ps/table_file.h"
#include "argosy/world/dice.h"

/// What tests of cuts share: a shard with a journal, without a server.
namespace argosy::ps {

inline Placement small_placement() {
  const ParameterSpec parameter{.name = "w", .elements = 50, .init = "uniform(-1, 1)"};
  const TableSpec table{.name = "rows", .dim = 3, .rule = "adam", .track_unseen = true};
  return place({parameter}, {table}, {0}, 1);
}

/// The bytes that saving a shard would give, and its parameters.
struct Held {
  std::vector<std::byte> table;
  std::vector<float> parameters;
  bool operator==(const Held&) const = default;
};

inline Held held_by(Shard& shard) {
  ByteBuffer bytes;
  save_table(shard.table(0), bytes);
  return {{bytes.bytes().begin(), bytes.bytes().end()}, shard.parameters()};
}

inline Held held_by_cut(Env& env, const std::string& dir) {
  const CutPart part = read_cut_part(env, dir, cut_file_name(0));
  SavedTable saved{"rows", cut_file_name(0), {}};
  const auto bytes = open_cut_table(env, dir, saved);
  const auto all = bytes->take(bytes->left());
  return {{all.begin(), all.end()}, read_cut_parameters(env, dir, saved.file)};
}

struct OneServer {
  OneServer(Env& env, bool recover)
      : env(env),
        shard(small_placement(), 0, 1),
        journal(env, shard, {.folder = "journal", .segment_bytes = 8192, .recover = recover},
                "job") {}

  /// As exchanges do.
  void apply(Dice& dice, uint64_t step, size_t rows, uint64_t range) {
    std::vector<Key> keys;
    for (size_t i = 0; i < rows; ++i) keys.push_back(mix(dice.below(range)));
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    const std::vector<float> grads(keys.size() * 3, 0.5F);
    Ticket ticket;
    shard.table(0).locate(keys, {}, shard.part(0), ticket);
    apply_located(shard.table(0), ticket, grads, step);
    shard.changes()->rows_changed(0, 0, ticket);
    if (dice.below(4) == 0) shard.apply_parameters(0, std::vector<float>(50, 0.5F), step);
  }
  /// And verbs.
  void change(Dice& dice, uint64_t step, size_t rows, uint64_t range = 400) {
    apply(dice, step, rows, range);
    if (dice.below(9) == 0) shard.shrink(3);
  }
  void record(uint64_t step) {
    if (!journal.waiting())
      journal.collect({.mark = {.step = step, .applied = {step}, .trained = {}}});
    journal.write();
  }
  void prepare_cut(uint64_t step) {
    journal.begin_gathering();
    do record(step);
    while (journal.gathering());
  }
  /// As a server does it, into the file that it returns.
  FileSum cut(const std::string& dir, uint64_t step) {
    record(step);
    CutPart part{.placement = shard.placement(),
                 .mark = {.step = step, .applied = {step}, .trained = {}},
                 .rows = {shard.table(0).size()}};
    SealedLog sealed = journal.cut(dir + "/" + cut_folder_name(0));
    part.identity = sealed.identity;
    part.last_record = sealed.last_record;
    added = sealed.added();
    part.segments = finish_links(env, std::move(sealed));
    return write_cut_part(env, dir, part);
  }

  Env& env;
  uint64_t added = 0;  // by the last cut
  Shard shard;
  Journal journal;
};

}  // namespace argosy::ps
