// What a client waits for.
#include <fmt/format.h>

#include <algorithm>

#include "argosy/ps/client.h"

namespace argosy {

/// Since when the oldest of what is wanted from a server has been waited for.
std::optional<Env::Time> PsClient::waits_since(const Channel& channel) const {
  std::optional<Env::Time> since;
  const auto also = [&](Env::Time time) { since = std::min(since.value_or(time), time); };
  if (channel.state != State::ready) also(channel.down_since);
  if (!channel.unanswered.empty()) also(channel.unanswered.front().since);
  if (!channel.controls.empty()) also(channel.controls.front().since);
  return since;
}

std::vector<ClientWait> PsClient::waits() const {
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
    else if (!channel.controls.empty() && channel.controls.front().since == *since)
      wait.what = channel.controls.front().line;
    else
      wait.what = words_of(server, channel.unanswered.front());
  }
  return all;
}

std::string PsClient::words_of(uint32_t server, const Pending& pending) const {
  const auto has_keys = [&](const std::shared_ptr<const KeyLists>& lists, size_t set) {
    return lists != nullptr && !lists->keys(server, set).empty();
  };
  std::string tables;
  for (size_t i = 0; i < placement_.tables.size(); ++i) {
    const size_t set = placement_.key_sets[i];
    if (!placement_.is_sparse(i)) continue;
    if (has_keys(pending.exchange->lists, set) ||
        std::ranges::any_of(pending.pushed,
                            [&](const auto& lists) { return has_keys(lists, set); }))
      tables += (tables.empty() ? ": rows of " : ", ") + placement_.tables[i].name;
  }
  if (pending.head.has(ExchangeHead::kPushDense) || pending.head.has(ExchangeHead::kPullDense))
    tables += tables.empty() ? ": parameters" : " and parameters";
  return fmt::format("exchange {}{}", pending.sequence, tables);
}

size_t PsClient::under_way() const {
  const Lock lock(mutex_);
  size_t most = 0;
  for (const Channel& channel : channels_) most = std::max(most, channel.unanswered.size());
  return early_.size() + most;
}

PsClient::Staleness PsClient::staleness() const {
  const std::scoped_lock lock(figures_mutex_);
  return staleness_;
}

}  // namespace argosy
