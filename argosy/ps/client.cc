#include "argosy/ps/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

#include "argosy/base/error.h"

namespace argosy::ps {
namespace {

constexpr auto kFirstPause = std::chrono::milliseconds(50);
constexpr auto kLongestPause = std::chrono::seconds(2);
constexpr auto kConnect = std::chrono::seconds(2);  // one attempt
// Between steps that all servers record:
constexpr auto kLead = std::chrono::milliseconds(250);
constexpr size_t kLeadBytes = size_t{8} << 20;

}  // namespace

KeyLists::KeyLists(const Placement& placement, std::span<const std::vector<Key>> keys,
                   std::span<const RowColumns> columns)
    : sets_(keys.size()), parts_(placement.servers * sets_), columns_(placement.servers) {
  for (size_t set = 0; set < sets_; ++set) {
    if (placement.servers == 1) {
      parts_[set].keys = keys[set];
      continue;
    }
    for (uint32_t server = 0; server < placement.servers; ++server) {
      Part& part = parts_[server * sets_ + set];
      const size_t about = keys[set].size() / placement.servers;
      part.keys.reserve(about + about / 4);
      part.places.reserve(about + about / 4);
    }
    for (uint32_t place = 0; place < keys[set].size(); ++place) {
      Part& part = parts_[placement.server_of(keys[set][place]) * sets_ + set];
      part.keys.push_back(keys[set][place]);
      part.places.push_back(place);
    }
  }
  const ServerShape shape(placement, 0);
  if (std::ranges::none_of(shape.columns, &ServerShape::Wanted::counts)) return;
  for (uint32_t server = 0; server < placement.servers; ++server)
    add_columns(shape, server, columns);
}

/// Missing columns get the defaults of RowColumns.
void KeyLists::add_columns(const ServerShape& shape, uint32_t server,
                           std::span<const RowColumns> columns) {
  std::vector<uint32_t>& out = columns_[server];
  for (size_t set = 0; set < sets_; ++set) {
    const RowColumns given = columns.empty() ? RowColumns{} : columns[set];
    const size_t n = keys(server, set).size();
    const auto place = [&](size_t i) {
      return places(server, set).empty() ? i : places(server, set)[i];
    };
    const auto count = [&](size_t i) { return given.counts.empty() ? 1 : given.counts[place(i)]; };
    if (shape.columns[set].counts)
      for (size_t i = 0; i < n; ++i) out.push_back(count(i));
    if (!shape.columns[set].scores) continue;
    for (size_t i = 0; i < n; ++i)
      out.push_back(std::bit_cast<uint32_t>(given.shows.empty() ? static_cast<float>(count(i))
                                                                : given.shows[place(i)]));
    for (size_t i = 0; i < n; ++i)
      out.push_back(std::bit_cast<uint32_t>(given.clicks.empty() ? 0.0F : given.clicks[place(i)]));
  }
}

/// The link of one attempt to reach a server.
class Client::Events final : public LinkEvents {
 public:
  Events(std::weak_ptr<Client> client, uint32_t server, uint64_t attempt)
      : client_(std::move(client)), server_(server), attempt_(attempt) {}
  void on_frame(InFrame frame) override {
    if (const auto client = client_.lock()) client->on_frame(server_, attempt_, std::move(frame));
  }
  void on_part() override {
    if (const auto client = client_.lock()) client->on_part(server_, attempt_);
  }
  void on_close(const std::string& reason) override {
    if (const auto client = client_.lock()) client->on_close(server_, attempt_, reason);
  }

