#include "argosy/ps/exchange_job.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "argosy/base/error.h"

namespace argosy::ps {
namespace {

constexpr size_t kMaxReply = size_t{1} << 30;  // bytes, as LinkOptions::max_frame
constexpr size_t kSmall = size_t{1} << 14;     // floats: some 2,000 rows

size_t pulled_floats(const Shard& shard, const ExchangeView& view) {
  const ServerShape& shape = shard.shape();
  size_t floats = view.head.has(ExchangeHead::kPullDense) ? shape.dense_floats : 0;
  for (size_t i = 0; !view.pull.empty() && i < shard.tables(); ++i)
    floats += view.pull[shape.sets[i]].size() * shape.dims[i];
  return floats;
}

size_t pushed_floats(const ExchangeView& view) {
  size_t floats = view.dense.size();
  for (const ExchangeView::List& list : view.lists)
    for (const auto& grads : list.grads) floats += grads.size();
  return floats;
}

}  // namespace

std::shared_ptr<TakenExchange> take_exchange(const Shard& shard, InFrame frame) {
  auto exchange = std::make_shared<TakenExchange>();
  exchange->frame = std::move(frame);
  exchange->view = parse_exchange(exchange->frame.payload->bytes(), shard.shape());
  const size_t floats = pulled_floats(shard, exchange->view);
  check<DataError>(floats <= kMaxReply / sizeof(float) - sizeof(ReplyHead), "a reply of ", floats,
                   " floats does not fit into a frame: use smaller batches");
  return exchange;
}

void check_lists(const Shard& shard, TakenExchange& exchange) {
  const ServerShape& shape = shard.shape();
  exchange.pushes.resize(exchange.view.lists.size());
  for (size_t i = 0; i < exchange.pushes.size(); ++i) {
    const ExchangeView::List& list = exchange.view.lists[i];
    KeptLists::List* const kept = exchange.lists->find(list.number, exchange.view.head.sequence);
    if (!list.keys.empty() || shape.key_sets == 0) continue;
    check<DataError>(kept != nullptr, "exchange ", exchange.view.head.sequence, " pushes list ",
                     list.number, ", which is not kept any more");
    for (size_t set = 0; set < shape.key_sets; ++set)
      check<DataError>(kept->counts[set] == list.counts[set], "list ", list.number, " has ",
                       kept->counts[set], " keys, ", list.counts[set], " were pushed");
    exchange.pushes[i].kept = kept;
  }
}

std::unique_ptr<StepMemory::Step> StepMemory::take() {
  const Lock lock(mutex_);
  if (spare_.empty()) return std::make_unique<Step>();
  auto step = std::move(spare_.back());
  spare_.pop_back();
  return step;
}

void StepMemory::give_back(std::unique_ptr<Step> step) {
  const Lock lock(mutex_);
  spare_.push_back(std::move(step));
}

ExchangeJob::ExchangeJob(Shard& shard, BufferPool& buffers, StepMemory& memory,
                         std::vector<std::shared_ptr<TakenExchange>> exchanges, uint64_t step,
                         OnDone on_done)
    : shard_(shard),
      memory_(memory),
      exchanges_(std::move(exchanges)),
      step_(step),
      on_done_(std::move(on_done)),
      progress_(shard.parts()) {
  size_t floats = 0;
  for (const auto& exchange : exchanges_) {
    prepare_reply(*exchange, buffers);
    floats += pulled_floats(shard_, exchange->view) + pushed_floats(exchange->view);
    for (size_t i = 0; i < exchange->pushes.size(); ++i)
      if (exchange->pushes[i].kept == nullptr)
        exchange->pushes[i].carried.resize(shard_.tables() * shard_.parts());
  }
  if (floats >= kSmall) size_ = Lanes::Size::large;
  if (exchanges_.size() < 2) return;
  mean_ = memory_.take();
  mean_->parts.resize(shard_.parts());
  for (StepMemory::Part& part : mean_->parts) {
    part.sums.resize(shard_.tables());
    part.tickets.resize(shard_.tables());
  }
  mean_->gradients.resize(shard_.shape().dense_floats);
}

ExchangeJob::~ExchangeJob() {
  if (mean_ != nullptr) memory_.give_back(std::move(mean_));
}

void ExchangeJob::prepare_reply(TakenExchange& exchange, BufferPool& buffers) {
  const size_t floats = pulled_floats(shard_, exchange.view);
  exchange.reply = buffers.take(sizeof(ReplyHead) + floats * sizeof(float));
  if (exchange.view.pull.empty()) return;
  const ExchangeHead& head = exchange.view.head;
  KeptLists::List& list = head.has(ExchangeHead::kInference) ? exchange.inference
                                                             : exchange.lists->renew(head.sequence);
  list.step = step_;
  list.counts.clear();
  for (const auto& keys : exchange.view.pull) list.counts.push_back(keys.size());
  list.tickets.resize(shard_.tables() * shard_.parts());
  exchange.pulled = &list;
}

std::span<float> ExchangeJob::reply_floats(const TakenExchange& exchange) const {
  const auto bytes = exchange.reply->bytes().subspan(sizeof(ReplyHead));
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

bool ExchangeJob::advance(size_t part, const Resume& resume) try {
  return go_on(part, resume);
} catch (const std::exception& e) {
  fail_with(e.what());
  return true;
}

void ExchangeJob::fail_with(const std::string& why) {
  const Lock lock(mutex_);
  if (trouble_.empty()) trouble_ = why;
}

bool ExchangeJob::go_on(size_t part, const Resume& resume) {
  if (!std::exchange(progress_[part].begun, true)) begin(part);
  return push_rows(part, resume) && pull_rows(part, resume);
}

void ExchangeJob::begin(size_t part) {
  locate_pulls(part);  // rows that are far away come while the pushes are applied
  if (mean_ != nullptr) {
    begin_mean(part);
  } else if (TakenExchange& one = *exchanges_[0]; one.applies) {
    if (one.view.head.has(ExchangeHead::kPushDense))
      shard_.apply_parameters(part, one.view.dense, step_);
    for (size_t i = 0; i < one.pushes.size(); ++i) {
      if (one.pushes[i].kept != nullptr) continue;
      for (size_t table = 0; table < shard_.tables(); ++table)
        locate(table, one.view.lists[i].keys, one.view.lists[i].columns, part,
               push_ticket(one.pushes[i], table, part));
    }
  }
  for (const auto& exchange : exchanges_)
    if (exchange->view.head.has(ExchangeHead::kPullDense))
      shard_.read_parameters(part, reply_floats(*exchange).first(shard_.shape().dense_floats));
}

void ExchangeJob::locate(size_t table, std::span<const std::span<const Key>> keys,
                         std::span<const RowColumns> columns, size_t part, Ticket& ticket) {
  const size_t set = shard_.shape().sets[table];
  shard_.table(table).locate(keys[set], columns[set], shard_.part(part), ticket);
}

void ExchangeJob::locate_pulls(size_t part) {
  for (const auto& exchange : exchanges_) {
    if (exchange->pulled == nullptr) continue;
    for (size_t table = 0; table < shard_.tables(); ++table)
      locate(table, exchange->view.pull, exchange->view.pull_columns, part,
             pull_ticket(*exchange, table, part));
  }
}

/// Adds up what the part takes of all exchanges, applies the parameters, and locates the rows.
void ExchangeJob::begin_mean(size_t part) {
  const float share = 1.0F / static_cast<float>(exchanges_.size());
  bool first = true;
  float* const sums = mean_->gradients.data();
  const auto ranges = shard_.parameter_ranges(part);
  for (const auto& exchange : exchanges_) {
    if (!exchange->view.head.has(ExchangeHead::kPushDense)) continue;
    const float* const grads = exchange->view.dense.data();
    for (const Shard::Range& range : ranges) {
      const size_t end = range.begin + range.size;
      if (first)
        for (size_t i = range.begin; i < end; ++i) sums[i] = grads[i] * share;
      else
        for (size_t i = range.begin; i < end; ++i) sums[i] += grads[i] * share;
    }
    first = false;
  }
  if (!first) shard_.apply_parameters(part, mean_->gradients, step_);
  for (size_t table = 0; table < shard_.tables(); ++table) {
    const size_t set = shard_.shape().sets[table];
    size_t most = 0;
    for (const auto& exchange : exchanges_)
      for (const ExchangeView::List& list : exchange->view.lists) most += list.counts[set];
    RowSums& rows = mean_->parts[part].sums[table];
    rows.begin(shard_.table(table).spec(), shard_.part(part), most);
    for (const auto& exchange : exchanges_)
      for (size_t i = 0; i < exchange->pushes.size(); ++i) {
        const ExchangeView::List& list = exchange->view.lists[i];
        const KeptLists::List* const kept = exchange->pushes[i].kept;
        if (kept == nullptr) {
          rows.add(list.keys[set], list.columns[set], list.grads[table], share);
          continue;
        }
        const Ticket& ticket = kept->tickets[table * shard_.parts() + part];
        rows.add(ticket.keys, ticket.columns(), list.grads[table], share);
      }
    shard_.table(table).locate(rows.keys(), rows.columns(), shard_.part(part),
                               mean_->parts[part].tickets[table]);
  }
}

Ticket& ExchangeJob::push_ticket(TakenExchange::Push& push, size_t table, size_t part) {
  std::vector<Ticket>& tickets = push.kept != nullptr ? push.kept->tickets : push.carried;
  return tickets[table * shard_.parts() + part];
}

Ticket& ExchangeJob::pull_ticket(TakenExchange& exchange, size_t table, size_t part) {
  return exchange.pulled->tickets[table * shard_.parts() + part];
}

/// Whether it is ready; if not, the lane goes on when it is.
bool ExchangeJob::wait_for(RowTable& table, Ticket& ticket, const Resume& resume) {
  if (table.ready(ticket)) return true;
  table.when_ready(ticket, resume);
  return false;
}

bool ExchangeJob::push_rows(size_t part, const Resume& resume) {
  size_t& done = progress_[part].pushed;
  const size_t tables = shard_.tables();
  const size_t lists = mean_ != nullptr         ? 1
                       : exchanges_[0]->applies ? exchanges_[0]->pushes.size()
                                                : 0;
  for (; done < lists * tables; ++done) {
    const size_t list = done / tables, number = done % tables;
    RowTable& table = shard_.table(number);
    Ticket& ticket = mean_ != nullptr ? mean_->parts[part].tickets[number]
                                      : push_ticket(exchanges_[0]->pushes[list], number, part);
    if (!wait_for(table, ticket, resume)) return false;
    table.apply(ticket,
                mean_ != nullptr ? mean_->parts[part].sums[number].grads()
                                 : exchanges_[0]->view.lists[list].grads[number],
                step_);
    if (ChangeSet* const changes = shard_.changes()) changes->rows_changed(part, number, ticket);
  }
  return true;
}

bool ExchangeJob::pull_rows(size_t part, const Resume& resume) {
  size_t& done = progress_[part].pulled;
  const ServerShape& shape = shard_.shape();
  const size_t tables = shard_.tables();
  for (; done < exchanges_.size() * tables; ++done) {
    TakenExchange& exchange = *exchanges_[done / tables];
    if (exchange.pulled == nullptr) continue;
    const size_t number = done % tables;
    RowTable& table = shard_.table(number);
    Ticket& ticket = pull_ticket(exchange, number, part);
    if (!wait_for(table, ticket, resume)) return false;
    size_t begin = exchange.view.head.has(ExchangeHead::kPullDense) ? shape.dense_floats : 0;
    for (size_t i = 0; i < number; ++i)
      begin += exchange.view.pull[shape.sets[i]].size() * shape.dims[i];
    const size_t floats = exchange.view.pull[shape.sets[number]].size() * shape.dims[number];
    table.read(
        ticket,
        exchange.view.head.has(ExchangeHead::kInference) ? Purpose::inference : Purpose::training,
        reply_floats(exchange).subspan(begin, floats));
  }
  return true;
}

void ExchangeJob::finish() {
  std::string trouble;
  {
    const Lock lock(mutex_);
    trouble = trouble_;
  }
  on_done_(*this, trouble);
}

}  // namespace argosy::ps
