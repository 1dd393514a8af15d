#include "argosy/ps/row_table.h"

#include <algorithm>

#include "argosy/base/call.h"
#include "argosy/base/error.h"
#include "argosy/base/mutex.h"

namespace argosy::ps {

std::unique_ptr<RowTable> make_row_table(const TableSpec& spec, const TableHome& home) {
  const Call settings(spec.store);
  std::vector<std::string> names;
  for (const TablePlugin& plugin : builtin_tables()) {
    if (plugin.name == settings.name()) return plugin.make(spec, settings, home);
    names.push_back(plugin.name);
  }
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  const std::string near = nearest(settings.name(), names);
  fail<ConfigError>("table '", spec.name, "': store '", spec.store, "' is not known",
                    near.empty() ? "" : "; did you mean " + near + "?", " There are: ", known);
}

void await(RowTable& table, Ticket& ticket) {
  while (!table.ready(ticket)) {
    Mutex mutex;
    CondVar changed;
    bool is_ready = false;
    table.when_ready(ticket, [&] {
      const Lock lock(mutex);
      is_ready = true;
      changed.notify_one();  // under the lock: the waiter's frame goes when it has seen it
    });
    const Lock lock(mutex);
    changed.wait(mutex, [&] { return is_ready; });
  }
}

void read_rows(RowTable& table, std::span<const Key> keys, const RowColumns& columns,
               Purpose purpose, std::span<float> rows, Ticket& ticket) {
  table.locate(keys, columns, {}, ticket);
  await(table, ticket);
  table.read(ticket, purpose, rows);
}

void apply_located(RowTable& table, Ticket& ticket, std::span<const float> grads, uint64_t step) {
  await(table, ticket);
  table.apply(ticket, grads, step);
}

std::vector<float> peek(RowTable& table, std::span<const Key> keys) {
  Ticket ticket;
  std::vector<float> rows(keys.size() * table.spec().dim);
  read_rows(table, keys, Purpose::inference, rows, ticket);
  return rows;
}

}  // namespace argosy::ps