 private:
  std::weak_ptr<Client> client_;
  uint32_t server_;
  uint64_t attempt_;
};

std::shared_ptr<Client> Client::make(Env& env, Transport& transport, Placement placement,
                                     ClientOptions options) {
  if (options.metrics == nullptr) options.metrics = std::make_shared<Metrics>();
  std::shared_ptr<Client> client(
      new Client(env, transport, std::move(placement), std::move(options)));
  {
    const Lock lock(client->mutex_);
    for (uint32_t server = 0; server < client->placement_.servers; ++server)
      client->connect(server);
  }
  client->arm_timer();
  return client;
}

Client::Client(Env& env, Transport& transport, Placement placement, ClientOptions options)
    : env_(env),
      transport_(transport),
      placement_(std::move(placement)),
      options_(std::move(options)),
      incarnation_(env.random()),
      plan_hash_(placement_.hash()),
      metrics_(*options_.metrics),
      channels_(placement_.servers),
      ticked_(env.now()) {
  check<ConfigError>(options_.servers.size() == placement_.servers, options_.servers.size(),
                     " server addresses for ", placement_.servers, " servers");
  for (uint32_t server = 0; server < placement_.servers; ++server) {
    shapes_.emplace_back(placement_, server);
    Channel& channel = channels_[server];
    channel.down_since = channel.alive = channel.spoke = env_.now();
  }
}

Client::~Client() { env_.cancel(timer_); }

void Client::say(const std::string& text) const {
  if (options_.log) options_.log(fmt::format("worker {}: {}", options_.worker, text));
}

std::string Client::name(uint32_t server) const {
  return fmt::format("server {} at {}", server, options_.servers[server].text());
}

void Client::connect(uint32_t server) {
  Channel& channel = channels_[server];
  channel.state = State::connecting;
  const uint64_t attempt = ++channel.attempt;
  transport_.connect(
      options_.servers[server], kConnect,
      [weak = weak_from_this(), server, attempt](
          std::shared_ptr<Link> link, const std::string& error) -> std::shared_ptr<LinkEvents> {
        const auto client = weak.lock();
        if (client == nullptr) return nullptr;
        return client->connected(server, attempt, std::move(link), error);
      });
}

void Client::connect_later(uint32_t server) {
  Channel& channel = channels_[server];
  channel.state = State::down;
  channel.link.reset();
  channel.pause = std::clamp<Env::Duration>(channel.pause * 2, kFirstPause, kLongestPause);
  const uint64_t attempt = ++channel.attempt;
  env_.schedule(channel.pause, [weak = weak_from_this(), server, attempt] {
    const auto client = weak.lock();
    if (client == nullptr) return;
    const Lock lock(client->mutex_);
    if (client->channels_[server].attempt == attempt && client->failure_ == nullptr)
      client->connect(server);
  });
}

std::shared_ptr<LinkEvents> Client::connected(uint32_t server, uint64_t attempt,
                                              std::shared_ptr<Link> link,
                                              const std::string& error) {
  const Lock lock(mutex_);
  Channel& channel = channels_[server];
  if (channel.attempt != attempt || failure_ != nullptr) {
    if (link != nullptr) link->close("not wanted any more");
    return nullptr;
  }
  if (link == nullptr) {
    channel.trouble = error;
    connect_later(server);
    return nullptr;
  }
  channel.link = link;
  channel.state = State::greeting;
  channel.heard = channel.pinged = channel.alive = env_.now();
  send_hello(server);
  return std::make_shared<Events>(weak_from_this(), server, attempt);
}

void Client::send_hello(uint32_t server) {
  const Channel& channel = channels_[server];
  uint64_t next = sequence_ + 1;  // the first that can be sent again
  for (const std::deque<Pending>* list : {&channel.unanswered, &channel.kept})
    if (!list->empty()) next = std::min(next, list->front().sequence);
  const Hello hello{.job = options_.job,
                    .plan_hash = plan_hash_,
                    .worker = options_.worker,
                    .workers = options_.workers,
                    .incarnation = incarnation_,
                    .inflight = options_.inflight,
                    .answered = next - 1,
                    .restarts = options_.restarts,
                    .step = channel.step,
                    .milestone = channel.known.milestone,
                    .pass = channel.known.pass,
                    .paused = channel.known.paused,
                    .gathered = channel.known.gathered,
                    .settled = settled_,
                    .first = first_};
  channel.link->send(small_frame(FrameKind::hello, 0, encode(hello)));
}

void Client::on_close(uint32_t server, uint64_t attempt, const std::string& reason) {
  const Lock lock(mutex_);
  Channel& channel = channels_[server];
  if (channel.attempt != attempt || failure_ != nullptr) return;
  if (channel.state == State::ready) {
    // A server that welcomes us and then cuts every link counts as down all the time.
    if (channel.useful) {
      channel.down_since = channel.alive = env_.now();
      channel.pause = {};
    }
    say(fmt::format("lost {}: {}; connecting again", name(server), reason));
  }
  channel.trouble = reason;
  connect_later(server);
}

void Client::on_part(uint32_t server, uint64_t attempt) {
  const Lock lock(mutex_);
  if (channels_[server].attempt == attempt) channels_[server].heard = env_.now();
}

void Client::on_frame(uint32_t server, uint64_t attempt, InFrame frame) {
  std::exception_ptr broken;
  try {
    {
      const Lock lock(mutex_);
      Channel& channel = channels_[server];
      if (channel.attempt != attempt || failure_ != nullptr) return;
      channel.heard = env_.now();
      if (frame.kind == FrameKind::welcome) return take_welcome(server, frame);
      if (frame.kind == FrameKind::pong) return take_pong(server, frame);
      if (frame.kind == FrameKind::offers) return take_offers(server, frame);
      if (frame.kind == FrameKind::durable) return let_go(channel, frame.id);
      if (frame.kind == FrameKind::error) {
        channel.trouble = text_of(frame);
        if (frame.id == static_cast<uint64_t>(Severity::final))
          broken = std::make_exception_ptr(
              ConfigError(fmt::format("{} refuses: {}", name(server), channel.trouble)));
        else
          channel.link->close(channel.trouble);
      }
    }
    if (frame.kind == FrameKind::reply) return take_reply(server, frame);
    if (frame.kind == FrameKind::result) return take_result(server, frame);
    if (broken != nullptr) fail_all(broken);
  } catch (const Error& e) {
    const Lock lock(mutex_);
    if (channels_[server].attempt == attempt && channels_[server].link != nullptr)
      channels_[server].link->close(e.what());
  }
}

void Client::take_welcome(uint32_t server, const InFrame& frame) {
  Channel& channel = channels_[server];
  const Welcome welcome = decode_welcome(frame);
  check<DataError>(welcome.server == server, name(server), " says it is server ", welcome.server);
  channel.state = State::ready;
  channel.settled = welcome.settled;
  channel.recovered = welcome.journal != 0;
  if (!std::exchange(channel.was_ready, true)) channel.applied = welcome.applied;
  channel.useful = false;
  channel.waits_for.clear();
  if (std::exchange(channel.incarnation, welcome.incarnation) != welcome.incarnation && started_) {
    channel.forgotten = sequence_;
    if (welcome.journal != 0) {
      let_go(channel, welcome.applied);
      const size_t again = take_back_kept(server);
      say(
          fmt::format("{} was started again and has its journal, up to exchange {}; {} of those "
                      "behind it are sent again",
                      name(server), welcome.applied, again));
    } else {
      say(fmt::format("{} was started anew: what it held is lost, but for what it has loaded",
                      name(server)));
      let_go(channel, sequence_);
    }
  }
  send_all_again(server);
  if (started_ && welcome.applied < first_) send_hello(server);
  if (!started_ && std::ranges::all_of(channels_, &Channel::was_ready)) begin_behind_all();
  if (!started_) settle_if_all_have_spoken();
}

/// A restarted worker continues behind the highest sequence that any server has of the earlier
/// incarnation. Servers that have less are told by another hello.
void Client::begin_behind_all() {
  started_ = true;
  sequence_ = first_ = std::ranges::max(channels_, {}, &Channel::applied).applied;
  for (uint32_t server = 0; server < channels_.size(); ++server)
    if (channels_[server].applied < first_ && channels_[server].state == State::ready)
      send_hello(server);
  submit_early();
}

bool Client::may_submit() const { return started_ && kept_bytes_ < options_.keep_bytes; }

void Client::submit_early() {
  while (!early_.empty() && may_submit()) {
    Early early = std::move(early_.front());
    early_.pop_front();
    submit(std::move(early.exchange), std::move(early.parts));
  }
}

void Client::keep(Channel& channel, const Pending& answered) {
  // Nearly always the last: a step that the group ends may be answered out of turn.
  auto place = channel.kept.end();
  while (place != channel.kept.begin() && std::prev(place)->sequence > answered.sequence) --place;
  Pending& kept = *channel.kept.insert(place, answered);
  kept.exchange = nullptr;
  kept.missing = nullptr;
  kept_bytes_ += kept.bytes();
}

/// The server's journal has everything up to `durable`.
void Client::let_go(Channel& channel, uint64_t durable) {
  channel.durable = std::max(channel.durable, durable);
  while (!channel.kept.empty() && channel.kept.front().sequence <= channel.durable) {
    kept_bytes_ -= channel.kept.front().bytes();
    channel.kept.pop_front();
  }
  submit_early();
}

/// Puts what the server may have lost in front of what it has not answered, without the pulls;
/// returns how many.
size_t Client::take_back_kept(uint32_t server) {
  Channel& channel = channels_[server];
  const size_t again = channel.kept.size();
  for (auto kept = channel.kept.rbegin(); kept != channel.kept.rend(); ++kept) {
    kept_bytes_ -= kept->bytes();
    ExchangeHead& head = kept->head;
    if (head.has(ExchangeHead::kPullRows)) {
      // The numbers of lists, the keys of the pull, the keys of the lists: the second go.
      const auto before = kept->counts->bytes();
      const size_t lists = head.lists * sizeof(uint64_t);
      const size_t pull = shapes_[server].key_sets * sizeof(uint64_t);
      auto counts = buffers_.take(before.size() - pull);
      std::ranges::copy(before.first(lists), counts->bytes().begin());
      std::ranges::copy(before.subspan(lists + pull),
                        counts->bytes().begin() + static_cast<std::ptrdiff_t>(lists));
      kept->counts = std::move(counts);
    }
    head.flags &=
        ~uint32_t{ExchangeHead::kPullRows | ExchangeHead::kPullDense | ExchangeHead::kInference};
    channel.unanswered.push_front(std::move(*kept));
  }
  channel.kept.clear();
  channel.again += again;
  return again;
}

void Client::send_all_again(uint32_t server) {
  for (Pending& pending : channels_[server].unanswered) send(server, pending, Keys::carried);
  send_request(server);
}

void Client::take_pong(uint32_t server, const InFrame& frame) {
  Channel& channel = channels_[server];
  const Pong pong = decode_pong(frame);
  channel.waits_for = pong.waits_for;
  channel.useful = true;
  if (channel.state != State::ready) return;
  if (pong.applied < first_) send_hello(server);
  // Links are ordered: an exchange sent before the ping has arrived or is lost, and so is a reply
  // sent before the pong. An exchange that the server still holds is not sent again.
  for (Pending& pending : channel.unanswered) {
    if (pending.sent >= channel.pinged) break;
    if (pong.received < pending.sequence || pong.applied >= pending.sequence)
      send(server, pending, Keys::carried);
  }
  if (!channel.asked.empty() && channel.asked.front().sent < channel.pinged) send_request(server);
}

void Client::exchange(std::shared_ptr<Exchange> exchange) {
  std::vector<Pending> parts;
  parts.reserve(shapes_.size());
  for (uint32_t server = 0; server < shapes_.size(); ++server)
    parts.push_back(encode_for(server, *exchange));
  std::exception_ptr broken;
  {
    const Lock lock(mutex_);
    broken = failure_;
    if (broken == nullptr && early_.empty() && may_submit())
      submit(exchange, std::move(parts));
    else if (broken == nullptr)
      early_.push_back({exchange, std::move(parts)});
  }
  if (broken != nullptr) exchange->done(broken);
}

void Client::submit(std::shared_ptr<Exchange> exchange, std::vector<Pending> parts) {
  const uint64_t sequence = ++sequence_;
  metrics_.exchanges.add();
  for (const Pending& part : parts) unled_ += part.bytes();
  const bool leads = leads_record(*exchange);
  if (exchange->lists != nullptr) exchange->lists->number = sequence;
  const auto missing = std::make_shared<std::atomic<size_t>>(channels_.size());
  for (uint32_t server = 0; server < channels_.size(); ++server) {
    Channel& channel = channels_[server];
    Pending& pending = channel.unanswered.emplace_back(std::move(parts[server]));
    pending.sequence = pending.head.sequence = sequence;
    if (leads && pending.head.has(ExchangeHead::kEndsStep))
      pending.head.flags |= ExchangeHead::kRecord;
    pending.since = pending.sent = env_.now();
    pending.exchange = exchange;
    pending.missing = missing;
    if (channel.state == State::ready) send(server, pending, Keys::named);
  }
}

/// Whether the step that it ends is to be in the journals of all servers, which can go on together
/// there.
bool Client::leads_record(const Exchange& exchange) {
  if (options_.worker != 0 || !exchange.ends_step) return false;
  const Env::Time now = env_.now();
  if (now - led_ < kLead && unled_ < std::min(kLeadBytes, options_.keep_bytes / 4)) return false;
  led_ = now;
  unled_ = 0;
  return true;
}

/// Copies the gradients: the caller's memory is free when exchange() returns.
Client::Pending Client::encode_for(uint32_t server, const Exchange& exchange) {
  const ServerShape& shape = shapes_[server];
  Pending pending;
  ExchangeHead& head = pending.head;
  const bool had =
      server < had_.size() && exchange.trained.pass > 0 && exchange.trained <= had_[server];
  const std::span<const Exchange::Push> pushes =
      had ? std::span<const Exchange::Push>() : std::span(exchange.pushes);
  const bool pushes_dense = !exchange.dense.empty() && !had;
  head.lists = static_cast<uint32_t>(pushes.size());
  head.trained = exchange.trained;
  const auto flag = [&](bool on, ExchangeHead::Flag value) { head.flags |= on ? value : 0U; };
  flag(pushes_dense, ExchangeHead::kPushDense);
  flag(!exchange.parameters.empty(), ExchangeHead::kPullDense);
  flag(exchange.lists != nullptr, ExchangeHead::kPullRows);
  flag(exchange.ends_step && !had, ExchangeHead::kEndsStep);
  flag(exchange.inference, ExchangeHead::kInference);

  size_t numbers = head.lists * (1 + shape.key_sets);
  if (exchange.lists != nullptr) numbers += shape.key_sets;
  pending.counts = buffers_.take(numbers * sizeof(uint64_t));
  auto* number = reinterpret_cast<uint64_t*>(pending.counts->bytes().data());
  for (const Exchange::Push& push : pushes) *number++ = push.lists->number;
  const auto count = [&](const KeyLists& lists) {
    for (size_t set = 0; set < shape.key_sets; ++set) *number++ = lists.keys(server, set).size();
  };
  if (exchange.lists != nullptr) count(*exchange.lists);
  for (const Exchange::Push& push : pushes) count(*push.lists);

  size_t floats = pushes_dense ? shape.dense_floats : 0;
  for (const Exchange::Push& push : pushes) {
    pending.pushed.push_back(push.lists);
    for (size_t table = 0; table < shape.dims.size(); ++table)
      floats += push.lists->keys(server, shape.sets[table]).size() * shape.dims[table];
  }
  pending.floats = buffers_.take(floats * sizeof(float));
  if (!had) take_floats(server, exchange, reinterpret_cast<float*>(pending.floats->bytes().data()));
  return pending;
}

void Client::take_floats(uint32_t server, const Exchange& exchange, float* to) const {
  const ServerShape& shape = shapes_[server];
  for (const Slice& slice : placement_.slices)
    if (slice.server == server && !exchange.dense.empty())
      to = std::copy_n(exchange.dense[slice.parameter].data() + slice.begin, slice.size(), to);
  for (const Exchange::Push& push : exchange.pushes) {
    for (size_t table = 0; table < shape.dims.size(); ++table) {
      const size_t dim = shape.dims[table], set = shape.sets[table];
      const float* const from = push.grads[table].data();
      if (placement_.servers == 1) {
        to = std::copy_n(from, push.lists->keys(server, set).size() * dim, to);
        continue;
      }
      for (const uint32_t place : push.lists->places(server, set))
        to = std::copy_n(from + place * dim, dim, to);
    }
  }
}

/// Keys of the pull, by key set; empty if there is none.
std::vector<size_t> Client::key_counts(uint32_t server, const Exchange& exchange) const {
  std::vector<size_t> counts;
  for (size_t set = 0; exchange.lists != nullptr && set < shapes_[server].key_sets; ++set)
    counts.push_back(exchange.lists->keys(server, set).size());
  return counts;
}

void Client::send(uint32_t server, Pending& pending, Keys keys) {
  OutFrame frame{.kind = FrameKind::exchange, .id = pending.sequence, .parts = {}, .owners = {}};
  auto head = std::make_shared<ExchangeHead>(pending.head);
  // The server does not know lists by number that were never pulled, or pulled before it started.
  const uint64_t forgotten = channels_[server].forgotten;
  if (std::ranges::any_of(pending.pushed,
                          [&](const auto& lists) { return lists->number <= forgotten; }))
    keys = Keys::carried;
  if (keys == Keys::carried && !pending.pushed.empty()) head->flags |= ExchangeHead::kCarriesKeys;
  frame.parts.push_back(std::as_bytes(std::span(head.get(), 1)));
  frame.parts.emplace_back(pending.counts->bytes());
  const auto add_keys = [&](const std::shared_ptr<const KeyLists>& lists) {
    for (size_t set = 0; set < shapes_[server].key_sets; ++set)
      frame.parts.push_back(std::as_bytes(lists->keys(server, set)));
    frame.owners.push_back(lists);
  };
  const Exchange* const exchange = pending.exchange.get();
  const bool pulls_rows = exchange != nullptr && exchange->lists != nullptr;
  if (pulls_rows) add_keys(exchange->lists);
  if (keys == Keys::carried)
    for (const auto& lists : pending.pushed) add_keys(lists);
  frame.parts.emplace_back(pending.floats->bytes());
  const auto add_columns = [&](const KeyLists& lists) {
    if (!lists.columns(server).empty()) frame.parts.push_back(lists.columns(server));
  };
  if (pulls_rows) add_columns(*exchange->lists);
  if (keys == Keys::carried)
    for (const auto& lists : pending.pushed) add_columns(*lists);
  frame.owners.push_back(pending.counts);
  frame.owners.push_back(pending.floats);
  frame.owners.push_back(std::move(head));
  pending.sent = env_.now();
  for (const auto& part : frame.parts) metrics_.sent.add(part.size());
  channels_[server].link->send(std::move(frame));
}

void Client::take_reply(uint32_t server, const InFrame& frame) {
  Pending pending;
  ReplyView view;  // over the frame
  std::shared_lock landing(landing_);
  {
    const Lock lock(mutex_);
    std::deque<Pending>& unanswered = channels_[server].unanswered;
    const auto found = std::ranges::find(unanswered, frame.id, &Pending::sequence);
    if (found == unanswered.end()) return;  // the answer to something sent twice
    // Checked before it counts as answered: what does not fit closes the link and comes again.
    const Exchange none;
    const Exchange& exchange = found->exchange != nullptr ? *found->exchange : none;
    view = parse_reply(frame.payload->bytes(), shapes_[server], !exchange.parameters.empty(),
                       key_counts(server, exchange));
    channels_[server].step = std::max(channels_[server].step, view.head.step);
    pending = std::move(*found);
    unanswered.erase(found);
    channels_[server].useful = true;
    if (pending.exchange == nullptr && --channels_[server].again == 0) send_request(server);
    if (view.head.durable < pending.sequence) keep(channels_[server], pending);
    let_go(channels_[server], view.head.durable);
  }
  metrics_.received.add(frame.payload->size());
  if (pending.exchange == nullptr) return;
  land(server, pending, view);
  landing.unlock();
  if (--*pending.missing == 0) pending.exchange->done(nullptr);
}

/// Copies the values to their spans. Servers write to disjoint places.
void Client::land(uint32_t server, const Pending& pending, const ReplyView& view) const {
  Exchange& exchange = *pending.exchange;
  const ServerShape& shape = shapes_[server];
  const float* weights = view.dense.data();
  for (const Slice& slice : placement_.slices) {
    if (slice.server != server || view.dense.empty()) continue;
    std::copy_n(weights, slice.size(), exchange.parameters[slice.parameter].data() + slice.begin);
    weights += slice.size();
  }
  for (size_t table = 0; table < view.rows.size(); ++table) {
    const size_t dim = shape.dims[table], set = shape.sets[table];
    float* const to = exchange.rows[table].data();
    if (placement_.servers == 1) {
      std::ranges::copy(view.rows[table], to);
      continue;
    }
    const float* from = view.rows[table].data();
    for (const uint32_t place : exchange.lists->places(server, set)) {
      std::copy_n(from, dim, to + place * dim);
      from += dim;
    }
  }
  const Lock lock(staleness_mutex_);
  exchange.step = exchange.step == 0 ? view.head.step : std::min(exchange.step, view.head.step);
  exchange.staleness += view.head.staleness;
  exchange.stale_pushes += pending.pushed.size();
  staleness_.steps += view.head.staleness;
  staleness_.pushes += pending.pushed.size();
}

void Client::ask(uint32_t server, Request request, OnResult on_result) {
  std::exception_ptr broken;
  {
    const Lock lock(mutex_);
    broken = failure_;
    if (broken == nullptr) {
      Channel& channel = channels_[server];
      auto bytes = std::make_shared<const std::vector<std::byte>>(encode(request));
      channel.asked.push_back({++channel.last_asked, std::move(request), std::move(bytes),
                               on_result, env_.now(), env_.now()});
      if (channel.asked.size() == 1) send_request(server);
    }
  }
  if (broken != nullptr) on_result(broken, {});
}

void Client::send_request(uint32_t server) {
  Channel& channel = channels_[server];
  if (channel.asked.empty() || channel.state != State::ready || channel.again > 0) return;
  Asked& first = channel.asked.front();
  first.sent = env_.now();
  channel.link->send({FrameKind::control, first.id, {std::span(*first.bytes)}, {first.bytes}});
}

void Client::take_result(uint32_t server, const InFrame& frame) {
  OnResult on_result;
  {
    const Lock lock(mutex_);
    Channel& channel = channels_[server];
    if (channel.asked.empty() || channel.asked.front().id != frame.id) return;
    check<DataError>(frame.payload->size() > 0, "an empty result");
    const auto bytes = static_cast<const Buffer&>(*frame.payload).bytes();
    const Request& request = channel.asked.front().request;
    if (bytes[0] == std::byte{0} && request.note) request.note(channel.known, bytes.subspan(1));
    on_result = std::move(channel.asked.front().on_result);
    channel.asked.pop_front();
    channel.useful = true;
    if (!channel.asked.empty()) channel.asked.front().since = env_.now();
    send_request(server);
  }
  const auto bytes = static_cast<const Buffer&>(*frame.payload).bytes();
  std::vector<std::byte> result(bytes.begin() + 1, bytes.end());
  if (bytes[0] == std::byte{0}) return on_result(nullptr, std::move(result));
  const std::string why(reinterpret_cast<const char*>(result.data()), result.size());
  on_result(std::make_exception_ptr(Error(fmt::format("{}: {}", name(server), why))), {});
}

void Client::fail_all(std::exception_ptr why) {
  std::vector<std::shared_ptr<Exchange>> exchanges;
  std::vector<OnResult> results;
  std::vector<std::shared_ptr<Link>> links;
  {
    const Lock lock(mutex_);
    if (failure_ != nullptr) return;
    failure_ = why;
    for (Early& early : early_) exchanges.push_back(std::move(early.exchange));
    early_.clear();
    for (Channel& channel : channels_) {
      for (Pending& pending : channel.unanswered)
        if (pending.exchange != nullptr &&
            std::ranges::find(exchanges, pending.exchange) == exchanges.end())
          exchanges.push_back(pending.exchange);
      for (Asked& each : channel.asked) results.push_back(std::move(each.on_result));
      channel.unanswered.clear();
      channel.kept.clear();
      channel.again = 0;
      channel.asked.clear();
      if (channel.link != nullptr) links.push_back(channel.link);
      channel.link.reset();
    }
  }
  for (const auto& link : links) link->close("the client ends");
  { const std::unique_lock landed(landing_); }  // nobody writes into the exchanges any more
  for (const auto& exchange : exchanges) exchange->done(why);
  for (const OnResult& on_result : results) on_result(why, {});
}

void Client::close() { fail_all(std::make_exception_ptr(IoError("the client was closed"))); }

}  // namespace argosy::ps
