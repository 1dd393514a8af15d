// What a client waits for, and for how long.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/ps/client.h"

namespace argosy::ps {
namespace {

constexpr Env::Duration kTick = std::chrono::milliseconds(500);
constexpr Env::Duration kPing = std::chrono::seconds(1);

double seconds(Env::Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

void Client::arm_timer() {
  timer_ = env_.schedule(std::min(kTick, options_.tolerance.quiet / 8), [weak = weak_from_this()] {
    if (const auto client = weak.lock()) {
      client->tick();
      client->arm_timer();
    }
  });
}

/// Time in which this process did not run: no server could be heard.
void Client::leave_out(Env::Duration time) {
  for (Channel& channel : channels_)
    for (Env::Time* each : {&channel.down_since, &channel.alive, &channel.heard}) *each += time;
}

/// Why there is no use in waiting for a server any longer; "": there is.
std::string Client::is_over_with(uint32_t server, Env::Time now) const {
  const Channel& channel = channels_[server];
  if (channel.state == State::ready) return "";
  const Tolerance& tolerance = options_.tolerance;
  const Env::Duration dead = std::max(tolerance.quiet, options_.away);
  const Env::Duration give_up = std::max(tolerance.give_up, options_.away);
  const auto words = [&](const char* how, Env::Duration limit) {
    return fmt::format("{} {} for {:g} s: {}", name(server), how, seconds(limit), channel.trouble);
  };
  if (channel.was_ready && now - channel.alive > dead) return words("is lost", dead);
  if (now - channel.down_since <= give_up) return "";
  return words(channel.was_ready ? "is lost" : "cannot be reached", give_up);
}

/// Pings, cuts silent links, gives up, and speaks of long waits.
void Client::tick() {
  std::exception_ptr broken;
  {
    const Lock lock(mutex_);
    if (failure_ != nullptr) return;
    const Env::Time now = env_.now();
    const Tolerance& tolerance = options_.tolerance;
    const Env::Duration pause = now - std::exchange(ticked_, now);
    if (pause > tolerance.quiet / 2) leave_out(pause);
    for (uint32_t server = 0; server < channels_.size(); ++server) {
      Channel& channel = channels_[server];
      const bool up = channel.state == State::ready || channel.state == State::greeting;
      if (up && now - channel.heard > tolerance.quiet) {
        channel.link->close(fmt::format("silent for {:g} s", seconds(tolerance.quiet)));
        continue;
      }
      if (up && now - channel.pinged >= std::min(kPing, tolerance.quiet / 4)) {
        channel.pinged = now;
        if (channel.state == State::ready)
          channel.link->send(small_frame(FrameKind::ping, 0, {}));
        else
          send_hello(server);
      }
      if (const std::string why = is_over_with(server, now); !why.empty())
        broken = std::make_exception_ptr(IoError(why));
      const auto since = waits_since(channel);
      if (!since || now - std::max(*since, channel.spoke) < tolerance.patience) continue;
      channel.spoke = now;
      const std::string& why = channel.state == State::ready ? channel.waits_for : channel.trouble;
      say(fmt::format("waits for {}{}{}", name(server), why.empty() ? "" : ": ", why));
    }
  }
  if (broken != nullptr) fail_all(broken);
}

/// Since when the oldest of what is wanted from a server has been waited for.
std::optional<Env::Time> Client::waits_since(const Channel& channel) const {
  std::optional<Env::Time> since;
  const auto also = [&](Env::Time time) { since = std::min(since.value_or(time), time); };
  if (channel.state != State::ready) also(channel.down_since);
  if (!channel.unanswered.empty()) also(channel.unanswered.front().since);
  if (!channel.asked.empty()) also(channel.asked.front().since);
  return since;
}

std::vector<ClientWait> Client::waits() const {
  const Lock lock(mutex_);
  std::vector<ClientWait> all;
  for (uint32_t server = 0; failure_ == nullptr && server < channels_.size(); ++server) {
    const Channel& channel = channels_[server];
    const auto since = waits_since(channel);
    if (!since) continue;
    ClientWait& wait = all.emplace_back(ClientWait{server, {}, *since});
    if (channel.state != State::ready)
      wait.what = fmt::format("{}{}{}", channel.was_ready ? "it is lost" : "it cannot be reached",
                              channel.trouble.empty() ? "" : ": ", channel.trouble);
    else if (!channel.asked.empty() && channel.asked.front().since == *since)
      wait.what = channel.asked.front().request.text;
    else
      wait.what = words_of(server, channel.unanswered.front());
  }
  return all;
}

std::string Client::words_of(uint32_t server, const Pending& pending) const {
  const auto has_keys = [&](const std::shared_ptr<const KeyLists>& lists, size_t set) {
    return lists != nullptr && !lists->keys(server, set).empty();
  };
  std::string tables;
  for (size_t i = 0; i < placement_.tables.size(); ++i) {
    const size_t set = placement_.key_sets[i];
    if ((pending.exchange != nullptr && has_keys(pending.exchange->lists, set)) ||
        std::ranges::any_of(pending.pushed,
                            [&](const auto& lists) { return has_keys(lists, set); }))
      tables += (tables.empty() ? ": rows of " : ", ") + placement_.tables[i].name;
  }
  if (pending.head.has(ExchangeHead::kPushDense) || pending.head.has(ExchangeHead::kPullDense))
    tables += tables.empty() ? ": parameters" : " and parameters";
  return fmt::format("exchange {}{}", pending.sequence, tables);
}

size_t Client::under_way() const {
  const Lock lock(mutex_);
  size_t most = 0;
  for (const Channel& channel : channels_) most = std::max(most, channel.unanswered.size());
  return early_.size() + most;
}

uint64_t Client::last_exchange() const {
  const Lock lock(mutex_);
  return sequence_;
}

Client::Staleness Client::staleness() const {
  const Lock lock(staleness_mutex_);
  return staleness_;
}

}  // namespace argosy::ps
