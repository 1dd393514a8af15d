#include "argosy/comm/links.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "argosy/base/error.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 200ms;  // at most, before a look at the others and the clock

/// The remaining bytes of a call header and its payload.
struct Parts {
  Parts(void* call, std::byte* bytes, size_t size, size_t done) {
    const size_t of_call = std::min(done, sizeof(GroupCall)), of_bytes = done - of_call;
    if (of_call < sizeof(GroupCall))
      parts[count++] = {static_cast<std::byte*>(call) + of_call, sizeof(GroupCall) - of_call};
    if (of_bytes < size) parts[count++] = {bytes + of_bytes, size - of_bytes};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
  }

  std::array<iovec, 2> parts = {};
  size_t count = 0;
  msghdr message = {};
};

bool later() { return errno == EAGAIN || errno == EINTR; }

}  // namespace

void Links::open(int rank) {
  Descriptor& link = links_[static_cast<size_t>(rank)];
  if (link.get() >= 0) return;
  link = peers_.open_link(rank);
  const int yes = 1;
  ::setsockopt(link.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

void Links::send_some(Direction& direction, const GroupCall& call) {
  GroupCall mine = call;
  Parts parts(&mine, direction.bytes, direction.size, direction.done);
  const ssize_t n = ::sendmsg(links_[static_cast<size_t>(direction.rank)].get(), &parts.message,
                              MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0 && later()) return;
  if (n < 0) peers_.explain_loss(direction.rank, call);
  direction.done += static_cast<size_t>(n);
}

void Links::receive_some(Direction& direction, const GroupCall& call) {
  // Read no payload before the header is known to be of the right call.
  const bool has_call = direction.done >= sizeof(GroupCall);
  Parts parts(&direction.theirs, direction.bytes, has_call ? direction.size : 0, direction.done);
  const ssize_t n =
      ::recvmsg(links_[static_cast<size_t>(direction.rank)].get(), &parts.message, MSG_DONTWAIT);
  if (n < 0 && later()) return;
  if (n <= 0) peers_.explain_loss(direction.rank, call);
  direction.done += static_cast<size_t>(n);
  if (has_call || direction.done < sizeof(GroupCall)) return;
  check_same_call(call, peers_.name(peers_.rank()), direction.theirs, peers_.name(direction.rank));
  if (!direction.over()) receive_some(direction, call);
}

void Links::exchange(const GroupCall& call, std::span<const Outgoing> out,
                     std::span<const Incoming> in) {
  for (const Outgoing& each : out)
    if (each.to < peers_.rank()) open(each.to);  // at once; the rest waits for them to come
  for (const Incoming& each : in)
    if (each.from < peers_.rank()) open(each.from);
  for (const Outgoing& each : out) open(each.to);
  for (const Incoming& each : in) open(each.from);

  size_t count = 0;
  for (const auto& [to, bytes] : out)
    directions_[count++] = {to, const_cast<std::byte*>(bytes.data()), bytes.size()};
  for (const auto& [from, bytes] : in) directions_[count++] = {from, bytes.data(), bytes.size()};
  const Env::Time until = peers_.env().now() + peers_.options().deadline;
  for (bool first = true;; first = false) {
    bool over = true, moved = false;
    for (size_t i = 0; i < count; ++i) {
      Direction& direction = directions_[i];
      if (direction.over()) continue;
      const size_t before = direction.done;
      i < out.size() ? send_some(direction, call) : receive_some(direction, call);
      over = over && direction.over();
      moved = moved || direction.done > before;
    }
    if (over) return;
    if (moved && !first) peers_.moved();
    wait(count, out.size(), call, until);
  }
}

void Links::wait(size_t directions, size_t outgoing, const GroupCall& call, Env::Time until) {
  polled_.assign(1, {peers_.fd(), POLLIN, 0});
  for (size_t i = 0; i < directions; ++i) {
    const Direction& direction = directions_[i];
    if (direction.over()) continue;
    const auto events = static_cast<short>(i < outgoing ? POLLOUT : POLLIN);
    polled_.push_back({links_[static_cast<size_t>(direction.rank)].get(), events, 0});
  }
  ::poll(polled_.data(), polled_.size(),
         static_cast<int>(std::chrono::milliseconds(kLook).count()));
  peers_.look();
  if (peers_.env().now() < until) return;
  const Direction* const late =
      std::ranges::find_if(std::span(directions_).first(directions), [](const Direction& each) {
        return !each.over();
      }).base();
  fail<IoError>(peers_.name(late->rank), " has not come to ", call.text(), " within ",
                std::chrono::duration<double>(peers_.options().deadline).count(), " s");
}

}  // namespace argosy::comm
