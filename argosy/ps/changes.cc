#include "argosy/ps/changes.h"

namespace argosy::ps {

ChangeSet::ChangeSet(std::span<const std::unique_ptr<RowTable>> tables, size_t parts) {
  for (const auto& table : tables) {
    Table& own = tables_.emplace_back();
    own.parts.resize(parts);
    own.shards = table->spec().shards;
    own.row_bytes = sizeof(Key) + table->recipe().floats(Section::rows) * sizeof(float);
  }
}

void ChangeSet::rows_changed(size_t part, size_t table, const Ticket& ticket) {
  Table& own = tables_[table];
  DirtyKeys& dirty = own.parts[part];
  const size_t before = dirty.size();
  for (const Key key : ticket.keys)
    if (ticket.part.has(key, own.shards)) dirty.add(key);
  bytes_ += (dirty.size() - before) * own.row_bytes;
}

void ChangeSet::clear() {
  for (Table& table : tables_) {
    for (DirtyKeys& part : table.parts) part.clear();
    table.replaced = false;
  }
  shrinks_.clear();
  bytes_ = 0;
  parameters_ = any_ = false;
}

}  // namespace argosy::ps
