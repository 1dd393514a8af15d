// The workers of a job that was lost as a whole: worker 0 hears what all servers offer and says
// where they go on.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "argosy/base/error.h"
#include "argosy/ps/client.h"

namespace argosy::ps {

uint64_t Client::settled() const {
  const Lock lock(mutex_);
  return std::ranges::max(channels_, {}, &Channel::settled).settled;
}

bool Client::recovered(uint32_t server) const {
  const Lock lock(mutex_);
  return channels_[server].recovered;
}

void Client::servers_have(std::vector<Trained> had) { had_ = std::move(had); }

void Client::take_offers(uint32_t server, const InFrame& frame) {
  Channel& channel = channels_[server];
  Offers offers = decode_offers(frame);
  check<DataError>(offers.server == server, name(server), " says it is server ", offers.server);
  if (channel.state != State::greeting) return;
  if (offers.places.empty()) return send_hello(server);
  channel.trouble = "it waits for worker 0 to say where the job goes on";
  channel.offers = std::move(offers);
  settle_if_all_have_spoken();
}

/// All servers are told the same, also those that hear it late: every hello says it from now on.
void Client::settle_if_all_have_spoken() {
  if (options_.worker != 0 || settled_ != settling::kNowhere) return;
  for (const Channel& channel : channels_)
    if (!channel.was_ready && channel.offers.places.empty()) return;
  settled_ = choose_place();
  for (uint32_t server = 0; server < channels_.size(); ++server)
    if (channels_[server].state == State::greeting) send_hello(server);
}

/// The last place that every server offers.
uint64_t Client::choose_place() const {
  const uint64_t before = std::ranges::max(channels_, {}, &Channel::settled).settled;
  if (before != settling::kNowhere) return before;
  std::vector<uint64_t> common;
  for (uint32_t server = 0; server < channels_.size(); ++server) {
    const Channel& channel = channels_[server];
    if (channel.was_ready) {
      say(fmt::format("the job does not go on from its journals: {} has none of the last run",
                      name(server)));
      return settling::kAnew;
    }
    if (channel.offers.run != channels_[0].offers.run) {
      say(fmt::format("the job does not go on from its journals: that of {} is of another run",
                      name(server)));
      return settling::kAnew;
    }
    std::vector<uint64_t> offered = channel.offers.places, both;
    std::ranges::sort(offered);
    std::ranges::set_intersection(server == 0 ? offered : common, offered,
                                  std::back_inserter(both));
    common = std::move(both);
  }
  if (!common.empty()) return common.back();
  say("the job does not go on from its journals: they have no step in common");
  return settling::kAnew;
}

}  // namespace argosy::ps
