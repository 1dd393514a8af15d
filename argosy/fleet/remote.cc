#include "argosy/fleet/remote.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "argosy/base/bytes.h"
#include "argosy/base/error.h"
#include "argosy/fleet/dense_pieces.h"
#include "argosy/ps/rule.h"

namespace argosy {
namespace {

std::shared_ptr<PsClient> checked(const Wires& wires, const Strategy& strategy) {
  check<ConfigError>(wires.servers != nullptr, "mode '", strategy.mode, "' needs servers");
  return wires.servers;
}

}  // namespace

Remote::Remote(int lookahead, const Plan& plan, const Strategy& strategy, const Wires& wires)
    : Communicator(lookahead),
      plan_(plan),
      strategy_(strategy),
      client_(checked(wires, strategy)),
      states_(plan),
      store_(plan, states_, *client_) {
  states_.set_shared(strategy.threads > 1);
}

void Remote::set_threads(int threads) {
  strategy_.threads = threads;
  states_.set_shared(threads > 1);
}

Remote::Flight& Remote::flight(Batch& batch) {
  if (batch.carried == nullptr) batch.carried = std::make_unique<Flight>();
  return static_cast<Flight&>(*batch.carried);
}

std::shared_ptr<Exchange> Remote::pull_of(Batch& batch, Purpose purpose) {
  auto exchange = std::make_shared<Exchange>();
  if (!batch.keys.empty())
    exchange->lists = std::make_shared<KeyLists>(client_->placement(), batch.keys);
  exchange->inference = purpose == Purpose::inference;
  for (size_t i = 0; i < plan_.tables.size(); ++i) {
    const TableSpec& spec = plan_.tables[i];
    Tensor& feed = batch.feeds[spec.name];
    if (spec.elements > 0) {
      feed.renew(plan_.worker.var(plan_.worker.find(spec.name)).type.shape, DType::f32);
      exchange->parameters.push_back(feed.as<float>());
      continue;
    }
    const size_t rows = batch.keys[plan_.key_sets[i]].size();
    feed.renew({static_cast<int64_t>(rows), static_cast<int64_t>(spec.dim)}, DType::f32);
    exchange->rows.push_back(feed.as<float>());
  }
  return exchange;
}

std::shared_ptr<Arrival> Remote::arrival_of(Batch& batch) {
  Flight& own = flight(batch);
  if (own.arrival == nullptr) own.arrival = begin(*client_, own.exchange);
  return own.arrival;
}

void Remote::fetch(Batch& batch, Purpose purpose) {
  batch.grads.assign(plan_.tables.size(), {});
  states_.fetch(batch);
  if (purpose == Purpose::inference) {
    begin(*client_, pull_of(batch, purpose))->wait();
    return;
  }
  Flight& own = flight(batch);
  if (own.exchange == nullptr) prepare(batch);
  arrival_of(batch)->wait();
  note(*own.exchange);
}

void Remote::deliver(Batch& batch, const Edge& edge, const Tensor& value) {
  if (edge.kind == VarKind::state)
    WorkerStates::deliver(batch, edge, value);
  else
    batch.grads[edge.target] = value.as<float>();
}

void Remote::finish_gradients(Batch& batch) {
  for (size_t i = 0; i < plan_.tables.size(); ++i)
    check<Error>(batch.grads[i].data() != nullptr || batch.size == 0,
                 "no gradient was delivered for '", plan_.tables[i].name, "'");
  if (!plan_.clip.empty()) clip_.apply(batch.grads);
}

void Remote::add_push(Exchange& exchange, Batch& batch) const {
  Exchange::Push push{.lists = flight(batch).lists, .grads = {}};
  for (size_t i = 0; i < plan_.tables.size(); ++i) {
    if (plan_.tables[i].elements > 0)
      exchange.dense.push_back(batch.grads[i]);
    else
      push.grads.push_back(batch.grads[i]);
  }
  if (push.lists != nullptr) exchange.pushes.push_back(std::move(push));
}

void Remote::note(const Exchange& exchange) {
  if (exchange.stale_pushes == 0) return;
  const std::scoped_lock lock(notes_mutex_);
  staleness_ += exchange.staleness;
  pushes_ += exchange.stale_pushes;
  longest_ = std::max(longest_, exchange.staleness / exchange.stale_pushes);
}

std::vector<std::string> Remote::notes() {
  const std::scoped_lock lock(notes_mutex_);
  if (pushes_ == 0) return {};
  return {fmt::format("staleness: {:.2f} steps on average, {} at most",
                      static_cast<double>(staleness_) / static_cast<double>(pushes_), longest_)};
}

void Remote::pass(Pass event) {
  if (event != Pass::leave) return;
  drain();
  call_all(*client_, {Control{"leave"}});
  client_->close();
}

RemoteStore::RemoteStore(const Plan& plan, const WorkerStates& states, PsClient& client)
    : plan_(plan), states_(states), client_(client) {}

std::vector<NamedTensor> RemoteStore::persistables() {
  const Placement& placement = client_.placement();
  const auto answers = call_all(client_, {Control{"dense"}});
  std::vector<Tensor> parameters(plan_.tables.size()), optimizers(plan_.tables.size());
  for (size_t i = 0; i < plan_.tables.size(); ++i) {
    const TableSpec& spec = placement.tables[i];  // whose rule may be another than the plan's
    if (spec.elements == 0) continue;
    parameters[i] = Tensor(plan_.worker.var(plan_.worker.find(spec.name)).type.shape, DType::f32);
    optimizers[i] = Tensor({static_cast<int64_t>(make_rule(spec.rule)->state_size(spec.elements))});
  }
  uint64_t step = 0;
  for (uint32_t server = 0; server < answers.size(); ++server) {
    ByteSource in(answers[server], fmt::format("parameters of server {}", server));
    step = std::max(step, in.get<uint64_t>());
    for (const DensePiece& piece : dense_pieces(placement, server)) {
      Tensor& whole = piece.is_state ? optimizers[piece.table] : parameters[piece.table];
      in.get_all(whole.as<float>().subspan(piece.begin, piece.size));
    }
  }
  std::vector<NamedTensor> all;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].numel() > 0) all.push_back({plan_.tables[i].name, parameters[i]});
  for (NamedTensor& state : states_.tensors()) all.push_back(std::move(state));
  for (size_t i = 0; i < optimizers.size(); ++i)
    if (optimizers[i].numel() > 0) all.push_back({plan_.tables[i].name + "@state", optimizers[i]});
  Tensor counter({1}, DType::i64);
  counter.as<int64_t>()[0] = static_cast<int64_t>(step);
  all.push_back({"@step", counter});
  return all;
}

