#include "argosy/ps/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <sstream>
#include <utility>

#include "argosy/base/error.h"

namespace argosy {
namespace {

constexpr auto kTick = std::chrono::milliseconds(500);
constexpr auto kPing = std::chrono::seconds(1);
constexpr auto kFirstPause = std::chrono::milliseconds(50);
constexpr auto kLongestPause = std::chrono::seconds(2);
constexpr auto kConnect = std::chrono::seconds(2);  // one attempt

double seconds(Env::Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

KeyLists::KeyLists(const Placement& placement, std::span<const std::vector<Key>> keys)
    : sets_(keys.size()), parts_(placement.servers * sets_) {
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
}

/// The link of one attempt to reach a server.
class PsClient::Events final : public LinkEvents {
 public:
  Events(std::weak_ptr<PsClient> client, uint32_t server, uint64_t attempt)
      : client_(std::move(client)), server_(server), attempt_(attempt) {}
  void on_frame(InFrame frame) override {
    if (const auto client = client_.lock()) client->on_frame(server_, attempt_, std::move(frame));
  }
  void on_close(const std::string& reason) override {
    if (const auto client = client_.lock()) client->on_close(server_, attempt_, reason);
  }

 private:
  std::weak_ptr<PsClient> client_;
  uint32_t server_;
  uint64_t attempt_;
};

std::shared_ptr<PsClient> PsClient::make(Env& env, Transport& transport, Placement placement,
                                         ClientOptions options) {
  std::shared_ptr<PsClient> client(
      new PsClient(env, transport, std::move(placement), std::move(options)));
  {
    const Lock lock(client->mutex_);
    for (uint32_t server = 0; server < client->placement_.servers; ++server)
      client->connect(server);
  }
  client->arm_timer();
  return client;
}

PsClient::PsClient(Env& env, Transport& transport, Placement placement, ClientOptions options)
    : env_(env),
      transport_(transport),
      placement_(std::move(placement)),
      options_(std::move(options)),
      incarnation_(env.random()),
      plan_hash_(placement_.hash()),
      channels_(placement_.servers) {
  check<ConfigError>(options_.servers.size() == placement_.servers, options_.servers.size(),
                     " server addresses for ", placement_.servers, " servers");
  for (uint32_t server = 0; server < placement_.servers; ++server) {
    shapes_.emplace_back(placement_, server);
    channels_[server].down_since = channels_[server].spoke = env_.now();
  }
  for (size_t i = 0, n = 0; i < placement_.tables.size(); ++i)
    dense_number_.push_back(placement_.is_sparse(i) ? n : n++);
}

PsClient::~PsClient() { env_.cancel(timer_); }

void PsClient::say(const std::string& text) const {
  if (options_.log) options_.log(fmt::format("worker {}: {}", options_.worker, text));
}

std::string PsClient::name(uint32_t server) const {
  return fmt::format("server {} at {}", server, options_.servers[server].text());
}

void PsClient::arm_timer() {
  timer_ = env_.schedule(kTick, [weak = weak_from_this()] {
    if (const auto client = weak.lock()) {
      client->tick();
      client->arm_timer();
    }
  });
}

void PsClient::connect(uint32_t server) {
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

void PsClient::connect_later(uint32_t server) {
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

std::shared_ptr<LinkEvents> PsClient::connected(uint32_t server, uint64_t attempt,
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
  channel.heard = channel.pinged = env_.now();
  send_hello(server);
  return std::make_shared<Events>(weak_from_this(), server, attempt);
}

void PsClient::send_hello(uint32_t server) {
  const Channel& channel = channels_[server];
  const std::deque<Pending>& unanswered = channel.unanswered;
  const Hello hello{.job = options_.job,
                    .plan_hash = plan_hash_,
                    .worker = options_.worker,
                    .workers = options_.workers,
                    .incarnation = incarnation_,
                    .inflight = options_.inflight,
                    .answered = unanswered.empty() ? sequence_ : unanswered.front().sequence - 1,
                    .restarts = options_.restarts,
                    .step = channel.step,
                    .milestone = channel.milestone,
                    .pass = channel.pass,
                    .paused = channel.paused};
  channel.link->send(small_frame(FrameKind::hello, 0, encode(hello)));
}

void PsClient::on_close(uint32_t server, uint64_t attempt, const std::string& reason) {
  const Lock lock(mutex_);
  Channel& channel = channels_[server];
  if (channel.attempt != attempt || failure_ != nullptr) return;
  if (channel.state == State::ready) {
    // A server that lets us in and then cuts every link is as good as gone.
    if (channel.useful) {
      channel.down_since = env_.now();
      channel.pause = {};
    }
    say(fmt::format("lost {}: {}; connecting again", name(server), reason));
  }
  channel.trouble = reason;
  connect_later(server);
}

void PsClient::on_frame(uint32_t server, uint64_t attempt, InFrame frame) {
  std::exception_ptr broken;
  try {
    {
      const Lock lock(mutex_);
      Channel& channel = channels_[server];
      if (channel.attempt != attempt || failure_ != nullptr) return;
      channel.heard = env_.now();
      if (frame.kind == FrameKind::welcome) return take_welcome(server, frame);
      if (frame.kind == FrameKind::pong) return take_pong(server, frame);
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

void PsClient::take_welcome(uint32_t server, const InFrame& frame) {
  Channel& channel = channels_[server];
  const Welcome welcome = decode_welcome(frame);
  check<DataError>(welcome.server == server, name(server), " says it is server ", welcome.server);
  channel.state = State::ready;
  if (!std::exchange(channel.was_ready, true)) channel.applied = welcome.applied;
  channel.useful = false;
  channel.waits_for.clear();
  if (std::exchange(channel.incarnation, welcome.incarnation) != welcome.incarnation && started_) {
    say(fmt::format("{} was started anew: what it held is lost, but for what it has loaded",
                    name(server)));
    channel.forgotten = sequence_;
  }
  send_all_again(server);
  if (started_ && welcome.applied < first_) send_hello(server);
  if (!started_ && std::ranges::all_of(channels_, &Channel::was_ready)) begin_behind_all();
}

/// A worker that was started again goes on behind what any server has of the process before it. A
/// server that has less is told by another hello.
void PsClient::begin_behind_all() {
  started_ = true;
  sequence_ = first_ = std::ranges::max(channels_, {}, &Channel::applied).applied;
  for (uint32_t server = 0; server < channels_.size(); ++server)
    if (channels_[server].applied < first_ && channels_[server].state == State::ready)
      send_hello(server);
  for (Early& early : early_) submit(std::move(early.exchange), std::move(early.parts));
  early_.clear();
}

void PsClient::send_all_again(uint32_t server) {
  for (Pending& pending : channels_[server].unanswered) send(server, pending, Keys::carried);
  send_control(server);
}

void PsClient::take_pong(uint32_t server, const InFrame& frame) {
  Channel& channel = channels_[server];
  const Pong pong = decode_pong(frame);
  channel.waits_for = pong.waits_for;
  channel.useful = true;
  if (channel.state != State::ready) return;
  if (pong.applied < first_) send_hello(server);
  // Whatever was sent before the ping has come, or is lost, and so are answers sent before the
  // pong. An exchange that the server holds is neither.
  for (Pending& pending : channel.unanswered) {
    if (pending.sent >= channel.pinged) break;
    if (pong.received < pending.sequence || pong.applied >= pending.sequence)
      send(server, pending, Keys::carried);
  }
  if (!channel.controls.empty() && channel.controls.front().sent < channel.pinged)
    send_control(server);
}

void PsClient::exchange(std::shared_ptr<Exchange> exchange) {
  std::vector<Pending> parts;
  parts.reserve(shapes_.size());
  for (uint32_t server = 0; server < shapes_.size(); ++server)
    parts.push_back(encode_for(server, *exchange));
  std::exception_ptr broken;
  {
    const Lock lock(mutex_);
    broken = failure_;
    if (broken == nullptr && started_)
      submit(exchange, std::move(parts));
    else if (broken == nullptr)
      early_.push_back({exchange, std::move(parts)});
  }
  if (broken != nullptr) exchange->done(broken);
}

void PsClient::submit(std::shared_ptr<Exchange> exchange, std::vector<Pending> parts) {
  const uint64_t sequence = ++sequence_;
  if (exchange->lists != nullptr) exchange->lists->number = sequence;
  const auto missing = std::make_shared<std::atomic<size_t>>(channels_.size());
  for (uint32_t server = 0; server < channels_.size(); ++server) {
    Channel& channel = channels_[server];
    Pending& pending = channel.unanswered.emplace_back(std::move(parts[server]));
    pending.sequence = pending.head.sequence = sequence;
    pending.since = pending.sent = env_.now();
    pending.exchange = exchange;
    pending.missing = missing;
    if (channel.state == State::ready) send(server, pending, Keys::named);
  }
}

/// Copies the gradients: the caller's memory is free when exchange() returns.
PsClient::Pending PsClient::encode_for(uint32_t server, const Exchange& exchange) {
  const ServerShape& shape = shapes_[server];
  Pending pending;
  ExchangeHead& head = pending.head;
  head.lists = static_cast<uint32_t>(exchange.pushes.size());
  const auto flag = [&](bool on, ExchangeHead::Flag value) { head.flags |= on ? value : 0U; };
  flag(!exchange.dense.empty(), ExchangeHead::kPushDense);
  flag(!exchange.parameters.empty(), ExchangeHead::kPullDense);
  flag(exchange.lists != nullptr, ExchangeHead::kPullRows);
  flag(exchange.ends_step, ExchangeHead::kEndsStep);
  flag(exchange.inference, ExchangeHead::kInference);

  size_t numbers = head.lists * (1 + shape.key_sets);
  if (exchange.lists != nullptr) numbers += shape.key_sets;
  pending.counts = buffers_.take(numbers * sizeof(uint64_t));
  auto* number = reinterpret_cast<uint64_t*>(pending.counts->bytes().data());
  for (const Exchange::Push& push : exchange.pushes) *number++ = push.lists->number;
  const auto count = [&](const KeyLists& lists) {
    for (size_t set = 0; set < shape.key_sets; ++set) *number++ = lists.keys(server, set).size();
  };
  if (exchange.lists != nullptr) count(*exchange.lists);
  for (const Exchange::Push& push : exchange.pushes) count(*push.lists);

  size_t floats = exchange.dense.empty() ? 0 : shape.dense_floats;
  for (const Exchange::Push& push : exchange.pushes) {
    pending.pushed.push_back(push.lists);
    for (size_t table = 0; table < shape.dims.size(); ++table)
      floats += push.lists->keys(server, shape.sets[table]).size() * shape.dims[table];
  }
  pending.floats = buffers_.take(floats * sizeof(float));
  take_floats(server, exchange, reinterpret_cast<float*>(pending.floats->bytes().data()));
  return pending;
}

void PsClient::take_floats(uint32_t server, const Exchange& exchange, float* to) const {
  const ServerShape& shape = shapes_[server];
  for (const Slice& slice : placement_.slices)
    if (slice.server == server && !exchange.dense.empty())
      to = std::copy_n(exchange.dense[dense_number_[slice.table]].data() + slice.begin,
                       slice.size(), to);
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

/// Of the pull, by key set; empty if there is none.
std::vector<size_t> PsClient::key_counts(uint32_t server, const Exchange& exchange) const {
  std::vector<size_t> counts;
  for (size_t set = 0; exchange.lists != nullptr && set < shapes_[server].key_sets; ++set)
    counts.push_back(exchange.lists->keys(server, set).size());
  return counts;
}

void PsClient::send(uint32_t server, Pending& pending, Keys keys) {
  OutFrame frame{.kind = FrameKind::exchange, .id = pending.sequence, .parts = {}, .owners = {}};
  auto head = std::make_shared<ExchangeHead>(pending.head);
  // Lists that were never pulled are not known to the server by number.
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
  if (pending.exchange->lists != nullptr) add_keys(pending.exchange->lists);
  if (keys == Keys::carried)
    for (const auto& lists : pending.pushed) add_keys(lists);
  frame.parts.emplace_back(pending.floats->bytes());
  frame.owners.push_back(pending.counts);
  frame.owners.push_back(pending.floats);
  frame.owners.push_back(std::move(head));
  pending.sent = env_.now();
  for (const auto& part : frame.parts) bytes_sent_ += part.size();
  channels_[server].link->send(std::move(frame));
}

void PsClient::take_reply(uint32_t server, const InFrame& frame) {
  Pending pending;
  std::shared_lock landing(landing_);
  {
    const Lock lock(mutex_);
    std::deque<Pending>& unanswered = channels_[server].unanswered;
    const auto found = std::ranges::find(unanswered, frame.id, &Pending::sequence);
    if (found == unanswered.end()) return;  // the answer to something sent twice
    // Checked before it counts as answered: what does not fit closes the link and comes again.
    const ReplyView view =
        parse_reply(frame.payload->bytes(), shapes_[server], !found->exchange->parameters.empty(),
                    key_counts(server, *found->exchange));
    channels_[server].step = std::max(channels_[server].step, view.head.step);
    pending = std::move(*found);
    unanswered.erase(found);
    channels_[server].useful = true;
  }
  bytes_received_ += frame.payload->size();
  land(server, pending, frame);
  landing.unlock();
  if (--*pending.missing == 0) pending.exchange->done(nullptr);
}

/// Puts the values where they belong. Servers write to different places.
void PsClient::land(uint32_t server, const Pending& pending, const InFrame& frame) const {
  Exchange& exchange = *pending.exchange;
  const ServerShape& shape = shapes_[server];
  const ReplyView view = parse_reply(frame.payload->bytes(), shape, !exchange.parameters.empty(),
                                     key_counts(server, exchange));
  const float* weights = view.dense.data();
  for (const Slice& slice : placement_.slices) {
    if (slice.server != server || view.dense.empty()) continue;
    std::copy_n(weights, slice.size(),
                exchange.parameters[dense_number_[slice.table]].data() + slice.begin);
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
  const std::scoped_lock lock(figures_mutex_);
  exchange.step = exchange.step == 0 ? view.head.step : std::min(exchange.step, view.head.step);
  exchange.staleness += view.head.staleness;
  exchange.stale_pushes += pending.pushed.size();
  staleness_.steps += view.head.staleness;
  staleness_.pushes += pending.pushed.size();
}

void PsClient::control(uint32_t server, Control control, OnResult on_result) {
  std::exception_ptr broken;
  {
    const Lock lock(mutex_);
    broken = failure_;
    if (broken == nullptr) {
      Channel& channel = channels_[server];
      channel.controls.push_back({++channel.last_control, control.line,
                                  std::make_shared<const std::vector<std::byte>>(encode(control)),
                                  on_result, env_.now(), env_.now()});
      if (channel.controls.size() == 1) send_control(server);
    }
  }
  if (broken != nullptr) on_result(broken, {});
}

void PsClient::send_control(uint32_t server) {
  Channel& channel = channels_[server];
  if (channel.controls.empty() || channel.state != State::ready) return;
  Asked& first = channel.controls.front();
  first.sent = env_.now();
  channel.link->send({FrameKind::control, first.id, {std::span(*first.bytes)}, {first.bytes}});
}

/// Of what the server has done and would forget if it were started anew.
void PsClient::note_result(Channel& channel, const std::string& line,
                           std::span<const std::byte> result) {
  const std::string text(reinterpret_cast<const char*>(result.data()), result.size());
  std::istringstream words(line == "standing" ? "milestone " + text : line);
  std::string verb;
  uint64_t number = 0;
  words >> verb >> number;
  if (verb == "milestone") channel.milestone = std::max(channel.milestone, number);
  if (verb == "join") channel.pass = std::max(channel.pass, number);
  if (verb == "join" || verb == "pause") channel.paused = verb == "pause";
}

void PsClient::take_result(uint32_t server, const InFrame& frame) {
  OnResult on_result;
  {
    const Lock lock(mutex_);
    Channel& channel = channels_[server];
    if (channel.controls.empty() || channel.controls.front().id != frame.id) return;
    check<DataError>(frame.payload->size() > 0, "an empty result");
    const auto bytes = static_cast<const Buffer&>(*frame.payload).bytes();
    if (bytes[0] == std::byte{0})
      note_result(channel, channel.controls.front().line, bytes.subspan(1));
    on_result = std::move(channel.controls.front().on_result);
    channel.controls.pop_front();
    channel.useful = true;
    if (!channel.controls.empty()) channel.controls.front().since = env_.now();
    send_control(server);
  }
  const auto bytes = static_cast<const Buffer&>(*frame.payload).bytes();
  std::vector<std::byte> result(bytes.begin() + 1, bytes.end());
  if (bytes[0] == std::byte{0}) return on_result(nullptr, std::move(result));
  const std::string why(reinterpret_cast<const char*>(result.data()), result.size());
  on_result(std::make_exception_ptr(Error(fmt::format("{}: {}", name(server), why))), {});
}

/// Pings, cuts silent links, gives up, and speaks of long waits.
void PsClient::tick() {
  std::exception_ptr broken;
  {
    const Lock lock(mutex_);
    if (failure_ != nullptr) return;
    const Env::Time now = env_.now();
    for (uint32_t server = 0; server < channels_.size(); ++server) {
      Channel& channel = channels_[server];
      const bool up = channel.state == State::ready || channel.state == State::greeting;
      if (up && now - channel.heard > options_.quiet) {
        channel.link->close(fmt::format("silent for {:g} s", seconds(options_.quiet)));
        continue;
      }
      if (up && now - channel.pinged >= kPing) {
        channel.pinged = now;
        if (channel.state == State::ready)
          channel.link->send(small_frame(FrameKind::ping, 0, {}));
        else
          send_hello(server);
      }
      if (channel.state != State::ready) {
        const Env::Duration limit = channel.was_ready ? options_.give_up : options_.connect_within;
        if (now - channel.down_since > limit)
          broken = std::make_exception_ptr(
              IoError(fmt::format("{} {} for {:g} s: {}", name(server),
                                  channel.was_ready ? "is lost" : "cannot be reached",
                                  seconds(limit), channel.trouble)));
      }
      const auto since = waits_since(channel);
      if (!since || now - std::max(*since, channel.spoke) < options_.patience) continue;
      channel.spoke = now;
      const std::string& why = channel.state == State::ready ? channel.waits_for : channel.trouble;
      say(fmt::format("waits for {}{}{}", name(server), why.empty() ? "" : ": ", why));
    }
  }
  if (broken != nullptr) fail_all(broken);
}

void PsClient::fail_all(std::exception_ptr why) {
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
        if (std::ranges::find(exchanges, pending.exchange) == exchanges.end())
          exchanges.push_back(pending.exchange);
      for (Asked& asked : channel.controls) results.push_back(std::move(asked.on_result));
      channel.unanswered.clear();
      channel.controls.clear();

      if (channel.link != nullptr) links.push_back(channel.link);
      channel.link.reset();
    }
  }
  for (const auto& link : links) link->close("the client ends");
  { const std::unique_lock landed(landing_); }  // nobody writes into the exchanges any more
  for (const auto& exchange : exchanges) exchange->done(why);
  for (const OnResult& on_result : results) on_result(why, {});
}

void PsClient::close() { fail_all(std::make_exception_ptr(IoError("the client was closed"))); }

}  // namespace argosy
