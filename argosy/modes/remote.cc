#include "argosy/modes/remote.h"

#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/bytes.h"
#include "argosy/base/error.h"
#include "argosy/modes/dense_pieces.h"
#include "argosy/modes/row_columns_of.h"
#include "argosy/ps/rule.h"

namespace argosy {

Remote::Remote(int lookahead, const Plan& plan, const Strategy& strategy, const Wires& wires)
    : Communicator(lookahead, wires.replays),
      plan_(plan),
      strategy_(strategy),
      client_(wires.servers),
      states_(plan),
      store_(plan, states_, *client_) {
  for (const ps::ParameterSpec& spec : plan.parameters)
    shapes_.push_back(plan.worker.var(plan.worker.find(spec.name)).type.shape);
  states_.set_shared(strategy.threads > 1);
}

std::unique_ptr<Lane> Remote::make_lane() {
  return std::make_unique<LaneOf<Remote, Flight>>(*this);
}

void Remote::set_threads(int threads) {
  strategy_.threads = threads;
  states_.set_shared(threads > 1);
}

/// An exchange that will bring the batch its parameters and rows.
std::shared_ptr<ps::Exchange> Remote::pull_of(Batch& batch, ps::Purpose purpose) {
  auto exchange = std::make_shared<ps::Exchange>();
  if (!batch.keys.empty())
    exchange->lists =
        std::make_shared<ps::KeyLists>(client_->placement(), batch.keys, row_columns(batch));
  exchange->inference = purpose == ps::Purpose::inference;
  for (size_t i = 0; i < shapes_.size(); ++i) {
    Tensor& feed = batch.feeds[plan_.parameters[i].name];
    feed.renew(shapes_[i], DType::f32);
    exchange->parameters.push_back(feed.as<float>());
  }
  for (size_t i = 0; i < plan_.tables.size(); ++i) {
    const ps::TableSpec& spec = plan_.tables[i];
    Tensor& feed = batch.feeds[spec.name];
    const size_t rows = batch.keys[plan_.key_sets[i]].size();
    feed.renew({static_cast<int64_t>(rows), static_cast<int64_t>(spec.dim)}, DType::f32);
    exchange->rows.push_back(feed.as<float>());
  }
  return exchange;
}

void Remote::prepare(Flight& own, Batch& batch) {
  own.exchange = pull_of(batch, ps::Purpose::training);
  own.lists = own.exchange->lists;
  own.arrival = nullptr;
  prepared(own);
}

std::shared_ptr<Arrival> Remote::arrival_of(Flight& own) {
  if (own.arrival == nullptr) own.arrival = begin(*client_, own.exchange);
  return own.arrival;
}

void Remote::fetch(Flight& own, Batch& batch, ps::Purpose purpose) {
  clear_gradients(plan_, batch);
  states_.fetch(batch);
  if (purpose == ps::Purpose::inference) {
    begin(*client_, pull_of(batch, purpose))->wait();
    return;
  }
  if (own.exchange == nullptr) prepare(own, batch);
  arrival_of(own)->wait();
  note(*own.exchange);
}

void Remote::deliver(Batch& batch, const Edge& edge, const Tensor& value) {
  put_value(batch, edge, value);
}

void Remote::commit(Flight& own, Batch& batch) {
  if (!batch.replayed) push(own, batch);
  own.exchange = nullptr;
  states_.commit(batch);
}

void Remote::finish_gradients(Batch& batch) {
  check_gradients(plan_, batch);
  clip_.apply(batch);
}

void Remote::add_push(ps::Exchange& exchange, const Flight& own, const Batch& batch) const {
  exchange.dense.insert(exchange.dense.end(), batch.grads.begin(), batch.grads.end());
  if (own.lists != nullptr)
    exchange.pushes.push_back({.lists = own.lists, .grads = batch.row_grads});
  exchange.trained = std::max(exchange.trained, batch.trained);
}

void Remote::note(const ps::Exchange& exchange) {
  if (exchange.stale_pushes == 0) return;
  const Lock lock(notes_mutex_);
  staleness_ += exchange.staleness;
  pushes_ += exchange.stale_pushes;
  longest_ = std::max(longest_, exchange.staleness / exchange.stale_pushes);
}

std::vector<std::string> Remote::notes() {
  const Lock lock(notes_mutex_);
  if (pushes_ == 0) return {};
  return {fmt::format("staleness: {:.2f} steps on average, {} at most",
                      static_cast<double>(staleness_) / static_cast<double>(pushes_), longest_)};
}

void Remote::secure() { call_all(*client_, ps::verbs::Secure{}); }

void Remote::pass(Pass event) {
  if (event != Pass::leave) return;
  drain();
  call_all(*client_, ps::verbs::Leave{});
  client_->close();
}

RemoteStore::RemoteStore(const Plan& plan, const WorkerStates& states, ps::Client& client)
    : plan_(plan), states_(states), client_(client) {}

std::vector<NamedTensor> RemoteStore::persistables() {
  const ps::Placement& placement = client_.placement();
  const auto answers = call_all(client_, ps::verbs::ReadParameters{});
  std::vector<Tensor> parameters, optimizers;
  for (const ps::ParameterSpec& spec :
       placement.parameters) {  // rules may be others than the plan's
    parameters.emplace_back(plan_.worker.var(plan_.worker.find(spec.name)).type.shape, DType::f32);
    const size_t state = ps::make_rule(spec.rule)->state_size(spec.elements);
    optimizers.emplace_back(Shape{static_cast<int64_t>(state)});
  }
  uint64_t step = 0;
  for (uint32_t server = 0; server < answers.size(); ++server) {
    step = std::max(step, answers[server].step);
    std::span<const float> values = answers[server].values;
    for (const DensePiece& piece : dense_pieces(placement, server)) {
      Tensor& whole = piece.is_state ? optimizers[piece.parameter] : parameters[piece.parameter];
      check<DataError>(values.size() >= piece.size, "parameters of server ", server,
                       ": there are too few");
      std::ranges::copy(values.first(piece.size), whole.as<float>().begin() + piece.begin);
      values = values.subspan(piece.size);
    }
  }
  std::vector<NamedTensor> all;
  for (size_t i = 0; i < parameters.size(); ++i)
    all.push_back({plan_.parameters[i].name, parameters[i]});
  for (NamedTensor& state : states_.tensors()) all.push_back(std::move(state));
  for (size_t i = 0; i < optimizers.size(); ++i)
    if (optimizers[i].numel() > 0)
      all.push_back({plan_.parameters[i].name + "@state", optimizers[i]});
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
  const ps::Placement& placement = client_.placement();
  std::vector<ps::verbs::WriteParameters> writes(placement.servers);
  for (uint32_t server = 0; server < placement.servers; ++server) {
    writes[server].step = static_cast<uint64_t>(value("@step").as<int64_t>()[0]);
    for (const DensePiece& piece : dense_pieces(placement, server)) {
      const Tensor whole = value(piece.name(placement));
      const auto part = whole.as<float>().subspan(piece.begin, piece.size);
      writes[server].values.insert(writes[server].values.end(), part.begin(), part.end());
    }
  }
  call_each(client_, writes);
}

std::vector<std::string> RemoteStore::sparse_tables() const {
  std::vector<std::string> names;
  for (const ps::TableSpec& spec : plan_.tables) names.push_back(spec.name);
  return names;
}

SavedTables RemoteStore::save(Env&, const std::string& folder, uint64_t generation) {
  SavedTables saved;
  for (const auto& answer : call_all(client_, ps::verbs::Save{generation, folder}))
    saved.files.insert(saved.files.end(), answer.files.begin(), answer.files.end());
  for (const ps::ServerMark& mark : call_all(client_, ps::verbs::Mark{}))
    saved.marks.push_back(mark.text());
  return saved;
}

void RemoteStore::load(Env&, const std::string& folder, std::span<const ps::SavedTable> tables) {
  if (tables.empty()) return;
  call_all(client_, ps::verbs::Load{folder, {tables.begin(), tables.end()}});
}

std::function<void()> RemoteStore::prepare_cut() {
  const std::vector<ps::Request> requests(client_.placement().servers,
                                          ps::request_of(ps::verbs::PrepareCut{}));
  return [answers = begin_each(client_, requests)] { answers(); };
}

std::function<SavedCut()> RemoteStore::begin_cut(const std::string& folder) {
  const ps::verbs::Cut verb{.folder = folder, .behind = client_.last_exchange()};
  const std::vector<ps::Request> requests(client_.placement().servers, ps::request_of(verb));
  SavedCut cut{.states = states_.copies()};
  for (const ps::ParameterSpec& spec : plan_.parameters)
    cut.shapes.emplace_back(spec.name, plan_.worker.var(plan_.worker.find(spec.name)).type.shape);
  return [cut = std::move(cut), answers = begin_each(client_, requests)]() mutable {
    for (const auto& bytes : answers()) {
      auto answer = ps::answer_of<ps::verbs::Cut>(bytes);
      cut.late |= answer.late;
      cut.parts.push_back(std::move(answer.part));
      cut.tables.insert(cut.tables.end(), answer.tables.begin(), answer.tables.end());
      cut.marks.push_back(std::move(answer.mark));
      cut.bytes += answer.bytes;
      cut.added += answer.added;
    }
    return std::move(cut);
  };
}

TableRows RemoteStore::rows(const std::string& name) {
  const auto spec = std::ranges::find(plan_.tables, name, &ps::TableSpec::name);
  check<ConfigError>(spec != plan_.tables.end(), "no table '", name, "'");
  RowsByKey all(spec->dim);
  for (uint32_t server = 0; server < client_.placement().servers; ++server) {
    ps::verbs::ReadRows page{.table = name, .from = {}};
    while (!page.from.at_end) {
      ps::verbs::ReadRows::Result answer = call(client_, server, page);
      page.from = answer.next;
      all.add(answer.keys, std::move(answer.rows));
    }
  }
  return all.take();
}

size_t RemoteStore::shrink(uint32_t unseen) {
  size_t erased = 0;
  for (const auto& answer : call_all(client_, ps::verbs::Shrink{unseen})) erased += answer.erased;
  return erased;
}

}  // namespace argosy