void RemoteStore::restore(const std::vector<NamedTensor>& values) {
  const auto value = [&](const std::string& name) {
    const auto found = std::ranges::find(values, name, &NamedTensor::name);
    check<DataError>(found != values.end(), "no value for '", name, "'");
    return found->value;
  };
  const Placement& placement = client_.placement();
  std::vector<Control> controls(placement.servers);
  for (uint32_t server = 0; server < placement.servers; ++server) {
    ByteBuffer out;
    out.put(static_cast<uint64_t>(value("@step").as<int64_t>()[0]));
    for (const DensePiece& piece : dense_pieces(placement, server)) {
      const Tensor whole = value(piece.name(placement));
      out.put_all(whole.as<float>().subspan(piece.begin, piece.size));
    }
    controls[server] = {"set_dense", {out.bytes().begin(), out.bytes().end()}};
  }
  call_all(client_, controls);
}

std::vector<std::string> RemoteStore::sparse_tables() const {
  std::vector<std::string> names;
  for (const TableSpec& spec : plan_.tables)
    if (spec.elements == 0) names.push_back(spec.name);
  return names;
}

SavedTables RemoteStore::save(Env&, const std::string& folder, uint64_t generation) {
  SavedTables saved;
  for (const auto& answer :
       call_all(client_, {Control{fmt::format("save {} {}", generation, folder)}})) {
    std::istringstream lines(text_of(answer));
    SavedTable table;
    while (lines >> table.table >> table.file) saved.files.push_back(table);
  }
  for (const auto& answer : call_all(client_, {Control{"mark"}}))
    saved.marks.push_back(text_of(answer));
  return saved;
}

void RemoteStore::load(Env&, const std::string& folder, std::span<const SavedTable> tables) {
  if (tables.empty()) return;
  std::string lines;
  for (const SavedTable& table : tables) lines += fmt::format("{} {}\n", table.table, table.file);
  const auto bytes = std::as_bytes(std::span(lines));
  call_all(client_, {Control{"load " + folder, {bytes.begin(), bytes.end()}}});
}

TableRows RemoteStore::rows(const std::string& name) {
  const auto spec = std::ranges::find(plan_.tables, name, &TableSpec::name);
  check<ConfigError>(spec != plan_.tables.end(), "no table '", name, "'");
  struct Row {
    Key key;
    const float* values;
  };
  std::vector<Row> all;
  const auto answers = call_all(client_, {Control{"rows " + name}});
  std::vector<std::vector<float>> values;  // a server's rows, aligned
  values.reserve(answers.size());
  for (const auto& answer : answers) {
    ByteSource in(answer, "rows of " + name);
    std::vector<Key> keys(in.get<uint64_t>());
    in.get_all(std::span(keys));
    values.emplace_back(keys.size() * spec->dim);
    in.get_all(std::span(values.back()));
    for (size_t i = 0; i < keys.size(); ++i)
      all.push_back({keys[i], values.back().data() + i * spec->dim});
  }
  std::ranges::sort(all, {}, &Row::key);
  TableRows result;
  result.rows =
      Tensor({static_cast<int64_t>(all.size()), static_cast<int64_t>(spec->dim)}, DType::f32);
  float* to = result.rows.as<float>().data();
  for (const Row& row : all) {
    result.keys.push_back(row.key);
    to = std::copy_n(row.values, spec->dim, to);
  }
  return result;
}

size_t RemoteStore::shrink(uint32_t unseen) {
  size_t erased = 0;
  for (const auto& answer : call_all(client_, {Control{fmt::format("shrink {}", unseen)}}))
    erased += std::stoull(text_of(answer));
  return erased;
}

}  // namespace argosy
